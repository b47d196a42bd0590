"""Many rows in one statement that costs the same to make however many they are.

PostgreSQL gets them as one parameter, JSON that it reads as a table. So the statement has always the same text:
compiled once, known to the driver, prepared by the server. One of many VALUES is another text for each number of rows,
and to write and read its parameters costs several times what the rows themselves do. SQLite's driver takes rows one by
one, which is its fast way.
"""

import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    JSON,
    ColumnElement,
    Connection,
    Dialect,
    Table,
    Text,
    TypeDecorator,
    bindparam,
    cast,
    column,
    func,
    insert,
    select,
    update,
)

from orchestrator.store.sql import upsert

#: Columns by name that are SQL expressions, the same for every row. Statements are kept by them, so they have to be
#: constants of a module: one made anew each time would be another statement each time.
Shared = tuple[tuple[str, ColumnElement[Any]], ...]
Rows = Sequence[dict[str, Any]]

#: Statements kept: one for each table and set of columns.
KEPT = 128
_ROWS, _GIVEN = "rows", "given_"
_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False)


def insert_all(connection: Connection, table: Table, rows: Rows, shared: Shared = ()) -> None:
    """Inserts rows that all have the same columns."""
    if not rows:
        return
    if connection.dialect.name == "postgresql":
        statement = _insert(table, tuple(rows[0]), shared)
        connection.execute(statement, {_ROWS: _written(connection.dialect, table, rows)})
    else:
        connection.execute(insert(table).values(dict(shared)) if shared else insert(table), rows)


def upsert_all(connection: Connection, table: Table, rows: Rows) -> None:
    """The same, or replaces every given column of the row with the same primary key, which may be given once."""
    if not rows:
        return
    if connection.dialect.name == "postgresql":
        statement = _upsert(table, tuple(rows[0]))
        connection.execute(statement, {_ROWS: _written(connection.dialect, table, rows)})
    else:
        upsert(connection, table, rows)


def update_all(
    connection: Connection, table: Table, rows: Rows, shared: Shared = (), adds: frozenset[str] = frozenset()
) -> None:
    """Changes rows that are there, found by their `id`; all have the same columns.

    Args:
        adds: columns to which the given value is added.
    """
    if not rows:
        return
    names = tuple(rows[0])
    if connection.dialect.name == "postgresql":
        statement = _update(table, names, shared, adds)
        connection.execute(statement, {_ROWS: _written(connection.dialect, table, rows)})
    else:
        # A parameter must not have the name of a column that the statement sets by an expression.
        own = {name: f"{_GIVEN}{name}" for name in names if name == "id" or name in adds}
        given = [{own.get(name, name): value for name, value in row.items()} for row in rows]
        connection.execute(_update_each(table, shared, adds), given)


def _written(dialect: Dialect, table: Table, rows: Rows) -> str:
    """Rows as JSON, each value as the driver would have got it."""
    if changed := _processors(dialect, table, tuple(rows[0])):
        rows = [{**row, **{name: write(row[name]) for name, write in changed}} for row in rows]
    return _encoder.encode(rows)


@lru_cache(KEPT)
def _processors(dialect: Dialect, table: Table, names: tuple[str, ...]) -> list[tuple[str, Callable[[Any], Any]]]:
    types = ((name, table.c[name].type) for name in names)
    found = ((name, type_.bind_processor(dialect)) for name, type_ in types if isinstance(type_, TypeDecorator))
    return [(name, write) for name, write in found if write is not None]


def _given(table: Table, names: tuple[str, ...]) -> Any:
    """The parameter as a table."""
    plain = (column(name, Text if isinstance(t := table.c[name].type, TypeDecorator) else t) for name in names)
    read = func.json_to_recordset(cast(bindparam(_ROWS, type_=Text), JSON))
    return read.table_valued(*plain).render_derived(name="given", with_types=True)


@lru_cache(KEPT)
def _insert(table: Table, names: tuple[str, ...], shared: Shared) -> Any:
    given = _given(table, names)
    some = [*(given.c[name] for name in names), *(value for _, value in shared)]
    return insert(table).from_select([*names, *(name for name, _ in shared)], select(*some).select_from(given))


@lru_cache(KEPT)
def _upsert(table: Table, names: tuple[str, ...]) -> Any:
    from sqlalchemy.dialects import postgresql  # loaded by whoever uses it: it is a third of all SQLAlchemy

    given, keys = _given(table, names), [one.name for one in table.primary_key]
    made = postgresql.insert(table).from_select(names, select(*(given.c[name] for name in names)))
    changed = {name: made.excluded[name] for name in names if name not in keys}
    return made.on_conflict_do_update(index_elements=keys, set_=changed)


@lru_cache(KEPT)
def _update(table: Table, names: tuple[str, ...], shared: Shared, adds: frozenset[str]) -> Any:
    given = _given(table, names)
    changed = {name: given.c[name] for name in names if name != "id" and name not in adds}
    changed |= {name: table.c[name] + given.c[name] for name in adds}
    return update(table).where(table.c.id == given.c.id).values(changed | dict(shared))


@lru_cache(KEPT)
def _update_each(table: Table, shared: Shared, adds: frozenset[str]) -> Any:
    """The columns that are set as they are given come from the names of the first row."""
    changed = {name: table.c[name] + bindparam(f"{_GIVEN}{name}") for name in sorted(adds)}
    return update(table).where(table.c.id == bindparam(f"{_GIVEN}id")).values(changed | dict(shared))
