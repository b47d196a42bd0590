"""The port to the network: one request out, through the guard, and what came back (spec: skills 4)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from registry.errors import Detail, SkillError
from registry.skills.charsets import codec_of
from registry.skills.urls import Url

MIB: Final = 1024 * 1024


class NetworkFault(SkillError):
    """A request that brought no usable answer; `sent` says whether a byte of it may have left."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        retryable: bool = False,
        sent: bool = False,
        details: Sequence[Detail] = (),
    ) -> None:
        super().__init__(code, message, retryable=retryable, details=details)
        self.sent = sent


@dataclass(frozen=True)
class Outgoing:
    """A request as a skill wants it made. Host, length and encoding headers are the guard's own."""

    url: str
    method: str = "GET"
    #: Those that may be credentials are dropped when a redirect leads to another origin.
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    #: Seconds for everything: look-up, connecting, redirects, the last byte.
    timeout_s: float = 20
    #: Decoded bytes of the answer that are kept.
    max_bytes: int = 5 * MIB
    #: True: a longer answer is `too_large`; False: it is cut off.
    whole: bool = False
    #: Redirects that are followed; 0: a redirect is the answer.
    redirects: int = 5
    #: Whether a redirect may lead from https to http.
    downgrade: bool = True
    #: A request that must not happen twice: what fails after a byte has left is not worth another try.
    once: bool = False
    #: Told of every address, redirects too, before it is looked up; a `SkillError` refuses it.
    on_hop: Callable[[Url], None] = field(default=lambda _url: None)


@dataclass(frozen=True)
class Incoming:
    """The last answer of a request."""

    status: int
    #: Where it came from, after redirects.
    url: Url
    #: In order, names in lower case.
    headers: Sequence[tuple[str, str]]
    #: Decoded, at most `max_bytes`.
    body: bytes
    truncated: bool
    elapsed_ms: int
    #: Every address asked, the first one included.
    hops: Sequence[Url]

    def header(self, name: str) -> str | None:
        """The first value of a header."""
        return next((value for key, value in self.headers if key == name.lower()), None)

    @property
    def content_type(self) -> str:
        """The media type in lower case, without parameters; empty when none is given."""
        return (self.header("content-type") or "").partition(";")[0].strip().lower()

    @property
    def charset(self) -> str:
        """The charset its header names, as Python's codec; else UTF-8. Not UTF-7: it makes halves of characters."""
        for part in (self.header("content-type") or "").split(";")[1:]:
            name, _, value = part.partition("=")
            if name.strip().lower() == "charset":
                codec = codec_of(value.strip().strip("\"'"))
                return codec if codec is not None and codec != "utf-7" else "utf-8"
        return "utf-8"

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300


class Network(Protocol):
    """What goes out. Every skill that reaches a host uses this and nothing else."""

    def send(self, request: Outgoing, *, cancelled: Callable[[], bool] = lambda: False) -> Incoming:
        """Makes one request, checked at every hop. A status of 400 or more is an answer, not a fault.

        Raises:
            NetworkFault: `invalid_input`, `network_blocked`, `network_error`, `timeout`, `cancelled`, `too_large`,
                `unsupported_type`, `remote_error` (a redirect without end).
        """
        ...


__all__ = ["MIB", "Incoming", "Network", "NetworkFault", "Outgoing"]
