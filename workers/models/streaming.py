"""An answer that comes word by word, put together into the one it would have been (server-sent events of the API).

Servers differ: some number their calls, some send a call whole, some say how much was used in a last event without
choices, some never say that they are done. What was put together is read as any other answer is.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from registry.base import Json
from workers.models.answers import BrokenAnswer

#: The end of a stream, in the API's own words.
DONE: Final = "[DONE]"
#: Pieces and calls one answer may have.
MAX_PIECES, MAX_CALLS = 200_000, 1_000

#: What is heard of an answer while it comes: words, visible reasoning, or that it begins anew.
Piece = Literal["text", "reasoning", "again"]
Hear = Callable[[Piece, str], None]


def read(lines: Iterable[str], hear: Hear) -> dict[str, Json]:
    """The whole answer, each piece of which was heard as it came.

    Raises:
        BrokenAnswer: an event is no JSON object or holds an error, or the stream ended before the answer did.
    """
    made = _Answer()
    for event in _events(lines):
        made.take(event, hear)
    if made.finish_reason is None:
        raise BrokenAnswer("the stream ended in the middle of it")
    return made.whole()


def _events(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    data: list[str] = []
    for line in lines:
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line and data:
            text, data = "\n".join(data), []
            if text.strip() == DONE:
                return
            yield _parsed(text)
    if data and (text := "\n".join(data)).strip() != DONE:
        yield _parsed(text)


def _parsed(text: str) -> dict[str, Any]:
    try:
        event = json.loads(text)
    except (ValueError, RecursionError):
        raise BrokenAnswer("an event of the stream is no JSON") from None
    if not isinstance(event, dict):
        raise BrokenAnswer("an event of the stream is no JSON object")
    return event


@dataclass
class _Answer:
    """What has come so far."""

    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    refusal: list[str] = field(default_factory=list)
    calls: dict[Any, dict[str, Any]] = field(default_factory=dict)
    finish_reason: str | None = None
    usage: Json = None
    pieces: int = 0

    def take(self, event: dict[str, Any], hear: Hear) -> None:
        self.pieces += 1
        if self.pieces > MAX_PIECES:
            raise BrokenAnswer("the stream has too many events")
        if event.get("error"):
            error = event["error"]
            words = error.get("message") if isinstance(error, dict) else error
            raise BrokenAnswer(f"it holds an error: {str(words)[:300]}")
        if event.get("usage"):
            self.usage = event["usage"]
        choices = event.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return
        if isinstance(choice.get("finish_reason"), str):
            self.finish_reason = choice["finish_reason"]
        # A server that does not really stream sends the message itself.
        delta = choice.get("delta") or choice.get("message")
        if isinstance(delta, dict):
            self._add(delta, hear)

    def whole(self) -> dict[str, Json]:
        """The answer in the form of one that was not streamed."""
        message: dict[str, Json] = {
            "role": "assistant",
            "content": "".join(self.text) or None,
            "reasoning_content": "".join(self.reasoning) or None,
            "refusal": "".join(self.refusal) or None,
            "tool_calls": [_joined(call) for call in self.calls.values()] or None,
        }
        return {"choices": [{"message": message, "finish_reason": self.finish_reason}], "usage": self.usage}

    def _add(self, delta: dict[str, Any], hear: Hear) -> None:
        for piece in _texts(delta.get("content")):
            self.text.append(piece)
            hear("text", piece)
        for piece in _texts(delta.get("reasoning_content") or delta.get("reasoning")):
            self.reasoning.append(piece)
            hear("reasoning", piece)
        self.refusal += _texts(delta.get("refusal"))
        listed = delta.get("tool_calls")
        for call in listed if isinstance(listed, list) else []:
            if isinstance(call, dict):
                self._add_call(call)

    def _add_call(self, call: dict[str, Any]) -> None:
        """A call is told from the others by its number; where there is none, a new id or name begins a new one."""
        given = call.get("function")
        function: dict[str, Any] = given if isinstance(given, dict) else {}
        number = call.get("index")
        if not isinstance(number, int):
            begins = bool(call.get("id") or function.get("name")) or not self.calls
            number = ("unnumbered", len(self.calls)) if begins else next(reversed(self.calls))
        if number not in self.calls and len(self.calls) >= MAX_CALLS:
            raise BrokenAnswer("it holds too many calls")
        known = self.calls.setdefault(number, {"id": None, "name": None, "arguments": []})
        known["id"] = known["id"] or call.get("id")
        # Some servers repeat the name in every piece.
        known["name"] = known["name"] or function.get("name")
        arguments = function.get("arguments")
        if arguments is not None:
            known["arguments"].append(arguments if isinstance(arguments, str) else json.dumps(arguments))


def _joined(call: dict[str, Any]) -> dict[str, Json]:
    function = {"name": call["name"], "arguments": "".join(call["arguments"])}
    return {"id": call["id"], "type": "function", "function": function}


def _texts(content: Json) -> list[str]:
    if isinstance(content, str):
        return [content] if content else []
    parts = content if isinstance(content, list) else []
    return [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]
