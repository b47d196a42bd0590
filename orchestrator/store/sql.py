"""The few places where SQLite and Postgres need different words for the same statement.

What runs execute all day is a constant of its module, with parameters in the place of values: to build such a statement
anew and look it up among the compiled ones costs several times what it takes to execute it.
"""

import json
from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import BindParameter, Boolean, ColumnElement, Connection, Dialect, Table, bindparam, text
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import UserDefinedType


class _Names(UserDefinedType[list[str]]):
    """Several texts as one parameter: an array, and JSON where there are none."""

    cache_ok = True

    def bind_processor(self, dialect: Dialect) -> Any:
        return list if dialect.name == "postgresql" else json.dumps


class _Among(FunctionElement[bool]):
    type = Boolean()
    inherit_cache = True

    def self_group(self, against: Any = None) -> "_Among":
        return self  # a condition as it is, with no `= 1` behind it


@compiles(_Among, "postgresql")
def _among_postgres(element: Any, compiler: Any, **more: Any) -> str:
    left, right = (compiler.process(clause, **more) for clause in element.clauses)
    return f"({left} = ANY (CAST({right} AS TEXT[])))"


@compiles(_Among, "sqlite")
def _among_sqlite(element: Any, compiler: Any, **more: Any) -> str:
    left, right = (compiler.process(clause, **more) for clause in element.clauses)
    return f"({left} IN (SELECT value FROM json_each({right})))"


def among(column: ColumnElement[Any], values: Collection[str] | BindParameter[Any]) -> ColumnElement[bool]:
    """Whether a text column is one of these. Unlike with `in_` the statement is the same however many they are: it is
    written once, and known to the driver and the server."""
    if not isinstance(values, BindParameter):
        values = bindparam(None, list(values), type_=_Names(), unique=True)
    return _Among(column, values)


def several(name: str) -> BindParameter[Any]:
    """Texts that an execution gives under this name, for `among`."""
    return bindparam(name, type_=_Names())


def insert_or_ignore(connection: Connection, table: Table, rows: Sequence[dict[str, Any]], **extra: Any) -> None:
    """Inserts rows whose key is not there yet.

    `extra` are column values that are SQL expressions, the same for every row.
    """
    if rows:
        statement = _insert(connection, table).values(**extra) if extra else _insert(connection, table)
        connection.execute(statement.on_conflict_do_nothing(), rows)


def upsert(connection: Connection, table: Table, rows: Sequence[dict[str, Any]], **extra: Any) -> None:
    """Inserts rows, or replaces every given column of the row with the same primary key.

    `extra` are column values that are SQL expressions, the same for every row.
    """
    if not rows:
        return
    keys = [column.name for column in table.primary_key]
    statement = _insert(connection, table).values(**extra) if extra else _insert(connection, table)
    changed = {name: statement.excluded[name] for name in [*rows[0], *extra] if name not in keys}
    statement = statement.on_conflict_do_update(index_elements=keys, set_=changed)
    connection.execute(statement, rows)


def add(connection: Connection, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    """Inserts rows, or adds every given column to that of the row with the same primary key."""
    if not rows:
        return
    keys = [column.name for column in table.primary_key]
    statement = _insert(connection, table)
    sums = {name: table.c[name] + statement.excluded[name] for name in rows[0] if name not in keys}
    connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=sums), rows)


def take_turns(connection: Connection, what: str) -> None:
    """Until this transaction ends no other that names the same goes on from here. For rules about rows that are not
    there yet, which no lock of a row can keep; on SQLite every write transaction is alone anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtextextended(:what, 0))"), {"what": what})


def _insert(connection: Connection, table: Table) -> Any:
    # A dialect is loaded by whoever uses it: PostgreSQL's is a third of all SQLAlchemy.
    if connection.dialect.name == "sqlite":
        from sqlalchemy.dialects import sqlite

        return sqlite.insert(table)
    from sqlalchemy.dialects import postgresql

    return postgresql.insert(table)
