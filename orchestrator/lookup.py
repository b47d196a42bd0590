"""Ids as people type them: whole, or a beginning or an end that only one row has.

Ids begin with their time: rows made within a minute share their first characters, and their last ones tell them apart.
"""

import re
from datetime import UTC, datetime
from functools import cache
from typing import Any, Literal

from sqlalchemy import ColumnElement, Connection, Select, Table, Text, bindparam, or_, select

from orchestrator.store import audit
from orchestrator.store.tables import projects, runs, signals, tasks
from registry.errors import Refused

#: Characters of an id that may stand for it.
SHORTEST = 6

#: Characters of a whole id.
WHOLE = 36

_ID = re.compile(r"[0-9a-f-]{1,36}")

Kind = Literal["project", "thread", "trace", "task", "run", "signal"]


@cache
def _query(kind: Kind, *, whole: bool) -> Select[Any]:
    """The statement for ids of a kind: a whole one is looked up; only a part of one is looked for."""
    table, own = _own(kind)
    asked: Any = bindparam("asked", type_=Text)
    like = table.c.id == asked if whole else or_(table.c.id.startswith(asked), table.c.id.endswith(asked))
    return select(table.c.id).where(own, like).order_by(table.c.id.desc()).limit(6)


def _own(kind: Kind) -> tuple[Table, ColumnElement[bool]]:
    """Where ids of a kind stand, and which of them are the owner's."""
    mine, theirs = projects.c.owner_id == bindparam("owner"), select(projects.c.id)
    match kind:
        case "project":
            return projects, mine & (projects.c.kind == "project")
        case "thread":
            return projects, mine & (projects.c.kind == "thread") & (projects.c.status == "running")
        case "trace":
            return projects, mine
        case "task":
            return tasks, tasks.c.project_id.in_(theirs.where(mine))
        case "run":
            return runs, runs.c.project_id.in_(theirs.where(mine))
        case "signal":
            return signals, signals.c.owner_id == bindparam("owner")


def project_id(connection: Connection, given: str, owner: str) -> str:
    """The whole id of one of the owner's projects.

    Raises:
        Refused: `unknown_project`, or `ambiguous_id` when several begin like that.
    """
    try:
        return _one(connection, "project", given, owner)
    except Refused as refused:
        gone = audit.pruned(connection, owner, given) if len(given) == WHOLE else None
        if gone is None:
            raise
        day = f"{datetime.fromtimestamp(gone.at / 1000, UTC):%d %B %Y}"
        words = f"project {given} ({gone.data['title']}) was taken away on {day} because it was old"
        raise Refused(words, code=refused.code) from None


def thread_id(connection: Connection, given: str, owner: str) -> str:
    """The whole id of one of the owner's threads that was not deleted (`unknown_thread`, `ambiguous_id`)."""
    return _one(connection, "thread", given, owner)


def trace_id(connection: Connection, given: str, owner: str) -> str:
    """The whole id of a project or a thread, deleted or not: of whatever has a trace (`unknown_project`)."""
    return _one(connection, "trace", given, owner, word="project")


def task_id(connection: Connection, given: str, owner: str) -> str:
    """The whole id of a task in one of the owner's projects (`unknown_task`, `ambiguous_id`)."""
    return _one(connection, "task", given, owner)


def run_id(connection: Connection, given: str, owner: str) -> str:
    """The whole id of a run in one of the owner's projects (`unknown_run`, `ambiguous_id`)."""
    return _one(connection, "run", given, owner)


def signal_id(connection: Connection, given: str, owner: str) -> str:
    """The whole id of one of the owner's signals (`unknown_signal`, `ambiguous_id`)."""
    return _one(connection, "signal", given, owner)


def _one(connection: Connection, kind: Kind, given: str, owner: str, *, word: str | None = None) -> str:
    word = word or kind
    asked = given.strip().lower()
    if not _ID.fullmatch(asked):
        raise Refused(f"{given[:60]!r} is no id; a {word} id looks like 0194c5d2-7c1e-7a60-...", code=f"unknown_{word}")
    if len(asked) < SHORTEST:
        raise Refused(f"{asked!r} is too short; give at least {SHORTEST} characters of the id", code=f"unknown_{word}")
    query = _query(kind, whole=len(asked) == WHOLE)
    found = connection.scalars(query, {"owner": owner, "asked": asked}).all()
    if not found:
        raise Refused(f"there is no {word} {asked}", code=f"unknown_{word}")
    if len(found) > 1:
        several = ", ".join(found[:5]) + (" and more" if len(found) > 5 else "")
        raise Refused(f"{asked} means more than one {word}: {several}", code="ambiguous_id")
    return str(found[0])
