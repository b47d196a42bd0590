"""What the tables are made of: columns of our few kinds, and the one metadata they belong to.

Times are epoch milliseconds on the database's clock. Money is whole micro-USD. JSON is text of our own writing: key
order and integers of any length survive, and nothing is ever queried inside it.
"""

import json
from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, MetaData, Text, TypeDecorator, false, text

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


def ref(name: str, target: str, *, nullable: bool = False) -> Column[str]:
    return Column(name, Text, ForeignKey(target), nullable=nullable)
