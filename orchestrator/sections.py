"""Groups of settings: `orchestrator.settings` holds one of each."""

import re
from decimal import Decimal
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

_WEB = re.compile(r"https?://[^\s/?#@\\]+(/[^\s?#\\]*)?")
_RATE = re.compile(r"[1-9][0-9]{0,6}/([1-9][0-9]{0,3} ?)?(second|minute|hour|day)s?")


class Section(BaseModel):
    """A group of settings; a misspelt name is refused, not ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ImageModel(Section):
    """Who makes pictures: an OpenAI-compatible images endpoint."""

    name: str
    """Model name as the API knows it."""
    base_url: str = "https://api.openai.com/v1"
    """Its base URL; it is reached through the guard of the network, as everything is that skills ask."""
    key: SecretStr | None = None
    """Key of its API; none: `model_api_key`, where `base_url` is at the host of the models."""
    price: Decimal | None = Field(None, ge=0)
    """USD for one picture; none: unknown."""
    takes_seed: bool = False
    """Whether it takes a number that makes another picture of the same prompt."""

    @field_validator("base_url")
    @classmethod
    def _web(cls, url: str) -> str:
        if not _WEB.fullmatch(url):
            raise ValueError("base_url is no http or https URL")
        return url.rstrip("/")


class SearchProvider(Section):
    """Someone who answers searches."""

    kind: Literal["searxng", "brave", "tavily", "ddgs"]
    url: str | None = None
    """Base URL; needed for searxng, where JSON has to be enabled."""
    key: SecretStr | None = None
    """Key of its API; needed for brave and tavily."""

    @model_validator(mode="after")
    def _complete(self) -> "SearchProvider":
        if self.kind == "searxng" and not self.url:
            raise ValueError("searxng needs its url")
        if self.kind in ("brave", "tavily") and self.key is None:
            raise ValueError(f"{self.kind} needs a key")
        if self.url is not None and not _WEB.fullmatch(self.url):
            raise ValueError("url is no http or https URL")
        return self


class Shell(Section):
    """What commands of the pack `shell` get from this deployment."""

    network: bool = False
    """Let commands of agents whose pack asks for it use the network: all that this machine reaches, its own and its
    neighbours' servers too."""
    memory_mib: int = Field(1_024, ge=64)
    """MiB of memory for all processes of a command together."""
    job_s: float = Field(3_600, gt=0)
    """Seconds a job in the background may take."""


class Plugins(Section):
    """What others wrote and a person installed."""

    run: bool = False
    """Let plugins run here; without it they can be installed, listed and disabled, and none runs."""
    root: Path | None = None
    """The folder their files lie in, seen by every worker; none: `plugins` in `home`."""
    memory_mib: int = Field(256, ge=64)
    """MiB of memory for all processes of one call together."""
    processes: int = Field(16, ge=2)
    """Processes and threads of one call."""


class Rates(Section):
    """Calls per owner and time, as in `60/minute`."""

    search: str = "60/minute"
    """web.search, and each search of web.research."""
    fetch: str = "120/minute"
    """web.fetch, and each page of web.research."""
    llm: str = "60/minute"
    """llm.generate and llm.structured."""
    image: str = "10/minute"
    """image.generate."""
    email_send: str = "20/hour"
    """email.send."""
    telegram_send: str = "20/hour"
    """telegram.send."""
    whatsapp_send: str = "20/hour"
    """whatsapp.send."""
    api: str | None = None
    """Requests over HTTP of one key or session; none: no limit."""

    @field_validator("*")
    @classmethod
    def _readable(cls, text: str | None) -> str | None:
        if text is not None and not _RATE.fullmatch(text):
            raise ValueError("write a number and a time, as in 60/minute (second, minute, hour, day)")
        return text


class Api(Section):
    """The HTTP API: where it listens, whom it listens to, what it takes."""

    host: str = "127.0.0.1"
    """Address it listens on."""
    port: int = Field(4000, ge=0, le=65_535)
    """Port it listens on; 0: a free one."""
    hosts: tuple[str, ...] = ()
    """Names it answers to besides loopback and `host`, as a JSON list; a request for another name is refused."""
    body_bytes: int = Field(2 * 1024 * 1024, ge=1_024)
    """Bytes the body of a request may have."""
    submit_bytes: int = Field(48 * 1024 * 1024, ge=1_024)
    """Bytes a submitted project may have with its inputs, a document for agents, a message with its files."""
    body_s: float = Field(30, gt=0)
    """Seconds a body may take to arrive."""
    session_hours: float = Field(168, gt=0)
    """Hours a person's session lasts."""
    heartbeat_s: float = Field(15, gt=0)
    """Seconds of silence after which a stream says that it lives."""
    streams: int = Field(2_000, ge=1)
    """Streams one process carries at once."""
    calls: int = Field(100, ge=1)
    """Calls of skills one owner may have waiting for a worker at once."""
    slow_s: float = Field(60, gt=0)
    """Seconds a client may leave a stream unread before it is let go."""
    grace_s: float = Field(5, gt=0)
    """Seconds a stopping API lets requests finish; streams are resumed elsewhere."""


class EmbeddingModel(Section):
    """Who places texts by their meaning: an OpenAI-compatible embeddings endpoint."""

    name: str
    """Model name as the API knows it."""
    base_url: str = "https://api.openai.com/v1"
    """Its base URL; it is reached through the guard of the network, as everything is that skills ask."""
    key: SecretStr | None = None
    """Key of its API; none: `model_api_key`, where `base_url` is at the host of the models."""
    nearness: float = Field(0.3, ge=0, le=1)
    """Cosine from which a text has to do with a question."""

    @field_validator("base_url")
    @classmethod
    def _web(cls, url: str) -> str:
        if not _WEB.fullmatch(url):
            raise ValueError("base_url is no http or https URL")
        return url.rstrip("/")


class Keeping(Section):
    """How much agents may keep beside their runs, and for how long (`docs/memory.md`)."""

    memories: int = Field(5_000, ge=1)
    """Memories one being, one project, one conversation or one person may have."""
    session_days: int = Field(90, ge=1)
    """Days a memory of a conversation is kept."""
    recall_passages: int = Field(20_000, ge=1)
    """Pieces of what was said that one agent can find, the latest."""
    recall_days: int = Field(365, ge=1)
    """Days after the end of a run in which what was said in it can be found."""
    sources: int = Field(1_000, ge=1)
    """Documents one agent may be given, and as many for all agents of an owner."""
    source_bytes: int = Field(20 * 1024 * 1024, ge=1)
    """Bytes of one such document."""
    source_chars: int = Field(2_000_000, ge=1)
    """Characters of its text."""
    agenda_days: int = Field(365, ge=1)
    """Days a plan of an agent is kept that nobody changes."""
    history_days: int | None = Field(None, ge=0)
    """Days after a project's end that its events, messages, checkpoints and calls are kept; none: for ever."""
    files_days: int | None = Field(None, ge=0)
    """Days after a project's end that its workspace is kept; none: for ever."""
    project_days: int | None = Field(None, ge=0)
    """Days after a project's end that anything of it is kept; none: for ever."""
