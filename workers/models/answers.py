"""What a chat completions server answered, read with care: anything may be missing, cut off or of another kind."""

import json
from collections.abc import Mapping
from typing import Any

from registry.base import Json
from registry.jsontext import JsonFault, parse
from workers.models import prices, tokens
from workers.models.messages import wire_name
from workers.models.model import FinishReason, Reply, Request, ToolCall, Usage
from workers.models.scrub import scrub
from workers.models.tiers import Endpoint

REASONS: dict[str, FinishReason] = {"length": "length", "content_filter": "content-filter"}
#: Tokens beyond which a usage count is taken for a mistake of the server.
MAX_COUNT = 1_000_000_000


class BrokenAnswer(ValueError):
    """The body is no chat completion; the message says why."""


def of(answer: Mapping[str, Any], endpoint: Endpoint, request: Request, *, duration_ms: int) -> Reply:
    """One reply out of an answer.

    Raises:
        BrokenAnswer: it has no message.
    """
    choice = _first(answer.get("choices"))
    message = choice.get("message")
    if not isinstance(message, dict):
        raise BrokenAnswer("it holds no message")
    reason = REASONS.get(str(choice.get("finish_reason")), "stop")
    calls = _calls(message, request, cut=reason == "length")
    text = scrub(_text(message.get("content")) or _text(message.get("refusal")))
    usage = _usage(answer.get("usage")) or tokens.estimated(request, text, calls)
    return Reply(
        text=text,
        calls=calls,
        finish_reason="tool-calls" if calls else reason,
        usage=usage,
        model=endpoint.name,
        cost_micro=prices.cost_micro(endpoint, usage),
        reasoning=scrub(_text(message.get("reasoning_content")) or _text(message.get("reasoning"))) or None,
        duration_ms=duration_ms,
    )


def whole(body: bytes) -> dict[str, Any]:
    """The answer in a response body.

    Raises:
        BrokenAnswer: it is no JSON object, or holds an error.
    """
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        raise BrokenAnswer("it is no JSON") from None
    if not isinstance(answer, dict):
        raise BrokenAnswer("it is no JSON object")
    if answer.get("error"):
        error = answer["error"]
        words = error.get("message") if isinstance(error, dict) else error
        raise BrokenAnswer(f"it holds an error: {str(words)[:300]}")
    return answer


def _first(choices: Json) -> dict[str, Any]:
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise BrokenAnswer("it holds no choice")
    return choices[0]


def _text(content: Json) -> str:
    """Words as a text; some servers send a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str))


def _calls(message: Mapping[str, Json], request: Request, *, cut: bool) -> list[ToolCall]:
    """The calls under the names of the request's tools; names nobody offered stay as the model wrote them.

    Where the length limit cut the answer off, a call whose arguments are not whole was never made.
    """
    names = {wire_name(tool.name): tool.name for tool in request.tools}
    listed = message.get("tool_calls")
    found = (
        [_call(each, names, cut=cut) for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    )
    calls = [call for call in found if call is not None]
    return [call for call in calls if isinstance(call.arguments, dict)] if cut else calls


def _call(call: Mapping[str, Json], names: Mapping[str, str], *, cut: bool) -> ToolCall | None:
    function = call.get("function")
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        return None
    name, call_id = scrub(function["name"]), call.get("id")
    known_id = scrub(call_id) if isinstance(call_id, str) and call_id else None
    written = function.get("arguments")
    if written is None or written == "":
        # No arguments at all mean none, unless the answer ended just before them.
        return None if cut else ToolCall(known_id, names.get(name, name), {})
    return ToolCall(known_id, names.get(name, name), _arguments(written))


def _arguments(written: Json) -> Json:
    """The object the model wrote, or its text as it stands when it is none."""
    text = written if isinstance(written, str) else json.dumps(written)
    try:
        value = parse(text)
    except JsonFault:
        return scrub(text)
    return scrub(value) if isinstance(value, dict) else scrub(text)


def _usage(counts: Json) -> Usage | None:
    if not isinstance(counts, dict):
        return None
    given, made = _count(counts.get("prompt_tokens")), _count(counts.get("completion_tokens"))
    if given is None or made is None or given + made == 0:
        return None
    details = counts.get("prompt_tokens_details")
    cached = _count(details.get("cached_tokens")) if isinstance(details, dict) else None
    return Usage(given, made, min(cached or 0, given))


def _count(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_COUNT else None
