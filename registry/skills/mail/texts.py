"""What strangers wrote, as text a model can read: charsets, encoded words, addresses, dates, bodies."""

import contextlib
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from email.errors import HeaderParseError
from email.header import decode_header
from email.utils import getaddresses, parsedate_to_datetime
from typing import Final

from registry.skills.charsets import codec_of
from registry.skills.mail import page
from registry.skills.mail.mime import Part

#: Characters of one header that are looked at.
HEADER_CHARS: Final = 8_000
MAX_ADDRESSES: Final = 50
MAX_ATTACHMENTS: Final = 100
#: Bytes from which on a charset is guessed: fewer fit too many.
GUESSABLE: Final = 100

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_BLANKS = re.compile(r"\s+")


def decode(raw: bytes, charset: str | None) -> str:
    """Bytes as text: in the charset they claim, else UTF-8, else the likeliest; what cannot be read becomes U+FFFD."""
    codec = codec_of(charset or "")
    if codec is not None:
        with contextlib.suppress(UnicodeError):
            return raw.decode(codec, "replace")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        pass
    return raw.decode(_likeliest(raw), "replace")


def _likeliest(raw: bytes) -> str:
    if len(raw) < GUESSABLE:
        return "cp1252"
    from charset_normalizer import from_bytes

    found = from_bytes(raw[:20_000]).best()
    return found.encoding if found else "cp1252"


def clean(text: str) -> str:
    """Without control characters and halves of characters; line breaks are LF."""
    return _CONTROLS.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def one_line(text: str, limit: int) -> str:
    """A header's text: one line, cut."""
    return _CONTROLS.sub("", _BLANKS.sub(" ", text)).strip()[:limit]


def words(value: object, limit: int = 500) -> str:
    """A header with its encoded words read (RFC 2047)."""
    raw = str(value or "")[:HEADER_CHARS]
    try:
        pieces = decode_header(raw)
    except (HeaderParseError, ValueError):
        return one_line(raw, limit)
    text = "".join(
        piece if isinstance(piece, str) else decode(piece, charset if charset != "unknown-8bit" else None)
        for piece, charset in pieces
    )
    return one_line(_repaired(text), limit)


def addresses(values: Sequence[object]) -> list[str]:
    """Who stands in address headers, as `Name <address>`; the address is what counts, the name is anybody's claim."""
    raw = [str(value)[:HEADER_CHARS] for value in values]
    try:
        pairs = getaddresses(raw)
    except (RecursionError, ValueError, IndexError):
        return [line for value in raw if (line := words(value))]
    found = []
    for name, address in pairs:
        # The name is quoted where it could pass for an address of its own.
        who, where = words(name, 200), one_line(address, 320)
        if who and any(character in who for character in '<>@",'):
            who = '"' + who.replace('"', "'") + '"'
        if who or where:
            found.append(f"{who} <{where}>" if who and where else who or where)
    return found[:MAX_ADDRESSES]


def date(value: object, fallback: datetime | None) -> str | None:
    """A mail's date in ISO 8601, as its writer dates it; else when it arrived."""
    try:
        found: datetime | None = parsedate_to_datetime(str(value)[:200]) if value else None
        if found is not None:
            return (found if found.tzinfo else found.replace(tzinfo=UTC)).isoformat()
    except (ValueError, TypeError, IndexError, OverflowError):
        pass
    return fallback.isoformat() if fallback else None


def body(message: Part, limit: int) -> tuple[str, bool]:
    """What a person would read of a message, and whether more of it was left out."""
    texts = list(_readable(message))
    text, cut = "", False
    for part in texts:
        raw, more = part.text_bytes()
        piece = decode(raw, part.charset)
        piece = clean(page.to_text(piece) if part.kind == "text/html" else piece).strip("\n")
        text += ("\n\n" if text and piece else "") + piece
        cut = cut or more
        if len(text) > limit:
            return text[:limit], True
    return text, cut


def attachments(message: Part) -> list[dict[str, str | int]]:
    """What hangs on a message, by name, type and size."""
    found = [_attachment(part) for part in _leaves(message) if part.attached]
    return found[:MAX_ATTACHMENTS]


def _repaired(text: str) -> str:
    """Raw 8-bit bytes of a header, which the parser keeps as lone surrogates."""
    if not any("\udc80" <= character <= "\udcff" for character in text):
        return text
    return decode(text.encode("utf-8", "surrogateescape"), None)


def _readable(part: Part) -> list[Part]:
    """The parts to read, in order: of alternatives the plain one, unless it is blank."""
    if part.parts:
        each = [_readable(child) for child in part.parts]
        if part.kind != "multipart/alternative":
            return [one for found in each for one in found]
        plain = [found for found in each if any(one.kind != "text/html" and not _blank(one) for one in found)]
        return plain[0] if plain else next((found for found in reversed(each) if found), [])
    return [] if part.attached or part.kind not in ("text/plain", "text/html") else [part]


def _blank(part: Part) -> bool:
    return not part.text_bytes()[0].strip()


def _leaves(part: Part) -> list[Part]:
    return [leaf for child in part.parts for leaf in _leaves(child)] if part.parts else [part]


def _attachment(part: Part) -> dict[str, str | int]:
    name = words(part.filename, 400) or words(part.headers.get("Content-Description"), 200)
    # A name, not a way: what would be a path elsewhere is none here.
    name = re.split(r"[/\\]", name)[-1].strip(". ")[:200]
    return {"name": name or "unnamed", "type": one_line(part.kind, 100), "bytes": part.size}


__all__ = ["addresses", "attachments", "body", "clean", "date", "decode", "one_line", "words"]
