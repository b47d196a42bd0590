"""The port to the web: searching it, and reading a page as text (spec: skills 7.1 to 7.3)."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from registry.skills.urls import Url

if TYPE_CHECKING:
    from registry.skills.context import SkillContext

Recency = Literal["any", "day", "week", "month", "year"]
Form = Literal["markdown", "text", "raw"]


@dataclass(frozen=True)
class Query:
    """What is searched for."""

    text: str
    limit: int = 8
    #: A host whose pages alone are wanted.
    site: str | None = None
    recency: Recency = "any"
    #: BCP 47.
    language: str | None = None


@dataclass(frozen=True)
class Hit:
    title: str
    url: str
    snippet: str
    #: As the provider writes it.
    published_at: str | None = None


@dataclass(frozen=True)
class Found:
    """What one provider found, each page once, the best first."""

    provider: str
    hits: tuple[Hit, ...]


@dataclass(frozen=True)
class Page:
    """A page as text."""

    url: Url
    status: int
    content_type: str
    title: str | None
    text: str
    #: Decoded bytes of the answer.
    bytes: int
    hops: tuple[Url, ...] = field(default=())


class Web(Protocol):
    """Reads the web for a call; its brakes count what goes out, and robots.txt is obeyed unless a person calls."""

    def search(self, query: Query, context: "SkillContext", *, seconds: float) -> Found | None:
        """The answer of the first provider that gives one; None: none is set up here.

        Raises:
            SkillError: `rate_limited` when all providers say so, `remote_error`, `timeout`, `cancelled`.
        """
        ...

    def page(self, url: str, form: Form, context: "SkillContext", *, seconds: float) -> Page:
        """A page of at most 5 MiB.

        Raises:
            SkillError: those of the network, `not_allowed` (robots.txt), `remote_error` (status 400 and above),
                `unsupported_type`, `rate_limited`.
        """
        ...


__all__ = ["Form", "Found", "Hit", "Page", "Query", "Recency", "Web"]
