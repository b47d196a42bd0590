"""The few places where SQLite and Postgres need different words for the same statement."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Table, text


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
