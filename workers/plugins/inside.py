"""Runs inside the sandbox, beside the plugin's files: calls one function, and asks outside for what it needs.

It knows nothing of Officina and imports only the standard library. Lines of JSON go both ways: the order comes in, a
question or the answer goes out. What a plugin prints goes to the log; what it writes into the conversation by force
harms only its own call.
"""

import importlib.util
import json
import os
import pathlib
import sys
import traceback
from typing import Any, BinaryIO

PLUGIN = pathlib.Path("in/plugin").resolve()


class OfficinaError(Exception):
    """Something the plugin asked for was refused or failed; `code` says how."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


class Officina:
    """What a plugin may ask for, as far as it was granted."""

    Error = OfficinaError

    def __init__(self, heard: BinaryIO, said: BinaryIO) -> None:
        self._heard, self._said = heard, said

    def _ask(self, use: str, **given: Any) -> Any:
        send(self._said, {"ask": use, "given": given})
        line = self._heard.readline()
        if not line:
            raise OfficinaError("cancelled", "the conversation is over")
        answer = json.loads(line)
        if "error" in answer:
            raise OfficinaError(answer["error"]["code"], answer["error"]["message"])
        return answer["ok"]

    def fetch(
        self,
        url: str,
        method: str = "GET",
        headers: dict[str, str] | None = None,
        body: str | None = None,
        secret: str | None = None,
    ) -> Any:
        """{status, headers, body} of a request to a granted host (net:<host>); `secret` names a connection."""
        return self._ask("fetch", url=url, method=method, headers=headers or {}, body=body, secret=secret)

    def read(self, path: str) -> Any:
        """The text of a workspace file (files:read)."""
        return self._ask("read", path=path)

    def files(self, path: str = ".") -> Any:
        """The paths of a workspace folder (files:read)."""
        return self._ask("files", path=path)

    def write(self, path: str, content: str) -> Any:
        """Writes a text into the workspace (files:write)."""
        return self._ask("write", path=path, content=content)

    def ask(self, prompt: str, system: str = "") -> Any:
        """What the caller's model says (llm)."""
        return self._ask("ask", prompt=prompt, system=system)

    def recall(self, query: str, limit: int = 5) -> Any:
        """What the agent remembers (memory)."""
        return self._ask("recall", query=query, limit=limit)

    def remember(self, content: str, tags: tuple[str, ...] = ()) -> Any:
        """Keeps something for the agent (memory)."""
        return self._ask("remember", content=content, tags=list(tags))

    def signal(self, title: str, body: str = "") -> Any:
        """Tells the owner something (signals)."""
        return self._ask("signal", title=title, body=body)

    def schedule(self, **given: Any) -> Any:
        """Plans something, with the input of schedule.create (schedule)."""
        return self._ask("schedule", **given)


def send(said: BinaryIO, message: Any) -> None:
    said.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
    said.flush()


def main() -> None:
    heard, said = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    order = json.loads(heard.readline())
    sys.dont_write_bytecode = True
    try:
        entry = PLUGIN / order["entry"]
        sys.path[:0] = [str(PLUGIN), str(entry.parent)]
        spec = importlib.util.spec_from_file_location("officina_plugin", entry)
        if spec is None or spec.loader is None:
            raise ImportError(order["entry"])
        module = importlib.util.module_from_spec(spec)
        sys.modules["officina_plugin"] = module
        spec.loader.exec_module(module)
        send(said, {"done": getattr(module, order["function"])(order["input"], Officina(heard, said))})
    except BaseException as error:
        traceback.print_exc()
        send(said, {"failed": f"{type(error).__name__}: {error}"[:1000]})


if __name__ == "__main__":
    main()
