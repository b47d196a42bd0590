"""What the tables are made of: columns of our few kinds, and the one metadata they belong to.

Times are epoch milliseconds on the database's clock. Money is whole micro-USD. JSON is text of our own writing: key
order and integers of any length survive, and nothing is ever queried inside it.
"""

import json
from typing import Any, Protocol

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    ForeignKey,
    Index,
    MetaData,
    Text,
    TypeDecorator,
    event,
    false,
    text,
)

from registry import masking
from registry.errors import OfficinaError
from registry.jsontext import compact


class JsonText(TypeDecorator[Any]):
    """Any JSON value, null included, in a text column; SQL NULL reads as None too."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Any) -> str | None:
        if value is None:
            return None
        written = compact(value)
        try:
            written.encode()
        except UnicodeEncodeError:  # half a character cannot be stored as UTF-8; escaped it can
            return json.dumps(value, separators=(",", ":"))
        return written

    def process_result_value(self, value: str | None, dialect: Any) -> Any:
        return None if value is None else json.loads(value)


#: Where an engine's dialect keeps what seals and opens; an engine without it writes plain JSON.
SEAL = "officina_seal"
_SEALED = "sealed:"


class Seal(Protocol):
    """Closes texts so that only a holder of this installation's key reads them."""

    def close_text(self, text: str) -> str: ...

    def open_text(self, text: str) -> str: ...


class SealedJson(JsonText):
    """JSON that may hold a secret: what calls were made with, what they brought, what of it went into a history.

    A value in which something looks like a secret is stored encrypted, and comes back exactly as it was; every other
    one is stored as it is.
    """

    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Any) -> str | None:
        written = super().process_bind_param(value, dialect)
        seal: Seal | None = getattr(dialect, SEAL, None)
        if written is None or seal is None or not masking.reveals(written):
            return written
        return _SEALED + seal.close_text(written)

    def process_result_value(self, value: str | None, dialect: Any) -> Any:
        if value is not None and value.startswith(_SEALED):
            seal: Seal | None = getattr(dialect, SEAL, None)
            if seal is None:
                words = "a row holds an encrypted value, and there is no key to it: set OFFICINA_SECRET_KEY as it was"
                raise OfficinaError(words, code="sealed")
            value = seal.open_text(value.removeprefix(_SEALED))
        return super().process_result_value(value, dialect)


metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def key(name: str = "id") -> Column[str]:
    return Column(name, Text, primary_key=True)


def time(name: str, *, nullable: bool = True) -> Column[int]:
    return Column(name, BigInteger, nullable=nullable)


def count(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False, server_default=text("0"))


def flag(name: str) -> Column[bool]:
    return Column(name, Boolean, nullable=False, server_default=false())


def partial(name: str, *names: str, where: str) -> Index:
    """An index of the rows that match.

    PostgreSQL learns the condition when it makes the index: said here, its dialect would be loaded by every command.
    """
    index = Index(name, *names, sqlite_where=text(where))

    @event.listens_for(index, "before_create")
    def _before(made: Index, connection: Connection, **_: Any) -> None:
        if connection.dialect.name == "postgresql":
            made.dialect_options["postgresql"]["where"] = text(where)

    return index


def ref(name: str, target: str, *, nullable: bool = False) -> Column[str]:
    return Column(name, Text, ForeignKey(target), nullable=nullable)
