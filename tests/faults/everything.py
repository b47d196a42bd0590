"""One project that uses every kind of node: it asks, sleeps, fans out, hands over, and carries an action out."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from orchestrator.settings import Settings
from orchestrator.signals import answer
from registry.errors import Refused
from tests.faults.skills import deed
from tests.integration.test_fanout import agent, speaker
from tests.projects import Watched, task

SKILLS = ["proof.once", "proof.asked", "proof.again", "proof.look"]

#: Every node kind of the graph language in one agent; `control:yield` stands in the body of the map.
NODES: dict[str, Any] = {
    "start": {"type": "core:start"},
    "set": {"type": "control:assign", "patch": {"round": 1}},
    "jump": {"type": "control:goto", "target": "$state.next"},
    "fixed": {"type": "tool:call", "name": "proof.once", "args": {"key": "fixed"}},
    "map": {"type": "control:map", "items": ["a", "b", "c"], "enter": "item", "body": ["item", "give"]},
    "item": {"type": "llm:generate", "tools": []},
    "give": {"type": "control:yield", "value": "$output"},
    "spawn": {"type": "control:spawn", "calls": [{"agentId": "kid", "input": f"n{n}"} for n in range(3)]},
    "ask": {"type": "control:interrupt", "reason": "May it go on?"},
    "sleep": {"type": "control:wait", "delayMs": 300},
    "gate": {"type": "control:wait", "timeoutMs": 300, "onTimeout": "continue", "reason": "nobody opens it"},
    "over": {"type": "control:handoff", "agentId": "closer", "input": {"text": "end it"}},
    "end": {"type": "core:end"},
}
EDGES = [
    *(("start", "set"), ("set", "jump"), ("fixed", "map"), ("map", "spawn"), ("spawn", "ask")),
    *(("ask", "sleep"), ("sleep", "gate"), ("gate", "over"), ("over", "end"), ("item", "give")),
]
#: What happens for sure, once: a death in between may make it unknown instead.
ONCE = {"fixed", "w0", "w1", "w2", "asked", "carried"}


def agents() -> dict[str, Any]:
    return {
        "all": agent(
            "all", NODES, EDGES, skills=SKILLS, state={"initial": {"next": "fixed"}}, budget={"maxSteps": 100}
        ),
        "kid": speaker("kid"),
        "closer": speaker("closer"),
        "clerk": {"id": "clerk", "instructions": "Go on.", "skills": SKILLS, "approvals": "carryOn"},
    }


def script() -> dict[str, Any]:
    turns = {
        "works": [deed("proof.once", "w0"), _two("w1", "w2"), {"say": "worked"}],
        "asks": [deed("proof.asked", "asked"), {"say": "asked"}],
        "carries": [deed("proof.asked", "carried"), {"say": "went on"}],
        "last": [deed("proof.look", "seen"), {"say": "last"}],
    }
    return {"tasks": turns, "otherwise": "rule"}


def _two(first: str, second: str) -> dict[str, Any]:
    """A turn with two calls, of which one takes longer: the outcome of the other is written before the step ends."""
    return {"calls": [*deed("proof.once", first)["calls"], *deed("proof.once", second, ms=200)["calls"]]}


def plan() -> list[dict[str, Any]]:
    first = [
        task("all", agent="all", retries=0),
        task("works", skills=SKILLS, retries=0),
        task("asks", skills=SKILLS, retries=0),
        task("carries", agent="clerk", retries=0),
        *(task(f"uses-{name}", agent=name, retries=0) for name in ("kid", "closer")),
    ]
    return [*first, task("last", skills=SKILLS, after=[one["key"] for one in first], retries=0)]


def write(folder: Path) -> Path:
    """The project as a file."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "script.json").write_text(json.dumps(script()), encoding="utf-8")
    body = {"title": "Everything", "brief": "b", "tasks": plan(), "agents": agents(), "script": "script.json"}
    (folder / "project.json").write_text(json.dumps(body), encoding="utf-8")
    return folder / "project.json"


def answers(settings: Settings, project: Watched) -> None:
    """Says yes to whatever is open, and no to doing again what may have happened."""
    for signal in project.signals:
        if signal.status == "open" and signal.kind in ("decision", "interrupt"):
            again = "may have happened" in (signal.reason or "")
            payload = {"approved": not again} if signal.kind == "decision" else {}
            with suppress(Refused):  # it was closed in between
                answer(settings, signal.id, payload=payload, by="the test")
