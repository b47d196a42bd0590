"""A stand-alone model server for load tests and examples: OpenAI-compatible, threaded, answers from a list of turns.

    python -m tests.stub_model --port 8099 --turns turns.json

A turn is `{text}`, `{calls: [{name, args, id?}]}` or both, and may add `delayMs`, `finish` (a finish reason),
`usage: false`, `raw` (a body as it is), or `fail: {status, times?, retryAfter?, error?}`: the first so many requests
that reach the turn are refused. A conversation is answered by the turn after the assistant messages it already holds,
so that any number of conversations go on side by side; the last turn repeats. `GET /stats` counts the requests.
"""

import argparse
import json
import sys
import threading
import time
from collections import Counter, deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

DEFAULT_TURNS: list[dict[str, Any]] = [{"text": "Done."}]


class StubModel(ThreadingHTTPServer):
    """The server; `url` is what a client takes as its base URL."""

    daemon_threads = True
    request_queue_size = 512

    def __init__(self, turns: list[dict[str, Any]] | None = None, *, port: int = 0, delay_ms: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.turns = turns or DEFAULT_TURNS
        self.delay_ms = delay_ms
        #: The latest bodies received, and how many there were in all.
        self.latest: deque[dict[str, Any]] = deque(maxlen=100)
        self.requests = 0
        self._failures: Counter[int] = Counter()
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def take(self, body: dict[str, Any]) -> tuple[int, dict[str, Any], bool]:
        """The number of this request, the turn that answers it, and whether it fails this time."""
        said = sum(message.get("role") == "assistant" for message in body.get("messages", []))
        index = min(said, len(self.turns) - 1)
        with self._lock:
            self.requests += 1
            self.latest.append(body)
            fails = self._failures[index] < self.turns[index].get("fail", {}).get("times", 1)
            self._failures[index] += 1
            return self.requests, self.turns[index], fails and "fail" in self.turns[index]

    def handle_error(self, *_: object) -> None:
        """Silent about clients that hang up: they are part of what is tried."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(*_)

    def __enter__(self) -> "StubModel":
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: StubModel
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._send(200, json.dumps({"requests": self.server.requests}))

    def do_POST(self) -> None:
        try:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        except ValueError:
            self._send(400, json.dumps({"error": {"message": "the body is no JSON"}}))
            return
        number, turn, fails = self.server.take(body)
        time.sleep(turn.get("delayMs", self.server.delay_ms) / 1000)
        if fails:
            self._fail(turn["fail"])
        else:
            self._send(200, turn["raw"] if "raw" in turn else json.dumps(completion(turn, body, number)))

    def _fail(self, failure: dict[str, Any]) -> None:
        headers = {"Retry-After": str(failure["retryAfter"])} if "retryAfter" in failure else {}
        error = failure.get("error", {"message": "scripted failure"})
        self._send(failure["status"], json.dumps({"error": error}), headers)

    def _send(self, status: int, text: str, headers: dict[str, str] | None = None) -> None:
        data = text.encode()
        self.send_response(status)
        for name, value in {
            "Content-Type": "application/json",
            "Content-Length": str(len(data)),
            **(headers or {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Silent: a load test would drown in lines."""


def completion(turn: dict[str, Any], body: dict[str, Any], number: int) -> dict[str, Any]:
    """A chat completion that says what the turn says."""
    calls = [
        {
            "id": call.get("id", f"call_{number}_{index}"),
            "type": "function",
            "function": {"name": call["name"], "arguments": _arguments(call.get("args", {}))},
        }
        for index, call in enumerate(turn.get("calls", []))
    ]
    message = {"role": "assistant", "content": turn.get("text"), **({"tool_calls": calls} if calls else {})}
    finish = turn.get("finish") or ("tool_calls" if calls else "stop")
    sent, said = len(json.dumps(body)) // 4, max(1, len(json.dumps(message)) // 4)
    usage = {"prompt_tokens": sent, "completion_tokens": said, "total_tokens": sent + said}
    return {
        "id": f"stub-{number}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": body.get("model", "stub"),
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        **({} if turn.get("usage") is False else {"usage": usage}),
    }


def _arguments(args: Any) -> str:
    """Arguments as the API carries them; a text goes out as it is, so that broken JSON can be tried."""
    return args if isinstance(args, str) else json.dumps(args)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.stub_model", description="A scripted OpenAI-compatible server."
    )
    parser.add_argument("--port", type=int, default=8099, help="port on 127.0.0.1; 0 takes a free one")
    parser.add_argument("--turns", type=Path, help="JSON file with a list of turns")
    parser.add_argument("--delay-ms", type=int, default=0, help="milliseconds before each answer")
    options = parser.parse_args()
    turns = json.loads(options.turns.read_text(encoding="utf-8")) if options.turns else None
    server = StubModel(turns, port=options.port, delay_ms=options.delay_ms)
    print(server.url, flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.server_close()


if __name__ == "__main__":
    main()
