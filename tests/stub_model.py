"""A stand-alone model server for load tests and examples: OpenAI-compatible, threaded, answers from a list of turns.

    python -m tests.stub_model --port 8099 --turns turns.json

A turn is `{text}`, `{calls: [{name, args, id?}]}` or both, and may add `delayMs`, `finish` (a finish reason),
`reasoning`, `pieceMs` (between the words of a streamed answer), `stream: false` (it comes as a whole all the same),
`usage: false`, `raw` (a body as it is), or `fail: {status, times?, retryAfter?, error?}`: the first so many requests
that reach the turn are refused. A conversation is answered by the turn after the assistant messages it already holds,
so that any number of conversations go on side by side; the last turn repeats. `GET /stats` counts the requests.
"""

import argparse
import json
import re
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
        if broken := broken_rule(body):
            self._send(400, json.dumps({"error": {"message": broken, "type": "invalid_request_error"}}))
            return
        number, turn, fails = self.server.take(body)
        time.sleep(turn.get("delayMs", self.server.delay_ms) / 1000)
        if fails:
            self._fail(turn["fail"])
        elif body.get("stream") and "raw" not in turn and turn.get("stream") is not False:
            self._stream(turn, completion(turn, body, number))
        else:
            self._send(200, turn["raw"] if "raw" in turn else json.dumps(completion(turn, body, number)))

    def _stream(self, turn: dict[str, Any], whole: dict[str, Any]) -> None:
        """The answer word by word, in chunks; `pieceMs` between them."""
        self.send_response(200)
        for name, value in {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"}.items():
            self.send_header(name, value)
        self.end_headers()
        for event in [*pieces(turn, whole), "[DONE]"]:
            data = f"data: {event if isinstance(event, str) else json.dumps(event, ensure_ascii=False)}\n\n".encode()
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            self.wfile.flush()
            time.sleep(turn.get("pieceMs", 0) / 1000)
        self.wfile.write(b"0\r\n\r\n")

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


def broken_rule(body: dict[str, Any]) -> str | None:
    """The rule of the real API that a request breaks: what this server refuses, as that one does."""
    messages = body.get("messages")
    if not isinstance(body.get("model"), str) or not isinstance(messages, list) or not messages:
        return "model and at least one message are required"
    open_calls: list[str] = []
    for place, message in enumerate(messages):
        role, content = message.get("role"), message.get("content")
        if role not in ("system", "developer", "user", "assistant", "tool"):
            return f"messages[{place}].role is invalid"
        if role == "tool":
            if message.get("tool_call_id") not in open_calls:
                return f"messages[{place}]: a tool message has to follow the call it answers"
            open_calls.remove(message["tool_call_id"])
        elif open_calls:
            return f"messages[{place}]: tool calls without a result: {', '.join(open_calls)}"
        if content is None and not message.get("tool_calls"):
            return f"messages[{place}].content is required"
        open_calls += [call["id"] for call in message.get("tool_calls") or []]
    if open_calls:
        return f"tool calls without a result: {', '.join(open_calls)}"
    return _broken_tools(body.get("tools")) or _broken_settings(body, messages)


def _broken_tools(tools: Any) -> str | None:
    names = [tool["function"]["name"] for tool in tools or []]
    if tools is not None and not 1 <= len(names) <= 128:
        return "tools has 1 to 128 entries"
    if wrong := [name for name in names if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name)]:
        return f"invalid tool name {wrong[0]!r}"
    if len(set(names)) != len(names):
        return "tool names are not unique"
    if any(tool["function"].get("parameters", {}).get("type") != "object" for tool in tools or []):
        return "the parameters of a tool have to be of type object"
    return None


def _broken_settings(body: dict[str, Any], messages: list[dict[str, Any]]) -> str | None:
    for name, low, high in (("temperature", 0, 2), ("top_p", 0, 1), ("max_tokens", 1, 10**6)):
        if body.get(name) is not None and not low <= body[name] <= high:
            return f"{name} is out of range"
    if isinstance(body.get("stop"), list) and not 1 <= len(body["stop"]) <= 4:
        return "stop has 1 to 4 entries"
    wants_json = (body.get("response_format") or {}).get("type") == "json_object"
    if wants_json and not any("json" in str(message.get("content")).lower() for message in messages):
        return "'messages' must contain the word 'json' to use 'response_format' of type 'json_object'"
    return None


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


def pieces(turn: dict[str, Any], whole: dict[str, Any]) -> list[dict[str, Any]]:
    """The events of a streamed completion: words one by one, arguments in two halves, at the end what was used."""
    message = whole["choices"][0]["message"]
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": word} for word in re.findall(r"\S+\s*", turn.get("reasoning", ""))]
    deltas += [{"content": word} for word in re.findall(r"\S+\s*", message["content"] or "")]
    for index, call in enumerate(message.get("tool_calls") or []):
        arguments = call["function"]["arguments"]
        middle = len(arguments) // 2
        begun = {**call, "index": index, "function": {**call["function"], "arguments": arguments[:middle]}}
        deltas += [{"tool_calls": [begun]}]
        deltas += [{"tool_calls": [{"index": index, "function": {"arguments": arguments[middle:]}}]}]
    head = {key: whole[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    last = {"index": 0, "delta": {}, "finish_reason": whole["choices"][0]["finish_reason"]}
    events = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    used = [{**head, "choices": [], "usage": whole["usage"]}] if "usage" in whole else []
    return [*events, {**head, "choices": [last]}, *used]


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
