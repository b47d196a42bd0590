"""Settings: one typed class, read from the environment (prefix `OFFICINA_`) and `.env`, never at import.

A nested field is set with two underscores: `OFFICINA_LIMITS__LEASE_S=5`. `officina doctor` prints what is in force.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from types import UnionType
from typing import Any, Final, Literal, get_args, get_origin
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from orchestrator import rabbit, sentinels
from orchestrator.limits import Limits
from orchestrator.sections import (
    Api,
    EmbeddingModel,
    ImageModel,
    Keeping,
    Plugins,
    Rates,
    SearchProvider,
    Section,
    Shell,
)
from registry import masking
from registry.queues import QueueRule, agreed

Tier = Literal["fast", "standard", "deep"]

#: Ways to write a Postgres URL that mean the one driver we speak.
_POSTGRES: Final = ("postgres", "postgresql")
_DATABASES: Final = ("sqlite", "postgresql+psycopg")
_BROKERS: Final = ("redis", "rediss", "redis+socket", *sentinels.SCHEMES, "amqp", "amqps")
_REDIS: Final = ("redis", "rediss", "redis+socket", "unix", *sentinels.SCHEMES)
#: Names with our prefix that are no settings: they are read where they act.
_NOT_SETTINGS: Final = frozenset({"OFFICINA_DEBUG", "OFFICINA_CRASHPOINTS", "OFFICINA_PYTHON"})


def _with_scheme(url: str, known: tuple[str, ...]) -> str:
    """The URL, when it begins as one of the known kinds; what follows may hold a password and is not repeated."""
    scheme, separator, _ = url.partition("://")
    if url and not (separator and scheme in known):
        found = f"found {scheme}://" if separator else "found no scheme"
        raise ValueError(f"must begin with {' or '.join(f'{one}://' for one in known)}; {found}")
    return url


def _web_address(url: str | None) -> str | None:
    if url is None:
        return None
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        good = False
    if not good:
        raise ValueError("must be an address with http:// or https:// and a host")
    return url


class Model(Section):
    """Where a tier's calls go."""

    name: str
    """Model name as the API knows it."""
    base_url: str | None = None
    """An OpenAI-compatible base URL; none: `model_base_url`."""
    key: SecretStr | None = None
    """Key of its API; none: `key_env`, else `model_api_key`."""
    key_env: str | None = Field(None, pattern=r"[A-Za-z_][A-Za-z0-9_]*")
    """Environment variable of the workers that holds its key."""
    requests_per_minute: int | None = Field(None, ge=1)
    """Calls all workers together make a minute; none: as many as there are."""
    tokens_per_minute: int | None = Field(None, ge=1)
    """Tokens all workers together send and get a minute; none: as many as there are."""
    stream: bool = True
    """Whether answers come word by word while somebody watches; a model that refuses is asked without it by itself."""
    max_tokens: int = Field(4_096, ge=1)
    """Tokens one answer may have."""
    context_tokens: int | None = Field(None, ge=1)
    """Tokens of its context; none: unknown, and histories are never summed up."""
    input_price: Decimal | None = Field(None, ge=0)
    """USD per million input tokens; none: the price library."""
    output_price: Decimal | None = Field(None, ge=0)
    """USD per million output tokens; none: the price library."""

    @field_validator("base_url")
    @classmethod
    def _base_url(cls, url: str | None) -> str | None:
        return _web_address(url)

    @property
    def own_key(self) -> str | None:
        """The key that is its own, given or found in the environment; None: there is none."""
        if self.key is not None:
            return self.key.get_secret_value()
        return os.environ.get(self.key_env) or None if self.key_env else None

    @property
    def reachable(self) -> bool:
        """Whether it can be called without what the settings say for all models."""
        return bool(self.base_url or self.own_key)


class Settings(BaseSettings):
    """Everything an operator may set."""

    model_config = SettingsConfigDict(
        env_prefix="OFFICINA_",
        env_nested_delimiter="__",
        env_file=".env",
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
    )

    home: Path = Path(".officina")
    """Folder of the embedded stack: database, sockets, logs, workspaces."""
    database_url: str = ""
    """SQLAlchemy URL; empty: an SQLite file in `home`. Postgres: `postgresql+psycopg://user:secret@host/name`."""
    database_silent_s: float = Field(15, ge=0)
    """Seconds after which a connection to Postgres counts as lost whose other side the network does not reach: its
    cable was pulled, its host is gone; 0: when the system says so, which takes minutes."""
    broker_url: str = ""
    """Redis (`redis://`, `rediss://`, `redis+socket://`, behind Sentinels `sentinel://` or `sentinels://`) or RabbitMQ
    (`amqp://`); empty: the embedded stack's Redis."""
    redis_url: str = ""
    """Redis for chord results, signals and live events; empty: the broker when that is Redis."""
    workspace_root: Path | None = None
    """Folder of all workspaces, seen by every worker; none: `workspaces` in `home`."""
    presets_root: Path | None = None
    """Folder of your own presets, which win over those that ship; none: `~/.officina/presets`."""
    skills_root: Path | None = None
    """Folder of your own documents (playbooks), which win over those that ship; none: `~/.officina/skills`."""
    mcp_file: Path | None = None
    """Your own MCP servers; none: `~/.officina/mcp.json`. Those of this installation (`mcp.json` in `home`) win."""
    mcp_start_s: float = Field(30, gt=0)
    """Seconds an MCP server has to start, and to say what it offers."""
    mcp_idle_s: float = Field(300, gt=0)
    """Seconds after which an MCP server that nobody uses is stopped."""
    secret_key: SecretStr | None = None
    """Key of stored secrets (several, parted by commas: the first encrypts); none: one of its own in `home`."""
    net_allow: str = ""
    """For tests: `host:port` pairs, parted by commas, that skills may reach though they are private."""
    images: ImageModel | None = None
    """Who makes pictures: `OFFICINA_IMAGES__NAME=...`; none: `image.generate` makes none."""
    image_placeholder: bool = False
    """Let a card with the prompt stand for a picture where nobody makes any; it says what it is."""
    embeddings: EmbeddingModel | None = None
    """Who places texts by their meaning: `OFFICINA_EMBEDDINGS__NAME=...`; none: documents are found by words alone."""
    search: tuple[SearchProvider, ...] = ()
    """Search providers as a JSON list, the first that answers wins: `[{"kind": "searxng", "url": "..."}]`."""
    owner: str = "local"
    """Whom submitted projects belong to."""
    actor: str | None = None
    """Who acts, for the audit log; none: the owner."""
    timezone: str = "UTC"
    """The owner's time zone (IANA name): what schedules mean that name none."""

    worker_slots: int = Field(64, ge=1)
    """Runs one worker process carries at once (threads, or processes with the prefork pool)."""
    worker_pool: Literal["threads", "prefork"] = "threads"
    """Threads suit agents that wait for models; prefork suits work that computes."""
    queues: tuple[QueueRule, ...] = ()
    """Rules that give runs queues of their own, the first that fits wins, as a JSON list:
    `[{"queue": "code", "needs": ["code.execute", "shell"]}]`. Every process of an installation needs the same."""
    strict_priority: bool = False
    """Whether runs of urgent projects (7 to 9) overtake all others in the broker, and those below 4 wait for all
    others; otherwise a project's priority is a larger share of the queue, and nobody waits for ever."""
    drain_ms: int = Field(200, ge=0)
    """Milliseconds in which a child run is fast. Fast ones follow one another in a slot without a message each, and a
    slot takes nothing more that way once it has worked so long; 0: every run is a job of its own."""
    monitor: bool = True
    """Whether workers send the events that Flower shows."""
    grace_s: float = Field(20, gt=0)
    """Seconds a stopping worker lets steps finish."""

    model_api_key: SecretStr | None = None
    """Key of the model API; none: only a stand-in can play the model."""
    model_base_url: str | None = None
    """OpenAI-compatible base URL; none: the SDK's default."""
    models: dict[Tier, Model] = Field(default_factory=dict)
    """Model of each tier: `OFFICINA_MODELS__STANDARD__NAME=...`."""
    more_models: tuple[Model, ...] = ()
    """Models of no tier that definitions may name, most often as a fallback, as a JSON list:
    `[{"name": "...", "base_url": "...", "key_env": "..."}]`."""
    model_timeout_s: float = Field(120, gt=0)
    """Seconds one model call may take."""
    stand_in: bool = False
    """Let the stand-in play the model for every project, scripted or by its rule."""

    souls: bool = True
    """Whether agents that are made for one project get a soul besides their persona."""

    project_cost_usd: Decimal = Field(Decimal(2), ge=0)
    """Money one project may spend unless its file says otherwise."""
    task_cost_usd: Decimal = Field(Decimal("0.75"), ge=0)
    """Money one task may spend."""

    api_token: SecretStr | None = None
    """A bearer token of the API for the owner's programs, besides keys that are made; none: keys only."""
    api_url: str | None = None
    """A studio elsewhere that commands work on, as in `https://studio.example.com`; none: the database here."""
    api_key: SecretStr | None = None
    """Key shown to it; none: the session that `officina login` keeps."""
    api: Api = Field(default_factory=Api)

    limits: Limits = Field(default_factory=Limits)
    rates: Rates = Field(default_factory=Rates)
    keeping: Keeping = Field(default_factory=Keeping)
    shell: Shell = Field(default_factory=Shell)
    plugins: Plugins = Field(default_factory=Plugins)

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, name: str) -> str:
        from registry.schedules import is_zone

        if not is_zone(name):
            raise ValueError(f"{name[:60]!r} is no time zone; use an IANA name such as Europe/Warsaw")
        return name

    @field_validator("database_url")
    @classmethod
    def _database_url(cls, url: str) -> str:
        scheme, separator, rest = url.partition("://")
        if scheme in _POSTGRES and separator:
            return f"postgresql+psycopg://{rest}"
        return _with_scheme(url, _DATABASES)

    @field_validator("broker_url")
    @classmethod
    def _broker_url(cls, url: str) -> str:
        sentinels.watched(url)
        rabbit.secured(url)
        return _with_scheme(url, _BROKERS)

    @field_validator("redis_url")
    @classmethod
    def _redis_url(cls, url: str) -> str:
        sentinels.watched(url)
        return _with_scheme(url, _REDIS)

    @field_validator("api_url")
    @classmethod
    def _api_url(cls, url: str | None) -> str | None:
        return _web_address(url.rstrip("/") if url else None)

    @field_validator("api_token")
    @classmethod
    def _long_token(cls, token: SecretStr | None) -> SecretStr | None:
        if token is not None and len(token.get_secret_value()) < 32:
            raise ValueError("must have 32 characters at least: it opens everything the owner has")
        return token

    @field_validator("model_base_url")
    @classmethod
    def _model_base_url(cls, url: str | None) -> str | None:
        return _web_address(url)

    def model_post_init(self, _context: Any) -> None:
        """Secrets of the environment are taken out of everything this process shows, from here on."""
        for secret in _secrets(self):
            masking.remember(secret)
        for model in (*self.models.values(), *self.more_models):
            if model.own_key:
                masking.remember(model.own_key)

    @property
    def by(self) -> str:
        """Who acts, for the record."""
        return self.actor or self.owner

    @property
    def database(self) -> str:
        """The database URL in force."""
        return self.database_url or f"sqlite:///{self.home.absolute() / 'officina.db'}"

    @property
    def broker(self) -> str | None:
        """The broker URL in force; None when none is set and no embedded stack runs."""
        return self.broker_url or self.stack.get("brokerUrl")

    @property
    def redis(self) -> str | None:
        """The address of Redis in force, for `redis_clients.connect`; None when there is no Redis at all."""
        url = self.redis_url or self.broker or ""
        if url.startswith("redis+socket://"):
            return "unix://" + url.removeprefix("redis+socket://")
        return url if url.partition("://")[0] in _REDIS else None

    @property
    def routing(self) -> str:
        """Digest of the rules of queues and of priority, which every process of an installation has to share."""
        return agreed(self.queues, strict_priority=self.strict_priority)

    @property
    def workspaces(self) -> Path:
        return (self.workspace_root or self.home / "workspaces").absolute()

    @property
    def stack(self) -> dict[str, str]:
        """What the running embedded stack of this home wrote about itself; empty when none runs."""
        try:
            found = json.loads((self.home / "run" / "stack.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    @property
    def has_model(self) -> bool:
        """Whether a real model can be called."""
        reachable = self.model_api_key is not None or self.model_base_url is not None
        return bool(self.models) and (reachable or any(model.reachable for model in self.models.values()))


def _secrets(group: BaseModel) -> Iterator[str]:
    """Values of secret settings, and passwords in URLs."""
    for name in type(group).model_fields:
        for value in _leaves(getattr(group, name)):
            if isinstance(value, SecretStr):
                text = value.get_secret_value()
                yield from (text, *text.split(","))
            elif isinstance(value, str) and "@" in value and "://" in value:
                with suppress(ValueError):
                    yield from filter(None, (urlsplit(value).password, unquote(urlsplit(value).password or "")))
                with suppress(ValueError):
                    found = sentinels.watched(value)
                    yield from () if found is None else filter(None, [found.own_login.get("password")])


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, BaseModel):
        yield from (leaf for name in type(value).model_fields for leaf in _leaves(getattr(value, name)))
    elif isinstance(value, dict):
        yield from (leaf for one in value.values() for leaf in _leaves(one))
    elif isinstance(value, list | tuple):
        yield from (leaf for one in value for leaf in _leaves(one))
    else:
        yield value


def variables(group: type[BaseModel] = Settings, prefix: str = "OFFICINA_") -> Iterator[str]:
    """Every environment name that sets something."""
    for name, field in group.model_fields.items():
        variable = prefix + name.upper()
        yield variable
        # A group that may be left out is a union with None.
        kinds = get_args(field.annotation) if get_origin(field.annotation) is UnionType else (field.annotation,)
        for kind in kinds:
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from variables(kind, f"{variable}__")
        if name == "models":
            for tier in get_args(Tier):
                yield f"{variable}__{tier.upper()}"
                yield from variables(Model, f"{variable}__{tier.upper()}__")


def unknown_variables(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Names that look like settings and set nothing: most likely misspelt."""
    known = {*variables(), *_NOT_SETTINGS}
    return sorted(name for name in environment if name.startswith("OFFICINA_") and name not in known)


@lru_cache(maxsize=1)
def get_settings() -> Settings:
    """The settings of this process, read once."""
    return Settings()
