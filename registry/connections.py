"""Connections: accounts outside Officina that skills may use on their owner's behalf, by name (spec: skills 2, 7).

A person makes them; no skill, agent or generator can. What stands in a `SecretStr` field is stored encrypted, never
shown again, and bound to what the other fields say: its hosts, its chats, its servers.
"""

import base64
from typing import Annotated, Final, Literal, Protocol, TypeVar

from pydantic import AfterValidator, Field, SecretStr, StringConstraints, TypeAdapter, field_validator

from registry.base import Json, Model
from registry.errors import SkillError
from registry.skills.mail.addresses import Address
from registry.skills.urls import Url, clean_host, parse_url
from registry.text import one_line

#: The name that is taken when a skill does not say which.
DEFAULT: Final = "default"
#: Headers that are the network guard's alone.
_TRAVEL: Final = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "accept-encoding", "te", "expect"}
)

ConnectionName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,39}$")]
Line = Annotated[str, StringConstraints(max_length=200), AfterValidator(one_line)]
HeaderName = Annotated[str, StringConstraints(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$")]


def _unbroken(secret: SecretStr) -> SecretStr:
    """Secrets travel in headers and commands of one line."""
    if any(character in "\r\n\0" for character in secret.get_secret_value()):
        raise ValueError("holds a line break or NUL")
    return secret


Secret = Annotated[SecretStr, Field(min_length=1, max_length=8192), AfterValidator(_unbroken)]


def _origin(text: str) -> str:
    """A host, a host with its port, or a whole origin; a bare host means https."""
    try:
        url = parse_url(text if "://" in text else f"https://{text}")
    except SkillError as error:
        raise ValueError(error.message) from None
    if url.target != "/":
        raise ValueError("give a host such as api.example.com, without a path")
    return url.origin


def _host(text: str) -> str:
    try:
        return clean_host(text)
    except SkillError as error:
        raise ValueError(error.message) from None


Origin = Annotated[str, AfterValidator(_origin)]
HostName = Annotated[str, StringConstraints(min_length=1, max_length=253), AfterValidator(_host)]


class HttpConnection(Model):
    """A secret that http.request and http.json add to requests to the hosts it is bound to, and to no other."""

    kind: Literal["http"] = "http"
    #: `api.example.com` means https; http only where it is written out.
    hosts: tuple[Origin, ...] = Field(min_length=1, max_length=20)
    header: HeaderName = "Authorization"
    #: Stands before the secret.
    prefix: Annotated[str, StringConstraints(max_length=40)] = "Bearer "
    #: With a name the secret is the password of HTTP Basic.
    username: Line | None = None
    secret: Secret

    @field_validator("header")
    @classmethod
    def _ours(cls, header: str) -> str:
        if header.lower() in _TRAVEL or header.lower().startswith("proxy-"):
            raise ValueError("says how bytes travel, and holds no secret")
        return header

    @field_validator("prefix")
    @classmethod
    def _printable(cls, prefix: str) -> str:
        if not (prefix.isascii() and prefix.isprintable()):
            raise ValueError("holds characters that no header takes")
        return prefix

    def bound_to(self, url: Url) -> bool:
        """Whether the secret may go to this address."""
        return url.origin in self.hosts

    def header_value(self) -> str:
        secret = self.secret.get_secret_value()
        if self.username is None:
            return self.prefix + secret
        return "Basic " + base64.b64encode(f"{self.username}:{secret}".encode()).decode()


class MailServer(Model):
    host: HostName
    port: int = Field(ge=1, le=65535)
    #: `tls` from the first byte, or `starttls` before anything is said.
    security: Literal["tls", "starttls"] = "tls"


class EmailConnection(Model):
    """A mailbox: where mail is sent from, and read."""

    kind: Literal["email"] = "email"
    address: Address
    name: Line | None = None
    username: Line
    smtp: MailServer | None = None
    imap: MailServer | None = None
    #: Folders that may be read; none: all.
    folders: tuple[Line, ...] = ()
    password: Secret


class TelegramConnection(Model):
    """A bot."""

    kind: Literal["telegram"] = "telegram"
    #: Where messages go that name no chat.
    chat_id: int | str | None = None
    #: Chats it may write to; none: any.
    chats: tuple[int | str, ...] = ()
    api: Origin = "https://api.telegram.org"
    token: Secret


class WhatsappConnection(Model):
    """A business number of the Cloud API."""

    kind: Literal["whatsapp"] = "whatsapp"
    number_id: Annotated[str, StringConstraints(pattern=r"^[0-9]{5,20}$")]
    graph_version: Annotated[str, StringConstraints(pattern=r"^v[0-9]{1,3}\.[0-9]$")] = "v23.0"
    #: Numbers it may write to; none: any.
    numbers: tuple[str, ...] = ()
    api: Origin = "https://graph.facebook.com"
    token: Secret


Connection = HttpConnection | EmailConnection | TelegramConnection | WhatsappConnection
KINDS: Final[dict[str, type[Connection]]] = {
    "http": HttpConnection,
    "email": EmailConnection,
    "telegram": TelegramConnection,
    "whatsapp": WhatsappConnection,
}
C = TypeVar("C", HttpConnection, EmailConnection, TelegramConnection, WhatsappConnection)

#: Any connection, told apart by its `kind`.
ANY: Final[TypeAdapter[Connection]] = TypeAdapter(Annotated[Connection, Field(discriminator="kind")])
NAME: Final[TypeAdapter[str]] = TypeAdapter(ConnectionName)


def secret_fields(kind: type[Model]) -> list[str]:
    """The JSON names of a kind's secret fields."""
    return [field.alias or name for name, field in kind.model_fields.items() if field.annotation is SecretStr]


def split(connection: Connection) -> tuple[dict[str, Json], dict[str, str]]:
    """What may be shown of it, and its secrets."""
    secret = {}
    for name in secret_fields(type(connection)):
        secret[name] = getattr(connection, name).get_secret_value()
    shown = connection.to_json()
    return {name: value for name, value in shown.items() if name not in secret}, secret


class Connections(Protocol):
    """The port: what the owner of a call has connected."""

    def find(self, owner_id: str, kind: type[C], name: str | None = None) -> C | None:
        """A connection of this kind: the named one, or the one called `default`, or the oldest; None: there is none.

        Raises:
            SkillError: `tool_failed` when it was stored under a key this process does not have.
        """
        ...
