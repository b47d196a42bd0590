"""What a node shows of itself: its name, its type, and the one or two facts that tell it from others of its type."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from registry.base import Json
from registry.graph.drawing import texts
from registry.graph.model import (
    Assign,
    End,
    Generate,
    Goto,
    Handoff,
    Interrupt,
    Map,
    Node,
    Spawn,
    ToolCall,
    Wait,
    Yield,
)
from registry.jsontext import compact

#: Font sizes: the name, the type, the facts.
NAME, KIND, FACT = 13.0, 10.5, 11.0
#: From the left edge to the icon, the icon, and from there to the text.
PADDING, ICON, BESIDE = 12.0, 18.0, 8.0
#: Height of a line of facts.
LINE: Final = 15.0
_NARROWEST, _WIDEST = 104.0, 250.0
_HEAD: Final = 42.0
#: What an outline takes away from the facts, at the sides and at the bottom.
_TAKEN: Final = {
    "core:end": (26.0, 2.0),
    "control:spawn": (7.0, 7.0),
    "control:handoff": (10.0, 0.0),
    "control:goto": (10.0, 0.0),
}


@dataclass(frozen=True)
class Fact:
    """A line about a node; code is set in a monospaced face."""

    text: str
    code: bool = False


@dataclass(frozen=True)
class Card:
    """A node as it is drawn."""

    id: str
    #: The node's type; `item` for the point where the items of a map begin.
    type: str
    name: str
    kind: str
    facts: tuple[Fact, ...]
    width: float
    height: float


def card(node_id: str, node: Node) -> Card:
    """The card of a node, as wide as its texts need within bounds."""
    name = texts.plain(node.label or "") or texts.plain(node_id) or "?"
    kind = f"{node.type} · {texts.plain(node_id)}" if node.label else node.type
    return _sized(node_id, node.type, name, kind, _facts(node))


def item_card(node_id: str) -> Card:
    """The small mark inside a map where each item begins."""
    return Card(node_id, "item", "each item", "", (), texts.width("each item", KIND) + 26, 22.0)


def _sized(node_id: str, type_: str, name: str, kind: str, facts: list[Fact]) -> Card:
    right, bottom = _TAKEN.get(type_, (0.0, 0.0)) if facts else (0.0, 0.0)
    head, most = PADDING + ICON + BESIDE, _WIDEST - right
    name = texts.cut(name, most - head - PADDING, NAME, bold=True)
    kind = texts.cut(kind, most - head - PADDING, KIND)
    lines = [
        Fact(line, fact.code)
        for fact in facts
        for line in texts.wrap(texts.plain(fact.text), most - 2 * PADDING, FACT, most=2, mono=fact.code)
    ]
    wide = max(texts.width(name, NAME, bold=True), texts.width(kind, KIND)) + head + PADDING
    wide = max([wide, *(texts.width(line.text, FACT, mono=line.code) + 2 * PADDING for line in lines)])
    height = _HEAD + (len(lines) * LINE + 6 if lines else 0) + bottom
    return Card(node_id, type_, name, kind, tuple(lines), max(_NARROWEST, wide) + right, height)


def duration(ms: float) -> str:
    """Milliseconds in the largest unit that gives a whole number, or one digit after the point."""
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000)):
        if ms >= size:
            return f"{round(ms / size, 1):g} {unit}"
    return f"{ms:g} ms"


def _facts(node: Node) -> list[Fact]:
    facts = _FACTS.get(node.type)
    return facts(node) if facts else []


def _code(value: Json) -> Fact:
    return Fact(value if isinstance(value, str) else compact(value), code=True)


def _names(names: list[str], most: int = 3) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _end(node: End) -> list[Fact]:
    return [_code(node.output)] if node.has_output else []


def _generate(node: Generate) -> list[Fact]:
    facts = [Fact(f"prompt {node.prompt}")] if node.prompt != "main" else []
    if node.tools is not None:
        facts.append(Fact(f"tools: {_names(node.tools)}" if node.tools else "no tools"))
    if node.output is not None:
        keys = node.output.get("properties")
        facts.append(Fact(f"answers {_names(list(keys))}" if isinstance(keys, dict) and keys else "structured answer"))
    if node.model is not None:
        facts.append(Fact(f"model {node.model if isinstance(node.model, str) else node.model.model}"))
    return facts


def _tool_call(node: ToolCall) -> list[Fact]:
    facts = [_code(node.name)] if node.name is not None else [_calls(node.calls, "name")]
    if node.concurrency != "parallel":
        facts.append(Fact("one after the other") if node.concurrency == "sequential" else _code(node.concurrency))
    if node.approve is not None:
        facts.append(Fact(f"asks before {_names(node.approve.tools)}"))
    return facts


def _calls(calls: Json, key: str) -> Fact:
    if not isinstance(calls, list):
        return _code(calls)
    names = [str(call.get(key)) for call in calls if isinstance(call, dict)]
    return Fact(_names(list(dict.fromkeys(names))) or "nothing", code=True)


def _assign(node: Assign) -> list[Fact]:
    return [Fact(f"sets {_names(list(node.patch))}")]


def _goto(node: Goto) -> list[Fact]:
    return [_code(node.target)]


def _interrupt(node: Interrupt) -> list[Fact]:
    return [Fact(node.reason)]


def _spawn(node: Spawn) -> list[Fact]:
    facts = [_calls(node.calls, "agentId")]
    return facts if node.concurrency == "parallel" else [*facts, Fact("one after the other")]


def map_facts(node: Map) -> list[Fact]:
    """What the head of a map's frame says."""
    items = f"{len(node.items)} items" if isinstance(node.items, list) else node.items
    facts = [Fact(items, code=isinstance(node.items, str))]
    if node.concurrency == "sequential":
        facts.append(Fact("one after the other"))
    if node.timeout_ms is not None:
        after = "keeps what is done" if node.on_timeout == "partial" else "fails"
        facts.append(Fact(f"after {duration(node.timeout_ms)}: {after}"))
    return facts


def _yield(node: Yield) -> list[Fact]:
    return [_code(node.value)] if node.value is not None else []


def _wait(node: Wait) -> list[Fact]:
    facts = [Fact(node.reason)] if node.reason else []
    if node.delay_ms is not None:
        return [*facts, Fact(f"for {duration(node.delay_ms)}")]
    if node.until_ms is not None:
        return [*facts, Fact("until"), _code(node.until_ms)] if node.reason else [_code(node.until_ms)]
    if node.timeout_ms is not None:
        return [*facts, Fact(f"for an answer; after {duration(node.timeout_ms)}: {node.on_timeout}")]
    return [*facts, Fact("for an answer")]


def _handoff(node: Handoff) -> list[Fact]:
    return [_code(node.agent_id)]


_FACTS: Final[Mapping[str, Callable[[Any], list[Fact]]]] = {
    "core:end": _end,
    "llm:generate": _generate,
    "tool:call": _tool_call,
    "control:assign": _assign,
    "control:goto": _goto,
    "control:interrupt": _interrupt,
    "control:spawn": _spawn,
    "control:map": map_facts,
    "control:yield": _yield,
    "control:wait": _wait,
    "control:handoff": _handoff,
}
