"""The work itself, as project files: agents with graphs of their own, and a script that plays their model at 0 ms."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Json = dict[str, Any]

#: Steps of an agent run: a model call and a tool call in turn.
STEPS = 20
#: What the model says, and about what a tool gives back.
ANSWER = "I will look the next document up and then decide. " * 4
FOUND = "2"
CALL = {"name": "math.evaluate", "args": {"expression": "1 + 1"}}


def stepper() -> Json:
    """An agent that asks the model and calls what it says, ten times each. Its history then holds 21 messages."""
    nodes: Json = {
        "start": {"type": "core:start"},
        "think": {"type": "llm:generate"},
        "act": {"type": "tool:call", "calls": "$output.toolCalls"},
        "end": {"type": "core:end", "output": "$output"},
    }
    edges = [
        *(edge("start", "think"), edge("think", "act", "$output.finishReason = 'tool-calls'"), edge("think", "end")),
        *(edge("act", "end", f"length($state.messages) > {STEPS}"), edge("act", "think")),
    ]
    return _agent("stepper", nodes, edges)


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


def edge(source: str, target: str, when: str | None = None) -> Json:
    return {"from": source, "to": target} | ({"when": when} if when else {})


def write(
    folder: Path, agent: Json, *, tasks: int = 1, turns: Sequence[Json] | None = None, section: str = "tasks"
) -> Path:
    """Writes a project of so many tasks of one agent; returns its file.

    Args:
        turns: what the model says in each of them; none: a real model is asked.
        section: `tasks` for their own runs, `items` for those of their maps.
    """
    folder.mkdir(parents=True, exist_ok=True)
    keys = [f"t{n}" for n in range(tasks)]
    project: Json = {
        "title": f"Bench: {agent['id']}",
        "tasks": [{"key": key, "role": "bench", "instruction": "Work.", "agent": agent["id"]} for key in keys],
        "agents": {agent["id"]: agent},
        "budget": {"maxParallel": 2_000},
    }
    if turns is not None:
        project["script"] = "script.json"
        (folder / "script.json").write_text(json.dumps({section: {key: list(turns) for key in keys}}), encoding="utf-8")
    file = folder / "project.json"
    file.write_text(json.dumps(project), encoding="utf-8")
    return file


def _agent(id_: str, nodes: Json, edges: list[Json]) -> Json:
    return {
        "id": id_,
        "instructions": "Do the work.",
        "skills": ["math.evaluate"],
        "graph": {"nodes": nodes, "edges": edges},
        "budget": {"maxSteps": 100, "policy": "error"},
    }
