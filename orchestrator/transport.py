"""kombu's transports of Redis with a client that is kept: kombu makes one for every command, which costs more than the
command itself.
"""

from typing import Any

from kombu.transport import TRANSPORT_ALIASES, redis


class _Keeping:
    """A channel whose commands share one client; the client takes a connection of the pool for each of them."""

    pool: Any
    _kept: Any = None

    def _create_client(self, asynchronous: bool = False) -> Any:
        if asynchronous:
            return super()._create_client(asynchronous=True)  # type: ignore[misc]
        if self._kept is None or self._kept.connection_pool is not self.pool:
            self._kept = super()._create_client()  # type: ignore[misc]
        return self._kept


class Channel(_Keeping, redis.Channel):
    pass


class SentinelChannel(_Keeping, redis.SentinelChannel):
    pass


class Transport(redis.Transport):
    Channel = Channel


class SentinelTransport(redis.SentinelTransport):
    Channel = SentinelChannel


def install() -> None:
    """Makes them what `redis://`, `rediss://` and `sentinel://` stand for in this process."""
    for scheme, transport in {"redis": Transport, "rediss": Transport, "sentinel": SentinelTransport}.items():
        TRANSPORT_ALIASES[scheme] = f"{__name__}:{transport.__name__}"
