"""A file as an answer: always an attachment, never shown in our origin, a part of it when a part is asked for."""

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.responses import Response, StreamingResponse

from orchestrator.api.replies import problem
from orchestrator.downloads import Download

_CHUNK: Final = 256 * 1024
_RANGE: Final = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


def sent(download: Download, asked: Headers) -> Response:
    """The file whole (200), or the one range that was asked for (206, 416); the file is closed when it is sent."""
    etag = f'"{download.version}"'
    headers = {
        "accept-ranges": "bytes",
        "content-disposition": attachment(download.name),
        "content-type": "application/octet-stream",
        "content-security-policy": "sandbox; default-src 'none'",
        "etag": etag,
    }
    if asked.get("if-none-match") == etag:
        download.file.close()
        return Response(status_code=304, headers={"etag": etag})
    wanted = asked.get("range") if asked.get("if-range", etag) == etag else None
    try:
        span = _span(wanted, download.bytes)
    except ValueError:
        download.file.close()
        words = f"the file has {download.bytes} bytes"
        return problem(416, "range", words, headers={"content-range": f"bytes */{download.bytes}"})
    first, length = span or (0, download.bytes)
    headers["content-length"] = str(length)
    if span is not None:
        headers["content-range"] = f"bytes {first}-{first + length - 1}/{download.bytes}"
    return StreamingResponse(_pieces(download, first, length), 200 if span is None else 206, headers=headers)


def _span(wanted: str | None, size: int) -> tuple[int, int] | None:
    """First byte and number of bytes of a range; None: it is no single range, and means the whole.

    Raises:
        ValueError: nothing of it is there.
    """
    found = _RANGE.fullmatch(wanted) if wanted else None
    low, high = found.groups() if found else ("", "")
    if not low and not high:
        return None
    if not low:
        first, last = max(size - int(high), 0), size - 1
    else:
        first, last = int(low), min(int(high), size - 1) if high else size - 1
        if high and int(high) < first:
            return None
    if first >= size:
        raise ValueError("outside")
    return first, last - first + 1


def _pieces(download: Download, first: int, length: int) -> Iterator[bytes]:
    with download.file as file:
        file.seek(first)
        while length > 0 and (piece := file.read(min(_CHUNK, length))):
            length -= len(piece)
            yield piece
        # Cut short meanwhile: what was promised is not there any more, and the client has to see that.
        if length:
            raise OSError("the file became shorter while it was read")


def attachment(name: str) -> str:
    """The value of `content-disposition` for a file that is saved and not shown."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "._- ") else "_" for c in name)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"
