"""Clients of Redis, whether an address names the server or Sentinels who know it."""

from typing import TYPE_CHECKING, Any

from orchestrator.sentinels import watched

if TYPE_CHECKING:
    from redis import Redis
    from redis.asyncio import Redis as AsyncRedis

#: Seconds to wait for a Sentinel, before the next one is asked.
ASKING_S = 1.0


def connect(url: str, **options: Any) -> "Redis":
    """A client; behind Sentinels it asks for the primary at each new connection.

    Args:
        options: of redis-py, for connections to the server.
    """
    from redis import Redis
    from redis.sentinel import Sentinel

    found = watched(url)
    if found is None:
        return Redis.from_url(url, **options)
    sentinel = Sentinel(list(found.hosts), sentinel_kwargs=found.asking(ASKING_S))  # type: ignore[no-untyped-call]
    return sentinel.master_for(found.master, **_server(url), **options)  # type: ignore[no-any-return,no-untyped-call]


def connect_async(url: str, **options: Any) -> "AsyncRedis":
    """The same for an event loop."""
    from redis.asyncio import Redis
    from redis.asyncio.retry import Retry
    from redis.asyncio.sentinel import Sentinel
    from redis.backoff import NoBackoff

    found = watched(url)
    if found is None:
        return Redis.from_url(url, **options)
    asking = found.asking(ASKING_S) | {"retry": Retry(NoBackoff(), 0)}
    sentinel = Sentinel(list(found.hosts), sentinel_kwargs=asking)  # type: ignore[no-untyped-call]
    return sentinel.master_for(found.master, **_server(url), **options)  # type: ignore[no-any-return]


def primary(client: "Redis") -> str:
    """Which server Sentinels have named, in words that something follows; nothing where an address names the server."""
    ask = getattr(client.connection_pool, "get_master_address", None)
    return "" if ask is None else "primary {}:{}, ".format(*ask())


def _server(url: str) -> dict[str, Any]:
    """How redis-py reaches the server itself."""
    found = watched(url)
    assert found is not None
    tls = {} if found.tls is None else {"ssl": True, **found.tls}
    return {"db": found.database, **found.login, **tls}
