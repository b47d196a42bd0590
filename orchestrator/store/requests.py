"""Calls of skills that were asked for over HTTP and that a worker makes: asked, claimed, settled, forgotten.

The row is the call; the message only says which. A call that may be repeated goes on elsewhere when its worker dies;
one that may not, and had begun, ends as `unknown`.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from sqlalchemy import (
    Column,
    Connection,
    Index,
    Integer,
    LargeBinary,
    Row,
    Table,
    Text,
    and_,
    delete,
    func,
    insert,
    select,
    text,
    update,
)

from orchestrator.records import Event
from orchestrator.store import columns, events
from orchestrator.store.database import now_ms
from orchestrator.store.sql import take_turns
from orchestrator.store.tables import metadata
from orchestrator.unknown import UNKNOWN
from registry.base import Json

#: Milliseconds until the clock sends the wake-up of a call again that nobody claimed.
RESEND_MS: Final = 5_000
#: Milliseconds after which a call that nobody claimed is not made any more, and a finished one is forgotten.
STALE_MS: Final = 3_600_000
KEPT_MS: Final = 24 * 3_600_000
#: Times a call is begun whose worker dies.
ATTEMPTS: Final = 3
_SILENT: Final = "its worker fell silent in the middle: this call may have happened, or not"

requests = Table(
    "requests",
    metadata,
    columns.key(),
    Column("owner_id", Text, nullable=False),
    #: The project it is made for: its folder, its trace, its desk.
    columns.ref("project_id", "projects.id", nullable=True),
    Column("skill", Text, nullable=False),
    Column("input", columns.SealedJson, nullable=False),
    #: Digest of skill and input, which a person's yes is bound to; None: a program asks, and nobody said yes.
    Column("approved", Text),
    #: queued, running, done
    Column("status", Text, nullable=False),
    #: Times it was claimed: what an earlier claim says is not heard.
    Column("fence", Integer, nullable=False, server_default=text("0")),
    #: A call that must not be repeated was about to be made.
    columns.flag("begun"),
    #: When somebody should look at it: its wake-up may be lost, its worker gone, or its result be of no use any more.
    columns.time("due_at", nullable=False),
    #: Where its span hangs: the `traceparent` of whoever asks, or of its project's submit.
    Column("trace_parent", Text),
    #: A file that came along; gone once it is done.
    Column("content", LargeBinary),
    #: SkillResult, once it is done.
    Column("result", columns.SealedJson),
    columns.time("created_at", nullable=False),
    columns.time("ended_at"),
    columns.partial("ix_requests_owner_id", "owner_id", where="status <> 'done'"),
    Index("ix_requests_due_at", "due_at"),
)


#: All but what it was made with, which may be large.
_SHOWN = tuple(column for column in requests.c if column.name not in ("input", "content"))


def put(connection: Connection, row: Mapping[str, Any], most: int) -> bool:
    """Asks for a call; False when so many of the owner's are open already, those counted that others ask for now."""
    take_turns(connection, f"calls {row['owner_id']}")
    mine = (requests.c.owner_id == row["owner_id"], requests.c.status != "done")
    if connection.execute(select(func.count()).where(*mine)).scalar_one() >= most:
        return False
    times = {"created_at": now_ms(), "due_at": now_ms() + RESEND_MS}
    connection.execute(insert(requests).values(dict(row) | {"status": "queued"} | times))
    return True


def get(connection: Connection, owner_id: str, request_id: str) -> Row[Any] | None:
    mine = (requests.c.owner_id == owner_id) & (requests.c.id == request_id)
    return connection.execute(select(*_SHOWN).where(mine)).one_or_none()


def done(connection: Connection, ids: Iterable[str]) -> list[str]:
    """Those of these calls that are over, or not there."""
    wanted = sorted(ids)
    open_ = select(requests.c.id).where(requests.c.id.in_(wanted), requests.c.status != "done")
    return sorted(set(wanted) - set(connection.execute(open_).scalars()))


def claim(connection: Connection, request_id: str, lease_ms: int) -> Row[Any] | None:
    """queued -> running; None: somebody else has it."""
    mine = update(requests).where(requests.c.id == request_id, requests.c.status == "queued")
    values = {"status": "running", "fence": requests.c.fence + 1, "due_at": now_ms() + lease_ms}
    return connection.execute(mine.values(values).returning(requests)).one_or_none()


def renew(connection: Connection, ids: Iterable[str], lease_ms: int) -> None:
    """Says that these calls go on."""
    mine = update(requests).where(requests.c.id.in_(sorted(ids)), requests.c.status == "running")
    connection.execute(mine.values(due_at=now_ms() + lease_ms))


def begin(connection: Connection, row: Row[Any]) -> bool:
    """The mark before the effect; False: the claim is another's by now."""
    return connection.execute(_mine(row).values(begun=True)).rowcount == 1


def settle(connection: Connection, row: Row[Any], result: Mapping[str, Json]) -> bool:
    """running -> done; False: the claim is another's by now, and this result is not heard."""
    ended = {"status": "done", "result": dict(result), "ended_at": now_ms(), "due_at": now_ms() + KEPT_MS}
    return connection.execute(_mine(row).values(ended | {"content": None})).rowcount == 1


def look_after(connection: Connection, limit: int) -> dict[str, str]:
    """What is due: calls nobody claimed and calls whose worker fell silent are to be sent (again), which are returned
    with their skills; those that cannot go on end; those long done are forgotten."""
    due = select(*_SHOWN, requests.c.input).where(requests.c.due_at <= now_ms())
    rows = list[Any](connection.execute(due.order_by(requests.c.due_at, requests.c.id).limit(limit)))
    now = int(connection.execute(select(now_ms())).scalar_one())
    again: dict[str, str] = {}
    lost: list[Row[Any]] = []
    for row in rows:
        if row.status == "done":
            connection.execute(delete(requests).where(requests.c.id == row.id, requests.c.status == "done"))
        elif (result := _given_up(row, now)) is not None:
            if settle(connection, row, result) and row.begun and row.project_id is not None:
                lost.append(row)
        else:
            moved = _mine(row).values(status="queued", due_at=now_ms() + RESEND_MS)
            again |= {row.id: row.skill} if connection.execute(moved).rowcount == 1 else {}
    for row in sorted(lost, key=lambda row: row.project_id):  # the counters of traces come last, in one order
        events.append(connection, row.project_id, _told(row))
    return again


def any_due() -> Any:
    """A query of one row that is due; may stand in another."""
    return select(requests.c.id).where(requests.c.due_at <= now_ms())


def _mine(row: Row[Any]) -> Any:
    """An update of the row, if it is still as it was read."""
    same = and_(requests.c.id == row.id, requests.c.fence == row.fence, requests.c.status == row.status)
    return update(requests).where(same)


def _given_up(row: Row[Any], now: int) -> dict[str, Json] | None:
    """The result of a call that does not go on; None: it does."""
    if row.status == "queued":
        words = "no worker took this call in time; nothing was done"
        return _failed("timeout", words, retryable=True) if now - row.created_at > STALE_MS else None
    if row.begun:
        return _failed(UNKNOWN, _SILENT)
    if row.fence >= ATTEMPTS:
        return _failed("tool_failed", f"its worker died, {ATTEMPTS} times")
    return None


def _failed(code: str, words: str, *, retryable: bool = False) -> dict[str, Json]:
    return {"ok": False, "durationMs": 0, "error": words, "code": code, "retryable": retryable}


def _told(row: Row[Any]) -> list[Event]:
    about: dict[str, Json] = {"toolCallId": row.id, "name": row.skill}
    ended = {"outcome": UNKNOWN, "isError": True, "output": _SILENT, "code": UNKNOWN, "durationMs": 0}
    return [Event("tool.call", about | {"input": row.input}), Event("tool.result", about | ended)]
