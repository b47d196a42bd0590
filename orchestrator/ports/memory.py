"""What agents remember, over the one table of memories (spec: skills 18).

A memory is found by its words, ranked by BM25 over its own space, and weighed with how fresh and how important it is.
The words lie in a table of their own rather than in the full-text index of a database: SQLite and Postgres then part
texts alike in every script, a rank never depends on what others keep, and no query syntax can come in.
"""

import logging
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from sqlalchemy import Connection, Row
from sqlalchemy.exc import IntegrityError

from orchestrator.ports.keys import call_key
from orchestrator.ports.provenance import Provenance
from orchestrator.store import memories as moves
from orchestrator.store.database import Database
from orchestrator.store.memories import DAY_MS, Size, Space
from registry.errors import OfficinaError, SkillError
from registry.skills.context import Caller
from registry.skills.ports import Kept, Lookup, Memory, MemoryScope, Note
from registry.words import words

log = logging.getLogger(__name__)

#: The usual number of memories.
MAX_MEMORIES: Final = 5_000
#: Parts of a score.
RELEVANCE, RECENCY, IMPORTANCE = 0.6, 0.2, 0.2
#: Recency halves in this time without use.
HALF_LIFE_MS: Final = 30 * DAY_MS
#: BM25: how soon repetition saturates, and how much length counts.
K1, B = 1.2, 0.75


class StoredMemories:
    """The `Memories` port over rows.

    Args:
        outside: names of the tools whose output is text from outside.
        most: memories one being, one project or one person may keep.
    """

    def __init__(self, database: Database, *, outside: Iterable[str] = (), most: int = MAX_MEMORIES) -> None:
        self._database = database
        self._most = most
        self._provenance = Provenance(outside)

    def recall(self, caller: Caller, lookup: Lookup) -> list[Memory] | None:
        """See `Memories`."""
        space = space_of(caller, lookup.scope)
        if space is None:
            return None
        with self._database.read() as connection:
            found = _find(connection, space, lookup)
        if found:
            self._used([one.id for one in found])
        return found

    def store(self, caller: Caller, note: Note) -> Kept | None:
        """See `Memories`."""
        space = space_of(caller, note.scope)
        if space is None:
            return None
        try:
            return self._database.write(lambda c: self._store(c, caller, space, note))
        except IntegrityError:  # another call kept the same at the same moment: now it is there
            return self._database.write(lambda c: self._store(c, caller, space, note))

    def _store(self, connection: Connection, caller: Caller, space: Space, note: Note) -> Kept:
        key = call_key(caller)
        if mine := moves.of_call(connection, key):
            return Kept(mine, is_new=True)
        moves.take_turns(connection, space)
        untrusted = self._provenance.untrusted(connection, caller, notes=False)
        moves.expire(connection, space)
        if known := moves.same(connection, space, note.content):
            moves.strengthen(connection, known, importance=note.importance, ttl_days=note.ttl_days, untrusted=untrusted)
            return Kept(known.id, is_new=False)
        full = moves.count(connection, space) >= self._most
        if full and not moves.drop_lowest(connection, space, note.importance):
            words_ = f"memory is full ({self._most}), and all of it is more important than this"
            raise SkillError("quota", words_)
        row = {
            "being_id": caller.being_id if space.namespace.startswith("being:") else None,
            "project_id": caller.project_id if space.namespace.startswith("project:") else None,
            "kind": note.kind,
            "content": note.content,
            "tags": list(note.tags),
            "importance": note.importance,
            "untrusted": untrusted,
            "source_task_id": caller.task_id,
            "call_key": key,
        }
        return Kept(moves.keep(connection, space, row, note.ttl_days), is_new=True)

    def _used(self, ids: list[str]) -> None:
        try:
            self._database.write(lambda c: moves.use(c, ids))
        except OfficinaError as error:  # only how fresh they count depends on it
            log.warning("the use of memories is not noted: %s", error)


def space_of(caller: Caller, scope: MemoryScope) -> Space | None:
    """Where a caller's memories lie; it follows from who calls, never from what the call says."""
    if scope == "being":
        if caller.kind == "person":
            return Space(caller.owner_id, "owner")
        if caller.being_id is not None:
            return Space(caller.owner_id, f"being:{caller.being_id}")
    if caller.project_id is not None:
        return Space(caller.owner_id, f"project:{caller.project_id}")
    return Space(caller.owner_id, "owner") if caller.kind == "person" else None


def _find(connection: Connection, space: Space, lookup: Lookup) -> list[Memory]:
    sought = set(words(lookup.query))
    found = moves.hits(connection, space, sought) if sought else []
    if not found:
        return []
    heads = moves.heads(connection, space)
    ranks = _ranks(found, heads, moves.size(connection, space))
    fits = {id_: rank for id_, rank in ranks.items() if _fits(heads[id_], lookup)}
    if not fits:
        return []
    top = max(fits.values())
    scores = {id_: _score(heads[id_], rank / top) for id_, rank in fits.items()}
    best = sorted(scores, key=lambda id_: (-scores[id_], -heads[id_].created_at, id_))[: lookup.limit]
    rows = moves.read(connection, [id_ for id_ in best if scores[id_] >= lookup.min_score])
    return [_memory(rows[id_], scores[id_]) for id_ in best if id_ in rows]


def _ranks(found: list[Row[Any]], heads: Mapping[str, Row[Any]], size: Size) -> dict[str, float]:
    """BM25 of every memory that has a word of the question."""
    spread: dict[str, int] = defaultdict(int)
    for hit in found:
        spread[hit.word] += 1
    average = size.words / size.memories if size.words else 1.0
    ranks: dict[str, float] = defaultdict(float)
    for hit in found:
        if hit.memory_id not in heads:  # it expired between the reads
            continue
        rarity = math.log(1 + (size.memories - spread[hit.word] + 0.5) / (spread[hit.word] + 0.5))
        length = 1 - B + B * heads[hit.memory_id].words / average
        ranks[hit.memory_id] += rarity * hit.times * (K1 + 1) / (hit.times + K1 * length)
    return ranks


def _fits(head: Row[Any], lookup: Lookup) -> bool:
    return (
        (not lookup.kinds or head.kind in lookup.kinds)
        and lookup.tags <= set(head.tags)
        and (lookup.since_ms is None or head.created_at >= lookup.since_ms)
    )


def _score(head: Row[Any], relevance: float) -> float:
    unused = max(0, head.now - (head.last_used_at or head.created_at))
    return float(RELEVANCE * relevance + RECENCY * 0.5 ** (unused / HALF_LIFE_MS) + IMPORTANCE * head.importance)


def _memory(row: Row[Any], score: float) -> Memory:
    return Memory(
        id=row.id,
        content=row.content,
        kind=row.kind,
        tags=tuple(row.tags),
        importance=row.importance,
        created_at=row.created_at,
        source_task_id=row.source_task_id,
        untrusted=row.untrusted,
        score=score,
    )
