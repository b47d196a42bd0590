"""A trace as a stream of server-sent events."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial

from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from starlette.responses import StreamingResponse
from starlette.types import Send

from orchestrator.api.feed import Feed
from orchestrator.api.overhearing import EVENT, Overhearing
from orchestrator.api.standing import Standing
from orchestrator.keys import Who
from orchestrator.sections import Api

log = logging.getLogger(__name__)


class EventStream(StreamingResponse):
    """The lines of a trace after a number, as they come, until its project has ended.

    A client that leaves them unread is let go after a while: it comes back with the number of the last one it has.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        feed: Feed,
        trace_id: str,
        after: int,
        api: Api,
        overhearing: Overhearing | None = None,
        *,
        who: Who,
        standing: Standing,
    ) -> None:
        """
        Args:
            overhearing: what agents say while they say it comes between the lines, without a number.
            who: whoever asked; it ends when their key or session does.
        """
        self._slow_s, self._who, self._standing = api.slow_s, who, standing
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        text = _text(feed, trace_id, after)
        super().__init__(text if overhearing is None else _with_pieces(text, overhearing, trace_id), headers=headers)

    async def stream_response(self, send: Send) -> None:
        """Sends what comes, each piece within the time a client may take."""
        start = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        await send(start)
        try:
            async with asyncio.timeout(self._seconds_left()) as granted:
                with self._standing.watch(self._who, partial(_expire, granted)):
                    await self._send_pieces(send)
        except TimeoutError:
            if not granted.expired():
                log.info("a stream was left unread for %g s and is let go", self._slow_s)
                return
            log.info("a stream outlived the key or session it was asked with")
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send_pieces(self, send: Send) -> None:
        async for piece in self.body_iterator:
            async with asyncio.timeout(self._slow_s):
                await send({"type": "http.response.body", "body": piece, "more_body": True})

    def _seconds_left(self) -> float | None:
        return None if self._who.until is None else max(0.0, self._who.until / 1000 - time.time())


def _expire(granted: asyncio.Timeout) -> None:
    with suppress(RuntimeError):  # its time has just come anyway
        granted.reschedule(0)


async def _with_pieces(text: AsyncIterator[bytes], overhearing: Overhearing, trace_id: str) -> AsyncIterator[bytes]:
    """The text of a stream with what is overheard between it; it ends where the text does."""
    with overhearing.of(trace_id) as pieces:
        line, piece = asyncio.ensure_future(anext(text)), asyncio.ensure_future(pieces.take())
        try:
            while True:
                await asyncio.wait({line, piece}, return_when=asyncio.FIRST_COMPLETED)
                if piece.done():
                    yield b"".join(format_sse_event(data_str=one, event=EVENT) for one in piece.result())
                    piece = asyncio.ensure_future(pieces.take())
                if line.done():
                    try:
                        yield line.result()
                    except StopAsyncIteration:
                        return
                    line = asyncio.ensure_future(anext(text))
        finally:
            line.cancel()
            piece.cancel()
            await asyncio.gather(line, piece, return_exceptions=True)


async def _text(feed: Feed, trace_id: str, after: int) -> AsyncIterator[bytes]:
    yield b": officina\n\n"  # the headers leave at once, and whoever waits knows that it is heard
    async for lines in feed.follow(trace_id, after):
        yield b"".join(line.text for line in lines) if lines else KEEPALIVE_COMMENT
