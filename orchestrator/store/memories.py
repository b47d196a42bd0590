"""Moves of `memories` and `memory_words`: kept, found, used, rewritten, pruned. Each works within one space: one
owner's one namespace.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, and_, delete, func, insert, literal, or_, select, tuple_, update

from orchestrator.store import sql
from orchestrator.store.database import now_ms
from orchestrator.store.kept import memories, memory_words
from registry.ids import new_id
from registry.words import comparable, words

DAY_MS = 86_400_000


@dataclass(frozen=True)
class Space:
    """Whose memory it is."""

    owner_id: str
    namespace: str

    @property
    def digest(self) -> str:
        return hashlib.sha256(f"{self.owner_id}\n{self.namespace}".encode()).hexdigest()[:32]

    @property
    def condition(self) -> Any:
        return and_(memories.c.owner_id == self.owner_id, memories.c.namespace == self.namespace)


@dataclass(frozen=True)
class Size:
    """What a rank is relative to."""

    memories: int
    words: int


def move(connection: Connection, space: Space, to: str, *, being_id: str) -> None:
    """Gives the memories of a space to a being's, which has none yet."""
    words = update(memory_words).where(memory_words.c.space == space.digest)
    connection.execute(words.values(space=Space(space.owner_id, to).digest))
    connection.execute(update(memories).where(space.condition).values(namespace=to, being_id=being_id))


def of_call(connection: Connection, call_key: str | None) -> str | None:
    """The memory this very call made before."""
    if call_key is None:
        return None
    return connection.execute(select(memories.c.id).where(memories.c.call_key == call_key)).scalar()


def same(connection: Connection, space: Space, content: str) -> Row[Any] | None:
    """The memory that says the same, with the present time of the database."""
    query = select(memories, now_ms().label("now")).where(
        space.condition, memories.c.content_hash == content_hash(content)
    )
    return connection.execute(query.with_for_update(of=memories)).one_or_none()


def strengthen(
    connection: Connection, known: Row[Any], *, importance: float, ttl_days: int | None, untrusted: bool
) -> None:
    """Keeps the higher importance, the longer life, and any doubt about where it came from."""
    longer = None if ttl_days is None or known.expires_at is None else known.now + ttl_days * DAY_MS
    values = {
        "importance": max(known.importance, importance),
        "untrusted": known.untrusted or untrusted,
        "expires_at": None if longer is None else max(longer, known.expires_at),
    }
    connection.execute(update(memories).where(memories.c.id == known.id).values(values))


def keep(connection: Connection, space: Space, row: dict[str, Any], ttl_days: int | None) -> str:
    """Writes a memory with its words; returns its id."""
    made = row | {
        "id": new_id(),
        "owner_id": space.owner_id,
        "namespace": space.namespace,
        "content_hash": content_hash(row["content"], row.get("key")),
        "words": len(words(row["content"])),
        "created_at": now_ms(),
        "expires_at": None if ttl_days is None else now_ms() + ttl_days * DAY_MS,
    }
    connection.execute(insert(memories).values(made))
    _index(connection, space, made["id"], row["content"])
    return str(made["id"])


def rewrite(connection: Connection, space: Space, known: Row[Any], content: str, *, untrusted: bool) -> None:
    """Gives a memory another text; one that says the same already makes way for it."""
    digest = content_hash(content, known.key)
    twin = (space.condition, memories.c.content_hash == digest, memories.c.id != known.id)
    connection.execute(delete(memories).where(*twin))
    values = {"content": content, "content_hash": digest, "words": len(words(content)), "untrusted": untrusted}
    connection.execute(update(memories).where(memories.c.id == known.id).values(updated_at=now_ms(), **values))
    connection.execute(delete(memory_words).where(memory_words.c.memory_id == known.id))
    _index(connection, space, known.id, content)


def take_turns(connection: Connection, space: Space) -> None:
    """Writers of one space who must see each other's rows go one after the other."""
    sql.take_turns(connection, f"memories {space.digest}")


def of_key(connection: Connection, space: Space, key: str) -> Row[Any] | None:
    return connection.execute(select(memories).where(space.condition, memories.c.key == key)).one_or_none()


def one(connection: Connection, space: Space, id_: str) -> Row[Any] | None:
    """A living memory of the space."""
    return connection.execute(select(memories).where(space.condition, memories.c.id == id_, _alive())).one_or_none()


def latest(connection: Connection, space: Space, limit: int) -> list[Row[Any]]:
    """Living memories, the newest or latest changed first."""
    changed = func.coalesce(memories.c.updated_at, memories.c.created_at)
    query = select(memories).where(space.condition, _alive()).order_by(changed.desc(), memories.c.id.desc())
    return list(connection.execute(query.limit(limit)))


def forget(connection: Connection, space: Space, id_: str) -> None:
    connection.execute(delete(memories).where(space.condition, memories.c.id == id_))


def any_untrusted(connection: Connection, space: Space) -> bool:
    """Whether text from outside may be in one of them."""
    return (
        connection.execute(select(memories.c.id).where(space.condition, memories.c.untrusted).limit(1)).first()
        is not None
    )


def _index(connection: Connection, space: Space, memory_id: str, content: str) -> None:
    if counts := Counter(words(content)):
        rows = [{"space": space.digest, "word": w, "memory_id": memory_id, "count": n} for w, n in counts.items()]
        connection.execute(insert(memory_words), rows)


def expire(connection: Connection, space: Space) -> None:
    """Deletes what is past its time."""
    connection.execute(delete(memories).where(space.condition, memories.c.expires_at <= now_ms()))


def count(connection: Connection, space: Space) -> int:
    return int(connection.execute(select(func.count()).where(space.condition)).scalar_one())


def drop_lowest(connection: Connection, space: Space, below: float) -> bool:
    """Deletes the least important memory, the longest unused of several; False when none is less important."""
    unused = func.coalesce(memories.c.last_used_at, memories.c.created_at)
    lowest = select(memories.c.id, memories.c.importance).where(space.condition)
    found = connection.execute(lowest.order_by(memories.c.importance, unused, memories.c.id).limit(1)).one()
    if found.importance > below:
        return False
    connection.execute(delete(memories).where(memories.c.id == found.id))
    return True


def size(connection: Connection, space: Space) -> Size:
    query = select(func.count(), func.coalesce(func.sum(memories.c.words), 0)).where(space.condition, _alive())
    number, total = connection.execute(query).one()
    return Size(int(number), int(total))


def hits(connection: Connection, space: Space, sought: Iterable[str]) -> list[Row[Any]]:
    """(word, memory id, times) of every living memory that has one of the words."""
    query = (
        select(memory_words.c.word, memory_words.c.memory_id, memory_words.c.count.label("times"))
        .join(memories, memories.c.id == memory_words.c.memory_id)
        .where(memory_words.c.space == space.digest, memory_words.c.word.in_(sorted(sought)), _alive())
    )
    return list(connection.execute(query))


def heads(connection: Connection, space: Space) -> dict[str, Row[Any]]:
    """What a rank needs to know of each living memory, without its content; with the database's present time."""
    chosen = (memories.c.id, memories.c.kind, memories.c.tags, memories.c.importance, memories.c.words)
    times = (memories.c.created_at, memories.c.last_used_at, now_ms().label("now"))
    query = select(*chosen, *times).where(space.condition, _alive())
    return {row.id: row for row in connection.execute(query)}


def read(connection: Connection, ids: Sequence[str]) -> dict[str, Row[Any]]:
    return {row.id: row for row in connection.execute(select(memories).where(memories.c.id.in_(ids)))}


def use(connection: Connection, ids: Sequence[str]) -> None:
    """Notes that memories were recalled: all of them in one statement."""
    used = update(memories).where(memories.c.id.in_(sorted(ids)))
    connection.execute(used.values(last_used_at=now_ms(), uses=memories.c.uses + 1))


def page(
    connection: Connection, owner_id: str, only: Mapping[str, str], limit: int, after: tuple[int, str] | None
) -> list[Row[Any]]:
    """An owner's living memories of every namespace, the eldest first: those made after a moment and id."""
    query = select(memories).where(memories.c.owner_id == owner_id, _alive(), *_only(only))
    if after is not None:
        place = tuple_(literal(after[0]), literal(after[1]))
        query = query.where(tuple_(memories.c.created_at, memories.c.id) > place)
    return list(connection.execute(query.order_by(memories.c.created_at, memories.c.id).limit(limit)))


def newest(
    connection: Connection, owner_id: str, sought: Sequence[str], limit: int, before: tuple[int, str] | None
) -> list[Row[Any]]:
    """An owner's living memories of every namespace that hold each of these pieces of text, the newest first: those
    made before a moment and id."""
    holds = [memories.c.content.icontains(piece, autoescape=True) for piece in sought]
    query = select(memories).where(memories.c.owner_id == owner_id, _alive(), *holds)
    if before is not None:
        query = query.where(tuple_(memories.c.created_at, memories.c.id) < tuple_(*map(literal, before)))
    return list(connection.execute(query.order_by(memories.c.created_at.desc(), memories.c.id.desc()).limit(limit)))


def forget_all(connection: Connection, owner_id: str, only: Mapping[str, str]) -> int:
    """Deletes an owner's memories that have these columns, all without any; returns how many."""
    return connection.execute(delete(memories).where(memories.c.owner_id == owner_id, *_only(only))).rowcount


def _only(columns: Mapping[str, str]) -> list[Any]:
    return [memories.c[name] == value for name, value in columns.items()]


def content_hash(content: str, key: str | None = None) -> str:
    """What two memories that say the same share; those with a key are alike only under the same."""
    named = "" if key is None else f"{key}\0"
    return hashlib.sha256(f"{named}{comparable(content)}".encode()).hexdigest()


def _alive() -> Any:
    return or_(memories.c.expires_at.is_(None), memories.c.expires_at > now_ms())
