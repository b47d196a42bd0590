"""Agents for tests of the engine, in a line each."""

from typing import Any

#: The model's calls are run, and it is asked again.
CALLS = '$output.finishReason = "tool-calls"'
THINK: dict[str, Any] = {"type": "llm:generate"}
#: The model is asked and can only speak.
SPEAK = THINK | {"tools": []}
ACT: dict[str, Any] = {"type": "tool:call", "calls": "$output.toolCalls"}


def agent(nodes: dict[str, Any], *edges: str, end: Any = "$output", **fields: Any) -> dict[str, Any]:
    """An agent with these nodes between `start` and `end`. An edge is `a -> b` or `a -> b if EXPR`."""
    ends = {"start": {"type": "core:start"}, "end": {"type": "core:end"} | ({"output": end} if end is not None else {})}
    graph = {"nodes": ends | nodes, "edges": [edge(words) for words in edges]}
    return {"id": "ada", "instructions": "Do it.", "graph": graph} | fields


def edge(words: str) -> dict[str, str]:
    ends, _, when = words.partition(" if ")
    one, _, other = ends.partition(" -> ")
    return {"from": one, "to": other} | ({"when": when} if when else {})


def looper(concurrency: str = "parallel", **fields: Any) -> dict[str, Any]:
    """The tool loop: think, act, think, until the model calls nothing."""
    budget = {"budget": {"maxSteps": 50}}
    nodes = {"think": THINK, "act": ACT | {"concurrency": concurrency}}
    edges = ("start -> think", f"think -> act if {CALLS}", "think -> end", "act -> think")
    return agent(nodes, *edges, end=None, **(budget | fields))


def once(node: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """An agent whose graph is one node."""
    return agent({"n": node}, "start -> n", "n -> end", **fields)


def speaker(id_: str = "kid") -> dict[str, Any]:
    """An agent that asks the model once, without tools."""
    return agent({"think": THINK | {"tools": []}}, "start -> think", "think -> end", end=None) | {"id": id_}


def ask(*operations: str) -> dict[str, Any]:
    """A stub tool that does these operations."""
    return {"returns": "did it", "operations": list(operations)}
