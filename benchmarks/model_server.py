"""A model server that costs next to nothing: OpenAI-compatible, one event loop, answers from a list of turns.

    python -m benchmarks.model_server TURNS_FILE DELAY_MS ASKED_FILE

The turn follows from the answers a conversation already holds; the last one repeats. Each request is a line of
ASKED_FILE: the task it is about and that number, so that a benchmark can tell whether a run ever went back.
"""

import asyncio
import json
import re
import sys
from pathlib import Path
from typing import Any

import uvicorn

#: Where an instruction names its task (see `projects.write`).
TASK = re.compile(rb"Work on ([\w-]+)\.")


class Server:
    """An ASGI application."""

    def __init__(self, turns: list[dict[str, Any]], delay_s: float, asked: Path) -> None:
        self._answers = [_completion(turn) for turn in turns]
        self._delay_s = delay_s
        self._asked = asked.open("a", buffering=1, encoding="utf-8")

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        said = sum(message["role"] == "assistant" for message in json.loads(body)["messages"])
        found = TASK.search(body)
        self._asked.write(f"{found[1].decode() if found else '-'} {said}\n")
        if self._delay_s:
            await asyncio.sleep(self._delay_s)
        answer = self._answers[min(said, len(self._answers) - 1)]
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(answer)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})


def _completion(turn: dict[str, Any]) -> bytes:
    message: dict[str, Any] = {"role": "assistant", "content": turn.get("text")}
    if calls := turn.get("calls"):
        message["tool_calls"] = [
            {
                "id": f"call_{n}",
                "type": "function",
                "function": {"name": call["name"], "arguments": json.dumps(call["args"])},
            }
            for n, call in enumerate(calls)
        ]
    usage = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    about = {"id": "stub", "object": "chat.completion", "created": 0, "model": "stub"}
    return json.dumps(about | {"choices": [choice], "usage": usage}).encode()


def main() -> None:
    turns, delay_ms, asked = sys.argv[1:]
    app = Server(json.loads(Path(turns).read_text(encoding="utf-8")), int(delay_ms) / 1000, Path(asked))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", access_log=False, lifespan="off"))

    async def serve() -> None:
        serving = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        sys.stdout.write(f"http://127.0.0.1:{port}/v1\n")
        sys.stdout.flush()
        await serving

    asyncio.run(serve())


if __name__ == "__main__":
    main()
