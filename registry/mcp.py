"""MCP servers as people configure them: `.officina/mcp.json` over `~/.officina/mcp.json` (spec: engine 18).

    {"mcpServers": {"files": {"command": "npx", "args": ["-y", "@scope/server", "/data"]},
                    "search": {"url": "https://example.org/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}}}

A file or a server that cannot be used is left out and reported. Values name environment variables as `${NAME}`; they
are filled in when the server starts, never before, so that no secret is part of what is listed or logged.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field, StringConstraints, ValidationError, model_validator

from registry import masking
from registry.base import Json, Model
from registry.errors import Fault
from registry.graph.findings import shown
from registry.jsontext import JsonFault, digest, parse

#: Bytes of one file.
MAX_BYTES: Final = 1024 * 1024
#: What a tool's name begins with: letters, digits, `_` and `-`, without the mark that parts it from the rest.
_PREFIX: Final = r"^(?!.*__)[A-Za-z][A-Za-z0-9_-]{0,31}(?<!_)$"

Text = Annotated[str, StringConstraints(max_length=8_192)]
_REFERENCE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
#: Characters of an environment value below which it is no secret worth hiding.
_SHORT: Final = 8


class ServerConfig(Model):
    """One server: a program that is started, or an address."""

    command: Annotated[str, StringConstraints(min_length=1, max_length=4_096)] | None = None
    args: list[Text] = Field(default=[], max_length=256)
    env: dict[str, Text] = Field(default={}, max_length=256)
    #: Where the program starts; relative to the folder the file belongs to, which is also the default.
    cwd: Text | None = None
    url: Annotated[str, StringConstraints(min_length=1, max_length=2_048)] | None = None
    type: Literal["stdio", "http", "sse"] | None = None
    headers: dict[str, Text] = Field(default={}, max_length=64)
    enabled: bool = True
    #: What its tools' names begin with; None: its id.
    tool_prefix: str | None = None
    #: The tools that are taken; None: all.
    allow_tools: list[str] | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> "ServerConfig":
        if (self.command is None) == (self.url is None):
            raise ValueError("exactly one of command and url is needed")
        local, remote = self.args or self.env or self.cwd, self.headers
        if self.command is not None and (self.type in ("http", "sse") or remote):
            raise ValueError("a command goes with args, env and cwd, not with type http or sse, nor headers")
        if self.url is not None and (self.type == "stdio" or local):
            raise ValueError("a url goes with type (http or sse) and headers, not with args, env or cwd")
        if self.tool_prefix is not None and not re.match(_PREFIX, self.tool_prefix):
            raise ValueError("toolPrefix: letters, digits, - and single _, at most 32, beginning with a letter")
        return self


@dataclass(frozen=True)
class Server:
    """A configured server, with references to the environment still in it."""

    id: str
    config: ServerConfig
    #: The folder relative paths start from.
    folder: Path
    #: The file that says so.
    path: Path

    @property
    def prefix(self) -> str:
        return self.config.tool_prefix or self.id

    @property
    def kind(self) -> str:
        return "stdio" if self.config.command is not None else self.config.type or "http"

    @property
    def digest(self) -> str:
        """Changes with anything that was written about it."""
        return digest({"id": self.id, "folder": str(self.folder), "config": self.config.to_json()})

    def expanded(self, environment: Mapping[str, str] = os.environ) -> "Server":
        """The same with the environment's values in the place of `${NAME}`; these are masked from now on.

        Raises:
            KeyError: with the name of a variable that is not set.
        """
        given = self.config.model_dump(by_alias=True)
        filled = {key: value if key == "allowTools" else _filled(value, environment) for key, value in given.items()}
        return replace(self, config=ServerConfig.model_validate(filled))


class Servers(Mapping[str, Server]):
    """Servers by id, and the faults of what was left out."""

    def __init__(self, found: Mapping[str, Server], faults: Iterable[Fault] = ()) -> None:
        self._found = dict(sorted(found.items()))
        self.faults = tuple(faults)
        self.names = frozenset(self._found)

    def __getitem__(self, id_: str) -> Server:
        return self._found[id_]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


def load(files: Iterable[Path]) -> Servers:
    """The servers of several files; the later file wins by id. A file that is not there has none."""
    found: dict[str, Server] = {}
    faults: list[Fault] = []
    for file in files:
        for id_, one in _entries(file, faults).items():
            try:
                found[id_] = Server(id_, _config(id_, one), file.absolute().parent.parent, file)
            except ValueError as error:
                faults.append(Fault(f"{file}: mcpServers.{id_[:60]}", "mcp_server", str(error)))
    return Servers(found, faults)


def _entries(file: Path, faults: list[Fault]) -> dict[str, Json]:
    def refused(code: str, message: str) -> dict[str, Json]:
        faults.append(Fault(str(file), code, message))
        return {}

    try:
        if not file.is_file():  # a pipe would be waited for
            return refused("unreadable", "is no regular file") if file.exists() else {}
        with file.open("rb") as reader:
            content = reader.read(MAX_BYTES + 1)
    except OSError as error:
        return refused("unreadable", f"cannot be read: {error.strerror}")
    if len(content) > MAX_BYTES:
        return refused("too_large", f"has more than {MAX_BYTES} bytes")
    try:
        document = parse(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        return refused("invalid_json", f"not UTF-8 at byte {error.start}")
    except JsonFault as fault:
        return refused("invalid_json", str(fault))
    servers = document.get("mcpServers") if isinstance(document, dict) else None
    if not isinstance(servers, dict):
        return refused("mcp_servers", f"an object with mcpServers is needed, found {shown(document)}")
    return servers


def _config(id_: str, written: Json) -> ServerConfig:
    if not re.match(_PREFIX, id_):
        raise ValueError("an id has letters, digits, - and single _, at most 32, beginning with a letter")
    try:
        return ServerConfig.model_validate(written)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        words = first["msg"].removeprefix("Value error, ")
        raise ValueError(f"{where}: {words}" if where else words) from None


def _filled(value: Any, environment: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return _REFERENCE.sub(lambda found: _secret(environment[found[1]]), value)
    if isinstance(value, list):
        return [_filled(one, environment) for one in value]
    if isinstance(value, dict):
        return {key: _filled(one, environment) for key, one in value.items()}
    return value


def _secret(value: str) -> str:
    if len(value) >= _SHORT:
        masking.remember(value)
    return value


__all__ = ["Server", "ServerConfig", "Servers", "load"]
