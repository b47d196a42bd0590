"""Addresses of the web as skills take them: what is a URL, and one form of it (spec: skills 4).

Pure: nothing is looked up, and nothing is said here about which hosts may be reached; that is the network guard's part.
"""

import ipaddress
import re
from dataclasses import dataclass
from typing import Annotated, Final
from urllib.parse import quote

from pydantic import AfterValidator, WithJsonSchema

from registry.errors import SkillError

MAX_URL: Final = 2048
#: Characters of a query that web.* sends: more of it could carry a file away.
MAX_QUERY: Final = 1024
DEFAULT_PORTS: Final = {"http": 80, "https": 443}

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_SHAPE = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?P<rest>.*)", re.DOTALL)
_PARTS = re.compile(r"//(?P<place>[^/?#]*)(?P<path>[^?#]*)(?:\?(?P<query>[^#]*))?(?:#.*)?", re.DOTALL)
#: White space, control characters, and what Unicode hides.
_INVISIBLE = re.compile(
    "[\\s\x00-\x20\x7f-\xa0\xad\u061c\u180e\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff\ufff9-\uffff]"
)
_LABEL = re.compile(r"[a-z0-9_-]{1,63}")
#: Characters of a path or query that stand as they are; the others are written in percent form, as browsers do.
_PATH_SAFE: Final = "%!$&'()*+,;=:@/-._~"
_QUERY_SAFE: Final = _PATH_SAFE + "?[]|^{}`"


@dataclass(frozen=True)
class Url:
    """An address that was found well-formed."""

    scheme: str
    #: Lower case, in ASCII; an IPv6 address without its brackets.
    host: str
    port: int
    #: Begins with a slash; percent form.
    path: str
    query: str | None = None

    @property
    def place(self) -> str:
        """Host and port as a Host header has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.place}"

    @property
    def target(self) -> str:
        return self.path if self.query is None else f"{self.path}?{self.query}"

    def __str__(self) -> str:
        return self.origin + self.target


def parse_url(text: str) -> Url:
    """Reads a URL; a fragment is dropped.

    Raises:
        SkillError: `invalid_input`; the message says which rule and never repeats the whole URL.
    """
    if len(text) > MAX_URL:
        raise _bad(f"has {len(text)} characters, more than {MAX_URL}")
    if _INVISIBLE.search(text):
        raise _bad("holds white space, control or invisible characters")
    if "\\" in text:
        raise _bad("holds a backslash")
    shape = _SHAPE.fullmatch(text)
    if shape is None:
        raise _bad("is no absolute URL such as https://example.com/page")
    scheme = shape["scheme"].lower()
    if scheme not in DEFAULT_PORTS:
        raise _bad(f"has the scheme {scheme[:20]!r}; only http and https are taken")
    parts = _PARTS.fullmatch(shape["rest"])
    if parts is None:
        raise _bad("has no // and host after its scheme")
    host, port = _split(parts["place"])
    query = None if parts["query"] is None else quote(parts["query"], safe=_QUERY_SAFE)
    return Url(
        scheme=scheme,
        host=_host(host),
        port=DEFAULT_PORTS[scheme] if port is None else port,
        path=quote(parts["path"], safe=_PATH_SAFE) or "/",
        query=query,
    )


def short_query(url: Url) -> None:
    """What web.* sends along in a query is bounded: their calls ask nobody.

    Raises:
        SkillError: `invalid_input`.
    """
    if url.query is not None and len(url.query) > MAX_QUERY:
        raise _bad(f"has a query of {len(url.query)} characters, more than {MAX_QUERY}")


def clean_host(text: str) -> str:
    """A host name or address in the form `Url.host` has.

    Raises:
        SkillError: `invalid_input`.
    """
    return _host(text)


def literal(host: str) -> Address | None:
    """The address a host is, when it is one in its plain form."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _split(place: str) -> tuple[str, int | None]:
    if "@" in place:
        raise _bad("carries a user name or password")
    if place.startswith("["):
        host, bracket, rest = place.partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise _bad("has a broken host")
        return host + bracket, _port(rest[1:])
    host, _, port = place.partition(":")
    if ":" in port:
        raise _bad("has a host with several colons; an IPv6 address stands in brackets")
    return host, _port(port)


def _port(text: str) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and 1 <= int(text) <= 65535):
        raise _bad("has a port that is no number from 1 to 65535")
    return int(text)


def _host(host: str) -> str:
    if host.startswith("["):
        try:
            return str(ipaddress.IPv6Address(host[1:-1] if "%" not in host else ""))
        except ValueError:
            raise _bad("has a host in brackets that is no IPv6 address") from None
    if "%" in host:
        raise _bad("has a % in its host")
    name = _ascii(host).removesuffix(".")
    if not name:
        raise _bad("has no host")
    if len(name) > 253 or not all(_LABEL.fullmatch(label) for label in name.split(".")):
        raise _bad("has a host that is no name")
    return name


def _ascii(host: str) -> str:
    if host.isascii():
        return host.lower()
    import idna

    try:
        return idna.encode(host, uts46=True, transitional=False).decode().lower()
    except UnicodeError:  # idna's errors are such
        raise _bad("has a host that is no name of the international kind") from None


def _bad(words: str) -> SkillError:
    return SkillError("invalid_input", f"the URL {words}")


def _validate(text: str) -> str:
    try:
        parse_url(text)
    except SkillError as error:
        raise ValueError(error.message) from None
    return text


def _validate_web(text: str) -> str:
    try:
        short_query(parse_url(text))
    except SkillError as error:
        raise ValueError(error.message) from None
    return text


_SCHEMA: Final = {"type": "string", "format": "uri", "minLength": 1, "maxLength": MAX_URL}

#: A URL that is sent as it was approved.
UrlText = Annotated[str, AfterValidator(_validate), WithJsonSchema({**_SCHEMA, "description": "http or https"})]
#: One that web.* fetches without asking.
WebUrl = Annotated[
    str,
    AfterValidator(_validate_web),
    WithJsonSchema({**_SCHEMA, "description": f"http or https; a query of at most {MAX_QUERY} characters"}),
]

__all__ = ["MAX_QUERY", "MAX_URL", "Url", "UrlText", "WebUrl", "clean_host", "literal", "parse_url", "short_query"]
