"""The `Records` port over the one table of memories (spec: engine 15, pack `semantic-memory`; skills 18)."""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection, Row
from sqlalchemy.exc import IntegrityError

from orchestrator.ports import spaces
from orchestrator.ports.keys import call_key
from orchestrator.ports.provenance import Provenance
from orchestrator.store import memories as moves
from orchestrator.store.database import Database
from orchestrator.store.memories import Space
from registry.errors import SkillError
from registry.skills.context import Caller
from registry.skills.notebook import Record, RecordScope

#: How important a memory is that says nothing of it.
IMPORTANCE: Final = 0.5
SCOPES: Final[tuple[RecordScope, ...]] = ("long", "session")


class StoredRecords:
    """
    Args:
        most: memories a namespace may hold.
        session_days: days a memory of a conversation is kept.
    """

    def __init__(self, database: Database, provenance: Provenance, *, most: int, session_days: int) -> None:
        self._database = database
        self._provenance = provenance
        self._most = most
        self._session_days = session_days

    def write(self, caller: Caller, scope: RecordScope, text: str, key: str | None) -> Record:
        """See `Records`."""

        def work(connection: Connection) -> Row[Any]:
            space = _space(connection, caller, scope)
            moves.take_turns(connection, space)
            call = call_key(caller)
            if mine := moves.of_call(connection, call):
                return moves.read(connection, [mine])[mine]
            untrusted = self._provenance.untrusted(connection, caller)
            moves.expire(connection, space)
            known = moves.of_key(connection, space, key) if key is not None else moves.same(connection, space, text)
            if known is not None:
                if key is not None:
                    moves.rewrite(connection, space, known, text, untrusted=untrusted)
                else:
                    moves.strengthen(connection, known, importance=IMPORTANCE, ttl_days=None, untrusted=untrusted)
                return moves.read(connection, [known.id])[known.id]
            full = moves.count(connection, space) >= self._most
            if full and not moves.drop_lowest(connection, space, IMPORTANCE):
                words = f"memory is full ({self._most}), and all of it is more important than this"
                raise SkillError("quota", words)
            row: dict[str, Any] = {
                "being_id": caller.being_id if space.namespace.startswith("being:") else None,
                "project_id": spaces.project_of(caller, space.namespace),
                "key": key,
                "kind": "note",
                "content": text,
                "tags": [],
                "importance": IMPORTANCE,
                "untrusted": untrusted,
                "source_task_id": caller.task_id,
                "call_key": call,
            }
            made = moves.keep(connection, space, row, self._session_days if scope == "session" else None)
            return moves.read(connection, [made])[made]

        try:
            return _record(self._database.write(work), scope)
        except IntegrityError:  # `memory.store` kept the same at the same moment: now it is there
            return _record(self._database.write(work), scope)

    def listed(self, caller: Caller, scopes: Sequence[RecordScope], limit: int) -> list[Record]:
        """See `Records`."""
        found = []
        with self._database.read() as connection:
            mine = _spaces(connection, caller)
            for scope in scopes:
                if scope in mine:
                    found += [_record(row, scope) for row in moves.latest(connection, mine[scope], limit)]
        found.sort(key=lambda record: (record.updated_at, record.id), reverse=True)
        return found[:limit]

    def update(self, caller: Caller, id_: str, text: str) -> Record | None:
        """See `Records`."""

        def work(connection: Connection) -> Record | None:
            for scope, space in _spaces(connection, caller).items():
                moves.take_turns(connection, space)
                if (known := moves.one(connection, space, id_)) is None:
                    continue
                untrusted = self._provenance.untrusted(connection, caller)
                moves.rewrite(connection, space, known, text, untrusted=untrusted)
                return _record(moves.read(connection, [id_])[id_], scope)
            return None

        return self._database.write(work)

    def delete(self, caller: Caller, id_: str) -> None:
        """See `Records`."""

        def work(connection: Connection) -> None:
            for space in _spaces(connection, caller).values():
                moves.forget(connection, space, id_)

        self._database.write(work)


def _spaces(connection: Connection, caller: Caller) -> dict[RecordScope, Space]:
    """Every scope the caller has, and where it lies."""
    named = {scope: spaces.of_record(connection, caller, scope) for scope in SCOPES}
    return {scope: Space(caller.owner_id, name) for scope, name in named.items() if name is not None}


def _space(connection: Connection, caller: Caller, scope: RecordScope) -> Space:
    name = spaces.of_record(connection, caller, scope)
    if name is not None:
        return Space(caller.owner_id, name)
    if scope == "session":
        words = "scope: session needs a conversation, and this run belongs to no thread; use long"
        raise SkillError("invalid_input", words)
    raise SkillError("not_allowed", "this agent has no being and works for no project: nowhere to remember")


def _record(row: Row[Any], scope: RecordScope) -> Record:
    return Record(
        id=row.id,
        scope=scope,
        text=row.content,
        key=row.key,
        created_at=row.created_at,
        updated_at=row.updated_at or row.created_at,
        untrusted=row.untrusted,
    )
