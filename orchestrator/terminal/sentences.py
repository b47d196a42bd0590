"""An event of the trace as one line of words."""

from collections.abc import Callable
from typing import Any, Final

from orchestrator.records import Event
from orchestrator.terminal.wording import duration, money, one_line, size, word
from orchestrator.unknown import UNKNOWN
from registry.base import Json
from registry.jsontext import compact

Data = dict[str, Any]

#: Characters of one sentence.
LONGEST = 160


def sentence(event: Event) -> str:
    """What happened, in words; an event without words of its own shows its data."""
    tell = _WORDS.get(event.kind, _data)
    try:
        text = tell(event.data)
    except (KeyError, TypeError, AttributeError, ValueError):  # data of another release or a plugin: show it as it is
        text = _data(event.data)
    return one_line(text, LONGEST)


def is_stand_in(event: Event) -> bool:
    """Whether the stand-in, and no model, spoke this."""
    return bool(event.data.get("standIn")) or str(event.data.get("model", "")).startswith("stand-in")


def _status(data: Data) -> str:
    reason = f": {data['reason']}" if data.get("reason") else ""
    return f"{word(data['from'])} -> {word(data['status'])}{reason}" if data.get("from") else word(data["status"])


def _think(data: Data) -> str:
    usage = (data.get("usage") or {}).get("totalTokens", 0)
    cost = "unknown cost" if data.get("costUsd") is None else money(data["costUsd"])
    return f"{data['model']}, {usage} tokens, {cost}, {duration(data.get('durationMs') or 0)}  {data.get('text') or ''}"


def _message(data: Data) -> str:
    calls = ", ".join(call["name"] for call in data.get("toolCalls") or [])
    text = data.get("text") or ""
    return f"{data['role']}: {text}" + (f" [calls {calls}]" if calls else "")


def _result(data: Data) -> str:
    code = f" {data['code']}" if data.get("code") else ""
    return (
        f"{data['name']} {data['outcome']}{code} {duration(data.get('durationMs') or 0)}  {_short(data.get('output'))}"
    )


def _failed(data: Data) -> str:
    return f"{data['code']}: {data['message']}"


def _parked(data: Data) -> str:
    return f"{word(data['status'])} on {data['on']}"


def _answered(data: Data) -> str:
    answer = "rejected" if data.get("rejected") else _short(data.get("payload"))
    return f"{answer} by {data['by']}"


def _executed(data: Data) -> str:
    if data.get("code") == UNKNOWN:
        return "unknown: it may have happened"
    return "done" if data["ok"] else f"failed {data.get('code') or ''}"


def _repaired(data: Data) -> str:
    words = {"result": "it happened", "retry": "it runs again", "skip": "it is left as it is"}
    why = f": {data['reason']}" if data.get("reason") else ""
    return f"{data['name']} was unknown; {data['by']} says {words[data['how']]}{why}"


def _file(data: Data) -> str:
    return f"{data['path']}  {size(data['bytes'])}"


def _team(data: Data) -> str:
    return ", ".join(f"{member['name']} ({member['role']})" for member in data["members"])


def _child(data: Data) -> str:
    return f"{data.get('agentName') or data.get('agentId') or 'item'} {data['index']}"


def _lost_child(data: Data) -> str:
    return f"{_child(data)}: {_failed(data)}"


def _data(data: Data) -> str:
    return "  ".join(f"{key}={_short(value)}" for key, value in data.items())


def _short(value: Json) -> str:
    return value if isinstance(value, str) else compact(value)


_WORDS: Final[dict[str, Callable[[Data], str]]] = {
    "project.status": _status,
    "task.status": _status,
    "project.planned": lambda d: f"{len(d['tasks'])} tasks",
    "team.assembled": _team,
    "run.started": lambda d: f"attempt {d['attempt']}",
    "run.parked": _parked,
    "run.resumed": lambda d: f"by {d['by']}",
    "run.completed": lambda d: f"{d['steps']} steps, {d['tokens']} tokens",
    "run.failed": _failed,
    "run.cancelled": lambda d: d["reason"],
    "run.repaired": _repaired,
    "node.completed": lambda d: f"{d['type']} (step {d['step']})",
    "think": _think,
    "message": _message,
    "tool.call": lambda d: f"{d['name']} {_short(d['input'])}",
    "tool.result": _result,
    "output": lambda d: d.get("text") or _short(d["output"]),
    "signal.raised": lambda d: d["title"],
    "signal.answered": _answered,
    "signal.expired": lambda d: "too many wait already" if d.get("reason") == "quota" else "nobody answered in time",
    "signal.executed": _executed,
    "file.written": _file,
    "agent.spawned": _child,
    "agent.completed": _child,
    "agent.failed": _lost_child,
    "agent.handoff": lambda d: f"{d['from']} hands over to {d['agentId']}",
    "map.item.started": _child,
    "map.item.completed": _child,
    "map.item.failed": _lost_child,
    "project.pruned": lambda d: f"its {d['part']} was taken away because it was old",
    "mcp.skipped": lambda d: f"{d['server']}{' ' + d['tool'] if d.get('tool') else ''} left out: {d['reason']}",
    "mcp.failed": lambda d: f"{d['server']}: {d['reason']}",
}
