"""Ids as people type them: whole, or a beginning or an end that only one row has.

Ids begin with their time: rows made within a minute share their first characters, and their last ones tell them apart.
"""

import re
from datetime import UTC, datetime

from sqlalchemy import ColumnElement, Connection, Table, or_, select

from orchestrator.store import audit
from orchestrator.store.tables import projects, runs, signals, tasks
from registry.errors import Refused

#: Characters of an id that may stand for it.
SHORTEST = 6

#: Characters of a whole id.
WHOLE = 36

_ID = re.compile(r"[0-9a-f-]{1,36}")


def project_id(connection: Connection, given: str, owner: str) -> str:
    """The whole id of one of the owner's projects.

    Raises:
        Refused: `unknown_project`, or `ambiguous_id` when several begin like that.
    """
    own = (projects.c.owner_id == owner) & (projects.c.kind == "project")
    try:
        return _one(connection, projects, own, given, "project")
    except Refused as refused:
        gone = audit.pruned(connection, owner, given) if len(given) == WHOLE else None
        if gone is None:
            raise
        day = f"{datetime.fromtimestamp(gone.at / 1000, UTC):%d %B %Y}"
        words = f"project {given} ({gone.data['title']}) was taken away on {day} because it was old"
        raise Refused(words, code=refused.code) from None


def thread_id(connection: Connection, given: str, owner: str) -> str:
    """The whole id of one of the owner's threads that was not deleted (`unknown_thread`, `ambiguous_id`)."""
    own = (projects.c.owner_id == owner) & (projects.c.kind == "thread") & (projects.c.status == "running")
    return _one(connection, projects, own, given, "thread")


def trace_id(connection: Connection, given: str, owner: str) -> str:
    """The whole id of a project or a thread, deleted or not: of whatever has a trace (`unknown_project`)."""
    return _one(connection, projects, projects.c.owner_id == owner, given, "project")


def task_id(connection: Connection, given: str, owner: str) -> str:
    """The whole id of a task in one of the owner's projects (`unknown_task`, `ambiguous_id`)."""
    own = tasks.c.project_id.in_(select(projects.c.id).where(projects.c.owner_id == owner))
    return _one(connection, tasks, own, given, "task")


def run_id(connection: Connection, given: str, owner: str) -> str:
    """The whole id of a run in one of the owner's projects (`unknown_run`, `ambiguous_id`)."""
    own = runs.c.project_id.in_(select(projects.c.id).where(projects.c.owner_id == owner))
    return _one(connection, runs, own, given, "run")


def signal_id(connection: Connection, given: str, owner: str) -> str:
    """The whole id of one of the owner's signals (`unknown_signal`, `ambiguous_id`)."""
    return _one(connection, signals, signals.c.owner_id == owner, given, "signal")


def _one(connection: Connection, table: Table, own: ColumnElement[bool], given: str, word: str) -> str:
    asked = given.strip().lower()
    if not _ID.fullmatch(asked):
        raise Refused(f"{given[:60]!r} is no id; a {word} id looks like 0194c5d2-7c1e-7a60-...", code=f"unknown_{word}")
    if len(asked) < SHORTEST:
        raise Refused(f"{asked!r} is too short; give at least {SHORTEST} characters of the id", code=f"unknown_{word}")
    # A whole id is looked up; only a part of one is looked for.
    like = table.c.id == asked if len(asked) == WHOLE else or_(table.c.id.startswith(asked), table.c.id.endswith(asked))
    found = connection.scalars(select(table.c.id).where(own, like).order_by(table.c.id.desc()).limit(6)).all()
    if not found:
        raise Refused(f"there is no {word} {asked}", code=f"unknown_{word}")
    if len(found) > 1:
        several = ", ".join(found[:5]) + (" and more" if len(found) > 5 else "")
        raise Refused(f"{asked} means more than one {word}: {several}", code="ambiguous_id")
    return str(found[0])
