"""One SDK client, and so one HTTP pool, per process, address and key; made at first use, none shared over a fork."""

import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import httpx2
    import openai

    from workers.models.direct import Head

OPENAI = "https://api.openai.com/v1"
#: Sent where a local server wants no key; the SDK does not go without.
NO_KEY = "none"


@dataclass(frozen=True)
class Server:
    """A model server as one key reaches it."""

    sdk: "openai.OpenAI"
    #: The connections that the SDK uses, too.
    http: "httpx2.BaseTransport"
    head: "Head"


class _Pools:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.clients: dict[tuple[str, str], Server] = {}
        #: Optional fields that models refused, per address and model.
        self.refused: dict[tuple[str, str], frozenset[str]] = {}


_pools = _Pools()
#: Pools of the parent: a child keeps them from being closed, because their sockets are the parent's.
_inherited: list[_Pools] = []


def _after_fork() -> None:
    global _pools
    _inherited.append(_pools)
    _pools = _Pools()


os.register_at_fork(after_in_child=_after_fork)


def client(base_url: str | None, key: str | None) -> "openai.OpenAI":
    """The SDK's client for an address; safe from any thread."""
    return server(base_url, key).sdk


def server(base_url: str | None, key: str | None) -> Server:
    """What there is for an address; safe from any thread.

    Raises:
        UnicodeError: the key is no ASCII text.
    """
    place = (base_url or OPENAI, key or NO_KEY)
    pools = _pools
    with pools.lock:
        if place not in pools.clients:
            pools.clients[place] = _make(*place)
        return pools.clients[place]


def refused(base_url: str | None, model: str) -> frozenset[str]:
    """Optional fields this model is known to refuse."""
    return _pools.refused.get((base_url or OPENAI, model), frozenset())


def refuse(base_url: str | None, model: str, field: str) -> None:
    pools, place = _pools, (base_url or OPENAI, model)
    with pools.lock:
        pools.refused[place] = pools.refused.get(place, frozenset()) | {field}


def address(base_url: str | None) -> str:
    """Host and port for messages: an address may hold credentials."""
    parts = urlsplit(base_url or OPENAI)
    return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)


def _make(base_url: str, key: str) -> Server:
    import openai

    from workers.models import direct, wire

    transport = wire.transport(base_url)
    http = wire.http_client(transport)
    made = openai.OpenAI(api_key=key, base_url=base_url, max_retries=0, http_client=http)
    if base_url != OPENAI:
        # The SDK takes these from the environment; another server has no business knowing them.
        made.organization = made.project = None
    return Server(made, transport, direct.head(made, http))
