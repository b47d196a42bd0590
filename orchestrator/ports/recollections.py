"""The `Recollections` port over rows (spec: engine 15, pack `episodic-memory`).

The index is brought up to date by whoever searches, the latest runs first, and no longer than a few seconds at a time:
runs and their steps know nothing of it.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Row, select

from orchestrator.ports import ranking, spaces
from orchestrator.store import fulltext, histories, passages, sql
from orchestrator.store import recollections as moves
from orchestrator.store.database import Database, now_ms
from orchestrator.store.memories import DAY_MS
from registry import masking
from registry.passages import passages as pieces
from registry.skills.context import Caller
from registry.skills.notebook import Moment

#: Runs that one transaction looks through, and seconds a search may spend on that.
BATCH: Final = 20
INDEX_S: Final = 3.0
#: Pieces of one message that are kept, and characters of each.
MOST_PIECES: Final = 50
PIECE: Final = 2_000
KIND: Final = "said"


@dataclass(frozen=True)
class _Mine:
    """The runs an agent looks back at."""

    namespace: str
    space: str
    project_id: str | None
    threads_only: bool


class StoredRecollections:
    """
    Args:
        most: passages of one agent that are kept, the latest.
        days: how long after the end of its run something said can be found.
    """

    def __init__(self, database: Database, *, most: int, days: int) -> None:
        self._database = database
        self._most = most
        self._days = days

    def search(self, caller: Caller, query: str, *, thread_id: str | None, limit: int, compacted: bool) -> list[Moment]:
        """See `Recollections`."""
        wanted = fulltext.sought(query)
        with self._database.read() as connection:
            mine = _mine(connection, caller)
        if mine is None or not wanted:
            return []
        self._index(caller, mine)
        with self._database.read() as connection:
            found = [
                Moment(row.thread_id, row.position, row.text, 0.0)
                for row in fulltext.find(connection, [mine.space], wanted, thread_id=thread_id)
            ]
            if compacted and thread_id in (None, caller.thread_id):
                found += _compacted(connection, caller)
        ranked = zip(ranking.scores([one.text for one in found], wanted), found, strict=True)
        best = sorted(((score, one) for score, one in ranked if score > 0), key=lambda pair: pair[0], reverse=True)
        return [Moment(one.thread_id, one.seq, one.text, round(score, 4)) for score, one in best[:limit]]

    def _index(self, caller: Caller, mine: _Mine) -> None:
        until = time.monotonic() + INDEX_S
        with self._database.read() as connection:  # most searches find nothing new, and then write nothing
            if not self._unseen(connection, caller, mine, 1):
                return
        while self._database.write(lambda c: self._look_through(c, caller, mine)) == BATCH:
            if time.monotonic() > until:
                return

    def _look_through(self, connection: Connection, caller: Caller, mine: _Mine) -> int:
        """Indexes the latest ended runs that are not yet; how many those were."""
        sql.take_turns(connection, f"recall {mine.space}")
        found = self._unseen(connection, caller, mine, BATCH)
        for run in found:
            skipped = moves.before(connection, run.thread_id, run.number) if run.thread_id is not None else 0
            rows = [
                {"run_id": run.id, "thread_id": run.thread_id, "position": skipped + number, "text": text}
                for number, text in _texts(moves.said(connection, run.id))
            ]
            passages.add(connection, mine.space, [row | {"at": run.ended_at} for row in rows])
        moves.take(connection, [run.id for run in found])
        passages.trim(connection, mine.space, self._most)
        return len(found)

    def _unseen(self, connection: Connection, caller: Caller, mine: _Mine, limit: int) -> list[Row[Any]]:
        since = int(connection.execute(select(now_ms())).scalar_one()) - self._days * DAY_MS
        return moves.unseen(
            connection,
            caller.owner_id,
            str(caller.agent_id),
            project_id=mine.project_id,
            threads_only=mine.threads_only,
            since_ms=since,
            limit=limit,
        )


def _mine(connection: Connection, caller: Caller) -> _Mine | None:
    namespace = spaces.own(connection, caller)
    if namespace is None or caller.agent_id is None:
        return None
    project_id = spaces.project_of(caller, namespace)
    everywhere = namespace.startswith("being:") or spaces.outlives(connection, caller)
    space = passages.digest(caller.owner_id, KIND, namespace)
    return _Mine(namespace, space, project_id, threads_only=project_id is None and not everywhere)


def _texts(said: Sequence[Row[Any]]) -> Iterator[tuple[int, str]]:
    """What people and the agent said, with the number of each message. What tools brought is left out: it is much, it
    is others' words, and what the agent made of it is there."""
    for message in said:
        if message.body.get("role") in ("user", "assistant") and not message.body.get("kind"):
            yield from ((message.number, piece) for piece in _pieces(message.body.get("content")))


def _pieces(content: Any) -> list[str]:
    if not isinstance(content, str):
        return []
    plain = masking.mask_text(content).replace("\0", "").encode("utf-8", "replace").decode()
    return pieces(plain[: MOST_PIECES * PIECE], PIECE)[:MOST_PIECES]


def _compacted(connection: Connection, caller: Caller) -> list[Moment]:
    """What was said in the present run and is no longer sent, since a summary stands for it."""
    if caller.run_id is None:
        return []
    said = moves.said(connection, caller.run_id)
    summaries = [m for m in said if m.body.get("kind") == histories.SUMMARY and type(m.body.get("coveredUntil")) is int]
    if not summaries:
        return []
    last = summaries[-1]
    thread = moves.place(connection, caller.run_id)
    skipped = moves.before(connection, thread.thread_id, thread.number) if thread is not None else 0
    carried = 0
    if thread is not None:
        carried = sum(m.history == last.history for m in histories.before(connection, caller.run_id))
    own = [message for message in said if message.history == last.history]
    covered = own[: max(0, last.body["coveredUntil"] - carried)]
    thread_id = None if thread is None else thread.thread_id
    return [Moment(thread_id, skipped + number, text, 0.0) for number, text in _texts(covered)]
