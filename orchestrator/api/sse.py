"""A trace as a stream of server-sent events."""

import asyncio
import logging
from collections.abc import AsyncIterator

from fastapi.sse import KEEPALIVE_COMMENT
from starlette.responses import StreamingResponse
from starlette.types import Send

from orchestrator.api.feed import Feed
from orchestrator.sections import Api

log = logging.getLogger(__name__)


class EventStream(StreamingResponse):
    """The lines of a trace after a number, as they come, until its project has ended.

    A client that leaves them unread is let go after a while: it comes back with the number of the last one it has.
    """

    media_type = "text/event-stream"

    def __init__(self, feed: Feed, trace_id: str, after: int, api: Api) -> None:
        self._slow_s = api.slow_s
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        super().__init__(_text(feed, trace_id, after), headers=headers)

    async def stream_response(self, send: Send) -> None:
        """Sends what comes, each piece within the time a client may take."""
        start = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        await send(start)
        try:
            async for piece in self.body_iterator:
                async with asyncio.timeout(self._slow_s):
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
        except TimeoutError:
            log.info("a stream was left unread for %g s and is let go", self._slow_s)
            return
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _text(feed: Feed, trace_id: str, after: int) -> AsyncIterator[bytes]:
    yield b": officina\n\n"  # the headers leave at once, and whoever waits knows that it is heard
    async for lines in feed.follow(trace_id, after):
        yield b"".join(line.text for line in lines) if lines else KEEPALIVE_COMMENT
