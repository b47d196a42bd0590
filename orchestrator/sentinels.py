"""Addresses that name Sentinels instead of a server: whoever connects asks them which Redis is the primary by then.

`sentinel://USER:PASSWORD@s1:26379,s2:26379,s3:26379/0?master=officina`; user, password and the number of the database
are those of the servers. `sentinels://` speaks TLS with both, and takes the parameters of `rediss://`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, quote, unquote, urlsplit

SCHEMES: Final = ("sentinel", "sentinels")
PORT: Final = 26379
_TLS: Final = ("ssl_cert_reqs", "ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_PARAMETERS: Final = ("master", "sentinel_username", "sentinel_password", *_TLS)


@dataclass(frozen=True)
class Sentinels:
    """What such an address says; it shows no password."""

    hosts: tuple[tuple[str, int], ...]
    #: Name under which the Sentinels watch the servers.
    master: str
    database: int = 0
    #: `username` and `password` for the servers, as far as they are given.
    login: Mapping[str, str] = field(default_factory=dict, repr=False)
    #: The same for the Sentinels themselves.
    own_login: Mapping[str, str] = field(default_factory=dict, repr=False)
    #: TLS as redis-py takes it; None: none.
    tls: Mapping[str, str] | None = None

    @property
    def celery_url(self) -> str:
        """The address as Celery writes it; the rest is in `celery_options`."""
        name, word = (quote(self.login.get(part, ""), safe="") for part in ("username", "password"))
        user = f"{name}:{word}@" if self.login else ""
        hosts = (f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.hosts)
        return ";".join(f"sentinel://{user}{host}/{self.database}" for host in hosts)

    def celery_options(self, patience_s: float) -> dict[str, Any]:
        """Celery's options of such a broker, and of such a backend."""
        return {"master_name": self.master, "sentinel_kwargs": self.asking(patience_s)}

    def asking(self, patience_s: float) -> dict[str, Any]:
        """How a Sentinel is asked: once, since there are others.

        Args:
            patience_s: seconds to wait for one.
        """
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        once = {"socket_timeout": patience_s, "socket_connect_timeout": patience_s, "retry": Retry(NoBackoff(), 0)}
        return once | dict(self.own_login) | ({} if self.tls is None else {"ssl": True, **self.tls})


def watched(url: str | None) -> Sentinels | None:
    """What an address says; None: it names a server.

    Raises:
        ValueError: it begins like one of ours and cannot be read; a password in it is not repeated.
    """
    scheme, _, rest = (url or "").partition("://")
    if scheme not in SCHEMES:
        return None
    parts = urlsplit(f"//{rest}")
    user, _, places = parts.netloc.rpartition("@")
    more = _parameters(parts.query, secure=scheme == "sentinels")
    if not more.get("master"):
        raise ValueError("must name the primary that the Sentinels watch: ...?master=NAME")
    number = parts.path.strip("/") or "0"
    if not number.isdecimal():
        raise ValueError("the path of a Sentinel address is the number of the database, as in /0")
    name, _, word = user.partition(":")
    tls = {key: more[key] for key in _TLS if key in more}
    return Sentinels(
        hosts=tuple(_place(place) for place in places.split(",")),
        master=more["master"],
        database=int(number),
        login=_given(username=unquote(name), password=unquote(word)),
        own_login=_given(username=more.get("sentinel_username", ""), password=more.get("sentinel_password", "")),
        tls={"ssl_cert_reqs": "required"} | tls if scheme == "sentinels" else None,
    )


def _parameters(query: str, *, secure: bool) -> dict[str, str]:
    found = dict(parse_qsl(query))
    if unknown := sorted(found.keys() - set(_PARAMETERS)):
        raise ValueError(
            f"{unknown[0][:40]!r} is no parameter of a Sentinel address; it takes {', '.join(_PARAMETERS)}"
        )
    if not secure and (tls := sorted(found.keys() & set(_TLS))):
        raise ValueError(f"{tls[0]} is for TLS, and TLS is sentinels://")
    return found


def _place(text: str) -> tuple[str, int]:
    try:
        place = urlsplit(f"//{text}")
        host, port = place.hostname, place.port or PORT
    except ValueError:
        host, port = None, 0
    if not host:
        raise ValueError("must name Sentinels as host:port, parted by commas")
    return host, port


def _given(**values: str) -> dict[str, str]:
    return {name: value for name, value in values.items() if value}
