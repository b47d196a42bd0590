"""Whether a database fits this release: by what is in it, not by the number of its last migration.

A newer release's first migrations (`pre`) only add what the running release does not mind; so a number that is unknown
here is no fault, and a column that is missing is one whatever the number says.
"""

from typing import Any

from sqlalchemy import inspect

from orchestrator.store.database import Database, is_new, revisions
from registry.errors import Refused

#: Faults that a message names.
MOST = 5


def faults(database: Database) -> list[str]:
    """What keeps this release from working on it, a line each; an empty list: nothing does.

    Raises:
        Unavailable: the database does not answer.
    """
    if database.in_memory:
        return []
    if is_new(database):
        return ["it has no tables yet"]
    found = _columns(database)
    if "runs" not in found:
        return ["it has no tables yet"]
    wrong: list[str] = []
    from orchestrator.store.kept import metadata

    for table in metadata.sorted_tables:
        there = found.get(table.name)
        if there is None:
            wrong.append(f"the table {table.name} is missing")
            continue
        wrong += [f"the column {table.name}.{c.name} is missing" for c in table.columns if c.name not in there]
        for name, column in there.items():
            if name not in table.columns and not column["nullable"] and column.get("default") is None:
                wrong.append(f"the column {table.name}.{name} must be filled, and this release does not know it")
    return wrong


def require(database: Database) -> None:
    """
    Raises:
        Refused: `schema`, with what is wrong and what to do about it.
        Unavailable: the database does not answer.
    """
    wrong = faults(database)
    if wrong:
        raise Refused(f"{shown(database)} does not fit this release: {told(wrong)}; {remedy(database)}", code="schema")


def told(wrong: list[str]) -> str:
    """The first faults, in one line."""
    more = f" and {len(wrong) - MOST} more" if len(wrong) > MOST else ""
    return ", ".join(wrong[:MOST]) + more


def remedy(database: Database) -> str:
    """What brings the two together."""
    there, wanted = (None, None) if is_new(database) else revisions(database)
    if there is not None and there == wanted:
        return "it was changed by hand, or made by an unfinished version of this release: make a new one"
    if there is not None and not _knows(there):
        return f"its schema {there} is of a newer release: start that one"
    return "run `officina db upgrade`"


def shown(database: Database) -> str:
    return database.url.render_as_string(hide_password=True)


def _knows(revision: str) -> bool:
    from pathlib import Path

    versions = Path(__file__).parent / "migrations" / "versions"
    return any(path.name.startswith(f"{revision}_") for path in versions.glob("*.py"))


def _columns(database: Database) -> dict[str, dict[str, Any]]:
    """Every column there is, by table and name."""
    with database.read() as connection:
        found = inspect(connection).get_multi_columns()
    return {str(table): {column["name"]: column for column in columns} for (_, table), columns in found.items()}
