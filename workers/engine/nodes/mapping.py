"""`control:map`: the body of the graph once for each item, each in a child run of the same agent."""

import copy
import json
import re

from orchestrator.records import ChildRecord, Park
from registry.base import Json
from registry.errors import RunFailure
from registry.graph import expressions
from registry.graph.expressions import ExpressionError
from registry.graph.model import Map, Yield
from registry.ids import new_id
from workers.engine import fanout
from workers.engine.history import open_calls
from workers.engine.outcome import Done, Outcome, Parked, Yielded
from workers.engine.session import Session

#: State keys of queues: they belong to the parent alone.
QUEUES = (
    "spawns",
    "handoffAgentId",
    "mapItems",
    "mapInstruction",
    "mapMaxTokensPerItem",
    "waitUntilMs",
)
MARKERS = re.compile(r"\$(item|index)\b")
#: Characters a token is taken for.
CHARS_PER_TOKEN = 4


def map_items(session: Session, node: Map) -> Outcome:
    """Makes an item run for each item, or takes what they brought; in time, or with what there is."""
    queued = fanout.is_path(node.items, "mapItems")
    if not session.children:
        items = _items(session, node)
        if not items:
            session.emit("map.started", count=0, concurrency=node.concurrency, timeoutMs=node.timeout_ms)
            return _finish(session, node, [], timed_out=False, queued=queued)
        fanout.check_depth(session)
        sequential = fanout.concurrency(session, node.concurrency)
        children = [_child(session, node, index, item, queued=queued) for index, item in enumerate(items)]
        word = "sequential" if sequential else "parallel"
        session.emit("map.started", count=len(items), concurrency=word, timeoutMs=node.timeout_ms)
        for child in children:
            session.emit("map.item.started", index=child.position, childRunId=child.id)
        return fanout.park(session, children, sequential=sequential, timeout_ms=node.timeout_ms)
    unfinished = fanout.open_children(session)
    left = fanout.time_left(session, node.timeout_ms)
    if unfinished and (left is None or left > 0):
        due = None if left is None else max(1, round(left))
        return Parked(Park("waiting", "children", due_in_ms=due))
    if unfinished:
        _stop(session, node, unfinished)
    results = [_result(session, node, child, queued=queued) for child in session.children]
    return _finish(session, node, results, timed_out=bool(unfinished), queued=queued)


def yield_item(session: Session, node: Yield) -> Outcome:
    """Ends the item run with its value, or with the last message of its agent."""
    if session.record.kind != "item":
        raise RunFailure("yield_outside_map", f"node {session.node_id!r} is reached outside an item of a map")
    history = session.state.get(session.last_history) or []
    if open_calls(history):
        raise RunFailure("map_item_tool_call", "the item ended on tool calls that nobody ran")
    if node.value is not None:
        try:
            return Yielded(expressions.compile(node.value).evaluate(session.slots()))
        except ExpressionError as error:
            raise RunFailure(error.code, error.message) from None
    said = next((m for m in reversed(history) if m["role"] == "assistant" and not m.get("kind")), None)
    if said is None or not str(said.get("content") or "").strip():
        raise RunFailure("map_item_empty", "the item ended without an answer")
    return Yielded(said)


def _items(session: Session, node: Map) -> list[Json]:
    value = fanout.listed(session, node.items)
    if not isinstance(value, list):
        raise RunFailure("map_items_shape", f"items give {type(value).__name__}; a list is needed")
    if len(value) > session.limits.map_items:
        raise RunFailure("map_item_limit", f"{len(value)} items; {session.limits.map_items} may be")
    return value


def _child(session: Session, node: Map, index: int, item: Json, *, queued: bool) -> ChildRecord:
    kept = {k: v for k, v in session.state.items() if k not in QUEUES and k not in session.tools.history_keys}
    state = copy.deepcopy(kept)
    instruction = node.instruction
    if queued and isinstance(session.state.get("mapInstruction"), str):
        instruction = session.state["mapInstruction"]
    return ChildRecord(
        id=new_id(),
        kind="item",
        position=index,
        agent_id=session.agent.id,
        agent_name=session.agent.name,
        definition_digest=session.record.definition_digest,
        node_id=node.enter,
        input={"parent": session.input, "text": _first_message(instruction, index, item)},
        state=state,
        item=item,
    )


def _first_message(instruction: str | None, index: int, item: Json) -> str:
    shown = item if isinstance(item, str) else json.dumps(item, ensure_ascii=False, indent=2)
    body = f"Map item [{index}]:\n{shown}"
    if instruction is None:
        return f"{body}\n\nAnswer for this item alone."
    # One pass: what is inserted is not looked at again.
    rendered = MARKERS.sub(lambda m: shown if m[1] == "item" else str(index), instruction)
    return f"{rendered}\n\n{body}"


def _stop(session: Session, node: Map, unfinished: list[ChildRecord]) -> None:
    session.pending.cancel = [child.id for child in unfinished]
    for child in unfinished:
        child.status = "cancelled"
        child.result = {"output": None, "error": {"code": "timeout", "message": "the map's time was over"}}
        session.emit("map.item.failed", index=child.position, code="timeout", message="the map's time was over")
    if node.on_timeout == "fail":
        words = f"the map was not done within {node.timeout_ms} ms: {len(unfinished)} items were open"
        raise RunFailure("timed_out", words)


def _result(session: Session, node: Map, child: ChildRecord, *, queued: bool) -> dict[str, Json]:
    brought = dict(
        child.result or {"output": None, "error": {"code": "cancelled", "message": "the item was cancelled"}}
    )
    brought.pop("blocked", None)
    most = node.max_tokens_per_item
    if queued and isinstance(session.state.get("mapMaxTokensPerItem"), int):
        most = session.state["mapMaxTokensPerItem"]
    if most is not None:
        brought["output"] = _cut(brought.get("output"), most * CHARS_PER_TOKEN)
    return {"index": child.position, "item": child.item, **brought}


def _cut(output: Json, chars: int) -> Json:
    if isinstance(output, str):
        return output[:chars]
    if isinstance(output, dict) and isinstance(output.get("content"), str):
        return output | {"content": output["content"][:chars]}
    return output


def _finish(session: Session, node: Map, results: list[dict[str, Json]], *, timed_out: bool, queued: bool) -> Done:
    failed = sum("error" in r for r in results)
    session.emit("map.completed", ok=len(results) - failed, failed=failed, timedOut=timed_out)
    fanout.close(session)
    session.output, session.output_ref = {"results": results}, None
    if results:
        fanout.tell(session, "Map results", results)
    if queued:
        for key in ("mapItems", "mapInstruction", "mapMaxTokensPerItem"):
            session.remove(key)
    return Done(durable=bool(results))
