"""A run's memory from its rows: the state with its histories, and `$output` from the rows it refers to."""

import json

from orchestrator.records import RunRecord
from registry.base import Json
from workers.models.model import ToolResult

#: Before a warning of the loop guard, at the end of a tool message.
WARNING = "\n\n[warning] "


def state(record: RunRecord) -> tuple[dict[str, Json], int]:
    """The state with every history in its place, and the number of the last message."""
    whole = dict(record.state)
    for message in [*record.carried, *record.messages]:
        whole.setdefault(message.history, []).append(message.body)
    return whole, record.messages[-1].number if record.messages else 0


def output(record: RunRecord) -> Json:
    """`$output`: a value of its own, or what the rows it names hold."""
    reference = record.output_ref
    if not isinstance(reference, dict):
        return record.output
    if "message" in reference:
        body = next(m.body for m in record.messages if m.number == reference["message"])
        return answer(body)
    done = [c for c in record.calls.values() if c.step == reference["calls"]]
    return {"results": [c.result for c in sorted(done, key=lambda c: c.position)]}


def answer(body: dict[str, Json]) -> dict[str, Json]:
    """`$output` after a model call, from the assistant message it appended."""
    result: dict[str, Json] = {
        "finishReason": body.get("finishReason"),
        "text": body.get("content") or "",
        "toolCalls": body.get("toolCalls") or [],
        "usage": body.get("usage"),
    }
    if body.get("reasoning"):
        result["reasoning"] = body["reasoning"]
    return result


def tool_result(body: dict[str, Json]) -> ToolResult:
    """A tool message as stand-ins see it: its text, and the value when the text is JSON."""
    text = str(body.get("content") or "")
    try:
        value = json.loads(text.split(WARNING)[0])
    except (ValueError, RecursionError):
        value = text
    ok = not body.get("isError") and not body.get("denied")
    return ToolResult(body["toolCallId"], body["name"], ok, value, text)
