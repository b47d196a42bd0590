"""A studio that asks to wait: how long it is waited for, and what is asked again."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx2
import pytest

from orchestrator.client import Client
from orchestrator.patience import UNSAID_S, Busy

OURS, FULL, STRANGE = (
    '{"error": "too often", "code": "rate_limited"}',
    '{"error": "full", "code": "queue_full"}',
    "<p>no",
)


def busy(body: str, wait: str | None) -> Busy:
    from orchestrator.client import _error

    headers = {} if wait is None else {"retry-after": wait}
    error = _error(httpx2.Response(429, headers=headers, text=body))
    assert isinstance(error, Busy)
    return error


@pytest.mark.parametrize(
    ("body", "wait", "repeats"),
    [
        (OURS, "3", {"GET", "DELETE", "POST", "PATCH", "POST with a key"}),
        (OURS, None, {"GET", "DELETE", "POST with a key"}),  # a skill's own rate: something may have been done
        (FULL, "3", {"GET", "DELETE", "POST with a key"}),
        (STRANGE, "3", {"GET", "DELETE", "POST with a key"}),  # of somebody between us
    ],
)
def test_only_what_can_do_nothing_twice_is_asked_again(body: str, wait: str | None, repeats: set[str]) -> None:
    given = busy(body, wait)
    asked = {method for method in ("GET", "DELETE", "POST", "PATCH") if given.may_repeat(method, {})}
    asked |= {"POST with a key"} if given.may_repeat("POST", {"idempotency-key": "k"}) else set()

    assert asked == repeats


@pytest.mark.parametrize(("wait", "seconds"), [("3", 3), (None, UNSAID_S), ("soon", UNSAID_S), ("-1", UNSAID_S)])
def test_it_waits_what_was_asked_for_and_a_little_more(wait: str | None, seconds: float) -> None:
    given = busy(STRANGE, wait)
    pauses = {given.pause() for _ in range(20)}

    assert given.wait_s == seconds
    assert min(pauses) >= seconds
    assert max(pauses) <= seconds + 1
    assert len(pauses) > 1


class Reluctant(BaseHTTPRequestHandler):
    """A studio that refuses the first requests and then answers."""

    times, wait = 0, "0"
    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        refused = len(self.asked) <= self.times
        body = (OURS if refused else '{"id": "x"}').encode()
        self.send_response(429 if refused else 200)
        self.send_header("retry-after", self.wait)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        """Nothing is said."""


@contextmanager
def studio(times: int, wait: str) -> Iterator[tuple[Client, list[str]]]:
    asked: list[str] = []
    handler = type("Handler", (Reluctant,), {"asked": asked, "times": times, "wait": wait})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        with Client(f"http://127.0.0.1:{server.server_address[1]}", key="ofk_x") as client:
            yield client, asked
    finally:
        server.shutdown()
        server.server_close()


def test_a_call_waits_its_turn_and_is_made() -> None:
    with studio(times=2, wait="0") as (client, asked):
        assert client.ask("POST", "studio/projects/x/cancel") == {"id": "x"}

    assert len(asked) == 3


@pytest.mark.parametrize("wait", ["121", "80000"])
def test_a_wait_beyond_its_patience_is_told_at_once(wait: str) -> None:
    with studio(times=9, wait=wait) as (client, asked), pytest.raises(Busy, match="too often"):
        client.project("x")

    assert len(asked) == 1


def test_a_follower_gives_up_on_a_wait_that_is_too_long() -> None:
    with studio(times=9, wait="301") as (client, asked), pytest.raises(Busy, match="too often"):
        list(client.events("x", follow=True))

    assert len(asked) == 1
