"""A conversation with a plugin over its two pipes: lines of JSON in, lines of JSON out, all of them bounded."""

import json
from collections.abc import Callable
from typing import Final

from registry.base import Json
from registry.errors import SkillError
from registry.jsontext import JsonFault, has_lone_surrogate, parse

#: Bytes of one line of a plugin, and of all of them: an answer fits, and a plugin that talks without end does not.
MAX_LINE: Final = 5 * 1024 * 1024
MAX_SAID: Final = 32 * 1024 * 1024
#: Things one call may ask for.
MAX_ASKED: Final = 200


class Conversation:
    """One call: what the plugin says (`workers.sandbox.supervise.Talk`), and what it came to."""

    def __init__(self, serve: Callable[[str, dict[str, Json]], Json]) -> None:
        """
        Args:
            serve: does what the plugin asks for; raises `SkillError`.
        """
        self._serve = serve
        self._line = bytearray()
        self._out: list[bytes] = []
        self._asked = 0
        self.seen = 0
        self.over = False
        self.answered = False
        self.value: Json = None
        #: What the plugin says of its own failure.
        self.failed: str | None = None
        #: Why nothing it says counts any more.
        self.fault: str | None = None

    #: Part of `Stream`: nothing is kept.
    data: bytes = b""
    truncated: bool = False

    def add(self, part: bytes) -> None:
        """Takes what the plugin wrote, and answers each whole line."""
        self.seen += len(part)
        if self.over:
            return
        self._line += part
        while not self.over and (end := self._line.find(b"\n")) >= 0:
            line = bytes(self._line[:end])
            del self._line[: end + 1]
            self._heard(line)
        if not self.over and (len(self._line) > MAX_LINE or self.seen > MAX_SAID):
            self._break("it said more than a call may")

    def take(self) -> bytes:
        said, self._out = b"".join(self._out), []
        return said

    def _heard(self, line: bytes) -> None:
        try:
            if len(line) > MAX_LINE:
                raise JsonFault("too long")
            said = parse(line)
        except JsonFault:
            return self._break("it said something that is no line of JSON")
        if not isinstance(said, dict) or has_lone_surrogate(said):
            return self._break("it said something that is no message")
        if "done" in said:
            self.value, self.answered, self.over = without_nul(said["done"]), True, True
        elif "failed" in said:
            self.failed, self.over = str(without_nul(str(said["failed"])))[:1000], True
        elif isinstance(said.get("ask"), str) and isinstance(said.get("given"), dict):
            self._answer(said["ask"], without_nul(said["given"]))
        else:
            self._break("it said something that is no message")
        return None

    def _answer(self, use: str, given: dict[str, Json]) -> None:
        self._asked += 1
        if self._asked > MAX_ASKED:
            return self._break(f"it asked for more than {MAX_ASKED} things")
        try:
            answer: dict[str, Json] = {"ok": self._serve(use, given)}
        except SkillError as error:
            answer = {"error": {"code": error.code, "message": error.message}}
        self._out.append(json.dumps(answer, separators=(",", ":")).encode() + b"\n")
        return None

    def _break(self, why: str) -> None:
        self.fault, self.over = why, True
        self._line.clear()


def without_nul(value: Json) -> Json:
    """The same without NUL, which no database keeps in a text."""
    if isinstance(value, str):
        return value.replace("\0", "")
    if isinstance(value, list):
        return [without_nul(one) for one in value]
    if isinstance(value, dict):
        return {without_nul(key): without_nul(one) for key, one in value.items()}
    return value


__all__ = ["MAX_ASKED", "MAX_LINE", "MAX_SAID", "Conversation", "without_nul"]
