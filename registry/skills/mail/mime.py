"""Taking a message apart within bounds: its parts, their headers, what stands in them (RFC 2045, 2046, 2183).

The standard library's parser is used on headers only. On a whole message it passes every line through every open level
and recurses as deep as the sender likes: a few megabytes of nested short lines keep it busy for minutes. Here a part is
a stretch of the one buffer, found by searching for its boundary, and levels and parts are counted.
"""

import binascii
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.message import Message
from email.parser import BytesHeaderParser
from email.policy import compat32
from typing import Final, TypeVar

MAX_LEVELS: Final = 12
MAX_PARTS: Final = 200
#: Boundary lines looked at in one part: more of them than parts we take are noise.
MAX_MARKS: Final = 2 * MAX_PARTS
#: Bytes of the message's own headers, and of a part's.
HEADER_BYTES: Final = 64 * 1024
PART_HEADER_BYTES: Final = 8 * 1024
#: Encoded bytes of a text that are decoded: many times what a caller may ask to see.
TEXT_BYTES: Final = 1024 * 1024

T = TypeVar("T")

_END_OF_HEADERS = re.compile(rb"\r?\n\r?\n")
_NOT_BASE64 = re.compile(rb"[^A-Za-z0-9+/]")


@dataclass
class Part:
    """A stretch of the message: `raw[start:end]` is its body, still encoded."""

    raw: bytes = field(repr=False)
    headers: Message
    start: int
    end: int
    parts: list["Part"] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """Its media type in lower case."""
        return _quietly(self.headers.get_content_type) or "text/plain"

    @property
    def charset(self) -> str | None:
        found = _quietly(self.headers.get_content_charset)
        return found if isinstance(found, str) else None

    @property
    def filename(self) -> str | None:
        """The name its sender gave, as it stands there; encoded words still in it."""
        return _quietly(self.headers.get_filename)

    @property
    def attached(self) -> bool:
        """Whether it is something to keep and not something to read."""
        disposition = _quietly(self.headers.get_content_disposition)
        return disposition == "attachment" or self.filename is not None or not self.kind.startswith("text/")

    @property
    def encoding(self) -> str:
        return str(self.headers.get("Content-Transfer-Encoding", "")).strip().lower()

    @property
    def size(self) -> int:
        """Bytes it has decoded, without decoding it; for quoted-printable the upper bound."""
        length = self.end - self.start
        if self.encoding != "base64":
            return length
        breaks = self.raw.count(b"\n", self.start, self.end) + self.raw.count(b"\r", self.start, self.end)
        padding = self.raw.count(b"=", max(self.start, self.end - 8), self.end)
        return max(0, (length - breaks) * 3 // 4 - padding)

    def text_bytes(self) -> tuple[bytes, bool]:
        """The decoded beginning of a text, and whether there is more."""
        cut = self.end - self.start > TEXT_BYTES
        body = self.raw[self.start : min(self.end, self.start + TEXT_BYTES)]
        if self.encoding == "base64":
            clean = _NOT_BASE64.sub(b"", body)
            clean = clean[: len(clean) - (len(clean) % 4 == 1)]
            return binascii.a2b_base64(clean + b"=" * (-len(clean) % 4)), cut
        if self.encoding == "quoted-printable":
            return binascii.a2b_qp(body), cut
        return body, cut


def parse(raw: bytes) -> Part:
    """The message as a tree of parts; what lies beyond the bounds is part of the last part within them."""
    return _Reader(raw).message()


def parse_headers(raw: bytes) -> Message:
    """The headers at the beginning of some bytes, cut at what a message's may have."""
    return BytesHeaderParser(policy=compat32).parsebytes(raw[:HEADER_BYTES])


class _Reader:
    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._left = MAX_PARTS

    def message(self) -> Part:
        return self._part(0, len(self._raw), HEADER_BYTES, 0)

    def _part(self, start: int, end: int, header_bytes: int, level: int) -> Part:
        self._left -= 1
        body = self._body(start, end, header_bytes)
        headers = BytesHeaderParser(policy=compat32).parsebytes(self._raw[start : min(body, start + header_bytes)])
        part = Part(self._raw, headers, body, end)
        boundary = _quietly(headers.get_boundary) if part.kind.startswith("multipart/") else None
        if boundary and level < MAX_LEVELS:
            for first, last in self._stretches(part, boundary):
                if self._left <= 0:
                    break
                part.parts.append(self._part(first, last, PART_HEADER_BYTES, level + 1))
        return part

    def _body(self, start: int, end: int, header_bytes: int) -> int:
        """Where the headers of a part end."""
        if self._raw.startswith((b"\n", b"\r\n"), start, end):
            return self._raw.index(b"\n", start) + 1
        found = _END_OF_HEADERS.search(self._raw, start, min(end, start + header_bytes))
        return found.end() if found else min(end, start + header_bytes)

    def _stretches(self, part: Part, boundary: str) -> Iterator[tuple[int, int]]:
        """Begin and end of each part between the boundary lines."""
        mark = b"--" + boundary.encode("ascii", "surrogateescape")
        begin = None
        for first, last, closing in self._marks(part, mark):
            if begin is not None:
                yield begin, max(begin, first)
            begin = None if closing else last
            if closing:
                return
        if begin is not None:  # the message was cut, or its writer forgot the end
            yield begin, part.end

    def _marks(self, part: Part, mark: bytes) -> Iterator[tuple[int, int, bool]]:
        """Boundary lines: where the line break before it begins, where the next line does, whether it is the last."""
        raw, end = self._raw, part.end
        at = part.start
        for _ in range(MAX_MARKS):
            if at == part.start and raw.startswith(mark, at, end):
                found = at
            else:
                found = raw.find(b"\n" + mark, max(part.start, at - 1), end) + 1
            if found == 0:
                return
            at = found + len(mark)
            stop = raw.find(b"\n", at, end)
            stop = end if stop < 0 else stop + 1
            rest = raw[at : min(stop, at + 200)].strip()
            if rest in (b"", b"--"):
                before = found - 1 if found > part.start else found
                before -= raw[before - 1 : before] == b"\r"
                yield before, stop, rest == b"--"
                at = stop


def _quietly(read: Callable[[], T]) -> T | None:
    """What a header says; None where it is so broken that the standard library stumbles over it."""
    try:
        return read()
    except Exception:
        return None


__all__ = ["MAX_LEVELS", "MAX_PARTS", "Part", "parse", "parse_headers"]
