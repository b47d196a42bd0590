"""Our message rows in the form of the chat completions API (spec: engine 5.4)."""

import hashlib
import re

from registry.base import Json
from registry.fencing import fenced, tagged
from registry.jsontext import compact

#: What the API takes as the name of a tool and as the id of a call.
_NAME, _ID = re.compile(r"[^A-Za-z0-9_-]"), re.compile(r"^[A-Za-z0-9_-]{1,40}$")
MAX_NAME = 64


def to_api(system: str, rows: list[dict[str, Json]]) -> list[dict[str, Json]]:
    """System text and history as API messages, in order."""
    head: list[dict[str, Json]] = [{"role": "system", "content": system}] if system else []
    # A conversation needs a first word; most servers refuse one without.
    return head + ([_message(row) for row in rows] or [{"role": "user", "content": "Begin."}])


def wire_name(name: str) -> str:
    """A tool name as the API takes it: dots become `__`; what a model made up keeps as much as it may."""
    return _NAME.sub("_", name.replace(".", "__"))[:MAX_NAME] or "unknown"


def wire_id(call_id: Json) -> str:
    """A call id as the API takes it; ids of our own can be longer than that and get a digest of themselves."""
    text = call_id if isinstance(call_id, str) else compact(call_id)
    if _ID.match(text):
        return text
    return "call_" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _message(row: dict[str, Json]) -> dict[str, Json]:
    content, kind = _text(row.get("content")), row.get("kind")
    if row.get("role") == "tool":
        return {"role": "tool", "tool_call_id": wire_id(row.get("toolCallId")), "content": _fenced(row, content)}
    if kind == "note":
        return {"role": "user", "content": tagged("note", content)}
    if kind == "compaction":
        return {"role": "user", "content": tagged("summary", content)}
    if row.get("role") == "assistant":
        return _assistant(content, row.get("toolCalls") or [])
    # Whatever else stands in a history came from outside: it never speaks as the system.
    return {"role": "user", "content": content + _attached(row.get("attachments"))}


def _fenced(row: dict[str, Json], content: str) -> str:
    """A tool's words; those that came from outside stand in a tag that says so and that they cannot close."""
    outside = row.get("outside")
    if not isinstance(outside, int) or not content:
        return content
    return fenced(content[:outside]) + content[outside:]


def _assistant(content: str, calls: list[dict[str, Json]]) -> dict[str, Json]:
    if not calls:
        return {"role": "assistant", "content": content}
    return {"role": "assistant", "content": content or None, "tool_calls": [_call(call) for call in calls]}


def _call(call: dict[str, Json]) -> dict[str, Json]:
    """Arguments that were no object go back inside one: some servers refuse a history that holds bad JSON."""
    args = call.get("args")
    arguments = args if isinstance(args, dict) else {"notAnObject": args}
    function = {"name": wire_name(str(call.get("name") or "")), "arguments": compact(arguments)}
    return {"id": wire_id(call.get("id")), "type": "function", "function": function}


def _text(content: Json) -> str:
    return content if isinstance(content, str) else "" if content is None else compact(content)


def _attached(attachments: Json) -> str:
    """Attachments by name only; the model reads them with its tools."""
    if not isinstance(attachments, list) or not attachments:
        return ""
    names = [
        str(each.get("path") or each.get("name") or "?") if isinstance(each, dict) else str(each)
        for each in attachments
    ]
    return f"\n\nAttached: {', '.join(names)}"
