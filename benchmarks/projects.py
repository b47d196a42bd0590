"""The work itself, as project files: agents with graphs of their own, and a script that plays their model at 0 ms."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Json = dict[str, Any]

#: Steps of an agent run: a model call and a tool call in turn.
STEPS = 20
#: What the model says, and about what a tool gives back.
ANSWER = "I will look the next document up and then decide. " * 4
FOUND = "2"
CALL = {"name": "math.evaluate", "args": {"expression": "1 + 1"}}


def stepper(steps: int = STEPS) -> Json:
    """An agent that asks the model and calls what it says in turn, so many steps. Its history then holds one message
    more."""
    nodes: Json = {
        "start": {"type": "core:start"},
        "think": {"type": "llm:generate"},
        "act": {"type": "tool:call", "calls": "$output.toolCalls"},
        "end": {"type": "core:end", "output": "$output"},
    }
    edges = [
        *(edge("start", "think"), edge("think", "act", "$output.finishReason = 'tool-calls'"), edge("think", "end")),
        *(edge("act", "end", f"length($state.messages) > {steps}"), edge("act", "think")),
    ]
    agent = _agent("stepper", nodes, edges)
    return agent | {"budget": agent["budget"] | {"maxSteps": max(100, 2 * steps)}}


def mapper(items: int) -> Json:
    """An agent that maps over items, a model call and a tool call each, and joins."""
    nodes: Json = {
        "start": {"type": "core:start"},
        "each": {
            "type": "control:map",
            "items": [f"item {n}" for n in range(items)],
            "enter": "think",
            "body": ["think", "act", "give"],
        },
        "think": {"type": "llm:generate"},
        "act": {"type": "tool:call", "calls": "$output.toolCalls"},
        "give": {"type": "control:yield", "value": "$output.results[0].result"},
        "end": {"type": "core:end", "output": "$output"},
    }
    edges = [edge("start", "each"), edge("each", "end"), edge("think", "act"), edge("act", "give")]
    return _agent("mapper", nodes, edges)


def bare_mapper(items: int) -> Json:
    """The same with items that take no step: what is left is the map itself."""
    nodes: Json = {
        "start": {"type": "core:start"},
        "each": {
            "type": "control:map",
            "items": [f"item {n}" for n in range(items)],
            "enter": "give",
            "body": ["give"],
        },
        "give": {"type": "control:yield", "value": "$item"},
        "end": {"type": "core:end", "output": "$output"},
    }
    return _agent("bare-mapper", nodes, [edge("start", "each"), edge("each", "end")])


def speaker() -> Json:
    """An agent that asks the model once."""
    nodes: Json = {
        "start": {"type": "core:start"},
        "say": {"type": "llm:generate", "tools": []},
        "end": {"type": "core:end"},
    }
    return _agent("speaker", nodes, [edge("start", "say"), edge("say", "end")])


def nothing() -> Json:
    """An agent that does nothing, and leaves nothing that those after it would have to read."""
    nodes: Json = {"start": {"type": "core:start"}, "end": {"type": "core:end", "output": "'done'"}}
    return _agent("nothing", nodes, [edge("start", "end")])


def asker() -> Json:
    """An agent that wants to write a file, which a person has to allow."""
    call = {"name": "write_file", "args": {"path": "answer.txt", "content": ANSWER}}
    nodes: Json = {
        "start": {"type": "core:start"},
        "act": {"type": "tool:call", **call},
        "end": {"type": "core:end", "output": "$output"},
    }
    agent = _agent("asker", nodes, [edge("start", "act"), edge("act", "end")])
    return agent | {"skills": [], "packs": {"core": False, "files": True}, "permissions": {"fs.write": "ask"}}


def layers(deep: int, wide: int, each: int = 3) -> dict[str, list[str]]:
    """A plan of so many layers: task -> what it depends on, `each` tasks of the layer before. The same every time."""
    found: dict[str, list[str]] = {}
    for layer in range(deep):
        for place in range(wide):
            above = [(7 * place + 13 * step) % wide for step in range(each)] if layer else []
            found[f"t{layer}-{place}"] = [f"t{layer - 1}-{one}" for one in sorted(set(above))]
    return found


def edge(source: str, target: str, when: str | None = None) -> Json:
    return {"from": source, "to": target} | ({"when": when} if when else {})


def write(
    folder: Path,
    agent: Json,
    *,
    tasks: int | Mapping[str, Sequence[str]] = 1,
    turns: Sequence[Json] | None = None,
    section: str = "tasks",
) -> Path:
    """Writes a project of tasks of one agent; returns its file.

    Args:
        tasks: how many, or their keys and what each depends on.
        turns: what the model says in each of them; none: a real model is asked.
        section: `tasks` for their own runs, `items` for those of their maps.
    """
    folder.mkdir(parents=True, exist_ok=True)
    plan = tasks if isinstance(tasks, Mapping) else {f"t{n}": () for n in range(tasks)}
    project: Json = {
        "title": f"Bench: {agent['id']}",
        "tasks": [_task(key, agent["id"], after) for key, after in plan.items()],
        "agents": {agent["id"]: agent},
        "budget": {"maxParallel": 2_000},
    }
    if turns is not None:
        project["script"] = "script.json"
        (folder / "script.json").write_text(json.dumps({section: {key: list(turns) for key in plan}}), encoding="utf-8")
    file = folder / "project.json"
    file.write_text(json.dumps(project), encoding="utf-8")
    return file


def _task(key: str, agent: str, after: Sequence[str]) -> Json:
    # The key is in the instruction, so that a model server can tell the runs apart.
    return {"key": key, "role": "bench", "instruction": f"Work on {key}.", "agent": agent, "dependsOn": list(after)}


def _agent(id_: str, nodes: Json, edges: list[Json]) -> Json:
    return {
        "id": id_,
        "instructions": "Do the work.",
        "skills": ["math.evaluate"],
        "graph": {"nodes": nodes, "edges": edges},
        "budget": {"maxSteps": 100, "policy": "error"},
    }
