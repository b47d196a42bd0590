"""Addresses of RabbitMQ over TLS: `amqps://USER:PASSWORD@host:5671/vhost?ssl_ca_certs=/etc/officina/ca.crt`.

They take the parameters of `rediss://`, which kombu knows for Redis only, and the server has to be the one that the
address names: by itself the client of RabbitMQ takes any certificate that a known authority gave to anybody.
"""

import ssl
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

SCHEME: Final = "amqps"
#: Our parameters, and what the client calls them.
_FILES: Final = {"ssl_ca_certs": "ca_certs", "ssl_certfile": "certfile", "ssl_keyfile": "keyfile"}
_REQUIRED: Final = "required"
_CHECKS: Final = {_REQUIRED: ssl.CERT_REQUIRED, "none": ssl.CERT_NONE}


def secured(url: str | None) -> tuple[str, dict[str, Any]] | None:
    """An address as Celery writes it, and its TLS as the client takes it; None: it is no `amqps://`.

    Raises:
        ValueError: a parameter of TLS is none of ours, or says what cannot be.
    """
    if url is None or url.partition("://")[0] != SCHEME:
        return None
    parts = urlsplit(url)
    given = dict(parse_qsl(parts.query))
    tls = {name: given.pop(name) for name in sorted(given) if name.startswith("ssl_")}
    check = _check(tls.pop("ssl_cert_reqs", _REQUIRED))
    if unknown := sorted(tls.keys() - set(_FILES)):
        takes = ", ".join(("ssl_cert_reqs", *_FILES))
        raise ValueError(f"{unknown[0][:40]!r} is no parameter of an amqps address; it takes {takes}")
    options: dict[str, Any] = {"cert_reqs": check} | {_FILES[name]: value for name, value in tls.items()}
    if check is ssl.CERT_REQUIRED:
        options["server_hostname"] = parts.hostname
    return urlunsplit(parts._replace(query=urlencode(given))), options


def _check(word: str) -> ssl.VerifyMode:
    try:
        return _CHECKS[word.lower().removeprefix("cert_")]
    except KeyError:
        raise ValueError(f"ssl_cert_reqs is {word[:20]!r}; it is {' or '.join(_CHECKS)}") from None
