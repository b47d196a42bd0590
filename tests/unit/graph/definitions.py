"""Small agents to break in one place at a time."""

import copy
from typing import Any

from registry.graph.validation import validate

Json = Any


STOP = '$output.finishReason = "stop"'
CALLS = '$output.finishReason = "tool-calls"'
BATCH = {"type": "tool:call", "calls": "$output.toolCalls"}
BUDGET = {"budget": {"maxSteps": 9}}


def agent(nodes: Json = None, edges: Json = None, **fields: Json) -> dict[str, Json]:
    """start -> think -> end without tools, which has no findings; `nodes` and `edges` are added, or replace by id."""
    base: dict[str, Json] = {
        "id": "ada",
        "prompts": {"main": {"instructions": "Do it."}},
        "graph": {
            "nodes": {
                "start": {"type": "core:start"},
                "think": {"type": "llm:generate", "tools": []},
                "end": {"type": "core:end"},
                **(nodes or {}),
            },
            "edges": [*arrows("start think", "think end"), *(edges or [])],
        },
    }
    return copy.deepcopy(base | fields)


def chain(node: Json, **fields: Json) -> dict[str, Json]:
    """The same with the node `x` between think and end."""
    made = agent({"x": node}, **fields)
    made["graph"]["edges"] = arrows("start think", "think x", "x end")
    return made


def mapping(map_fields: Json = None, body: Json = None, edges: Json = None, **fields: Json) -> dict[str, Json]:
    """The same with a map `m` over the body `w` -> `y`."""
    node = {"type": "control:map", "items": [1, 2], "enter": "w", "body": ["w", "y"], **(map_fields or {})}
    inside = {"w": {"type": "llm:generate", "tools": []}, "y": {"type": "control:yield"}, **(body or {})}
    made = agent({"m": {k: v for k, v in node.items() if v is not None}, **inside}, **fields)
    made["graph"]["edges"] = arrows("start think", "think m", "m end", *(edges if edges is not None else ["w y"]))
    return made


def arrows(*pairs: str) -> list[Json]:
    """Edges from texts like "a b" or "a b when $x"."""
    made = []
    for pair in pairs:
        source, target, *rest = pair.split(" ", 2)
        made.append({"from": source, "to": target} | ({"when": rest[0].removeprefix("when ")} if rest else {}))
    return made


def graph(nodes, *edges, **fields):
    """A definition whose graph is just this."""
    return agent(**fields) | {"graph": {"nodes": nodes, "edges": arrows(*edges)}}


def looping(when=CALLS, think=None, act=None, **fields):
    """start -> think <-> act, and end."""
    nodes = {
        "start": {"type": "core:start"},
        "think": {"type": "llm:generate", **(think or {})},
        "act": act or BATCH,
        "end": {"type": "core:end"},
    }
    return graph(nodes, "start think", f"think act when {when}", "think end", "act think", **(BUDGET | fields))


def found(definition: Json) -> list[tuple[str, str]]:
    """Code and path of every finding, in the order reported."""
    return [(finding.code, finding.path) for finding in validate(definition)]
