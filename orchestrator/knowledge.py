"""What people give agents to look things up in: added, listed, removed. The command line and the API call this.

A source is text by then: files are turned into text by a worker's reader (`workers/reading.py`), which opens them in a
process of their own.
"""

import hashlib
import logging
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Row

from orchestrator.ports.knowledge import SHARED
from orchestrator.settings import Settings
from orchestrator.store import audit
from orchestrator.store import sources as moves
from orchestrator.store.database import get_database
from registry import masking
from registry.base import Json
from registry.errors import Refused, SkillError
from registry.passages import passages
from registry.skills.notebook import Embeddings
from registry.times import iso

log = logging.getLogger(__name__)

#: What a worker is asked for to add a file.
ADD: Final = "knowledge.add"
#: Seconds the passages of one source may take to be placed by their meaning.
EMBED_S: Final = 120.0


@dataclass(frozen=True)
class Source:
    """A text to be looked up in."""

    #: Where it comes from: a path, an address, a name. Given again it is replaced.
    uri: str
    text: str
    title: str | None = None
    #: What it was made of; None: of the text itself.
    content: bytes | None = None


@dataclass(frozen=True)
class Added:
    """What became of a source."""

    id: str
    #: added, replaced, unchanged, or known: the same content is there under another address.
    how: str
    passages: int


def add(
    settings: Settings,
    owner_id: str,
    source: Source,
    *,
    agent_id: str | None = None,
    embeddings: Embeddings | None = None,
) -> Added:
    """Makes a source findable, in one transaction: by an agent, or by all agents of an owner.

    What looks like a secret is masked before it is stored.

    Args:
        agent_id: the agent it is for; None: all of them.
        embeddings: what places its passages by their meaning; where it fails, they are found by their words alone.

    Raises:
        Refused: `too_large`, `empty_source`, `quota`; nothing is changed.
    """
    limits = settings.keeping
    size = len(source.content) if source.content is not None else len(source.text.encode("utf-8", "replace"))
    if size > limits.source_bytes:
        raise Refused(f"{source.uri} has {size} bytes, more than {limits.source_bytes}", code="too_large")
    text = _plain(source.text[: limits.source_chars + 1])
    if len(text) > limits.source_chars:
        raise Refused(f"{source.uri} has more than {limits.source_chars} characters of text", code="too_large")
    pieces = passages(text)
    if not pieces:
        raise Refused(f"{source.uri} holds no text", code="empty_source")
    raw = source.content if source.content is not None else source.text.encode("utf-8", "replace")
    row = {
        "uri": _plain(source.uri)[:2_000],
        "title": _plain(source.title)[:300] if source.title else None,
        "text": text,
        "content_hash": hashlib.sha256(raw).hexdigest(),
        "bytes": size,
    }
    rows = _placed(pieces, embeddings)
    database, namespace = get_database(settings), _namespace(agent_id)

    def write(connection: Connection) -> moves.Put:
        put = moves.put(connection, owner_id, namespace, row, rows, most=limits.sources)
        if put.how in ("added", "replaced"):
            facts: dict[str, Json] = {"uri": row["uri"], "how": put.how, "agentId": agent_id}
            audit.record(connection, owner_id, settings.by, "knowledge.added", put.id, **facts)
        return put

    put = database.write(write)
    if put.how == "full":
        words = f"{limits.sources} sources are there, and no more fit: remove one"
        raise Refused(words, code="quota")
    return Added(put.id, put.how, len(pieces) if put.how in ("added", "replaced") else 0)


def listed(settings: Settings, owner_id: str, *, agent_id: str | None = None) -> list[dict[str, Json]]:
    """Sources as they may be shown, without their texts; None: those of every agent, and those for all."""
    namespace = None if agent_id is None else _namespace(agent_id)
    with get_database(settings).read() as connection:
        rows = moves.listed(connection, owner_id, namespace)
    return [_view(row) for row in rows]


def text_of(settings: Settings, owner_id: str, source_id: str) -> dict[str, Json]:
    """A source with its text.

    Raises:
        Refused: `unknown_source`.
    """
    with get_database(settings).read() as connection:
        row = moves.get(connection, owner_id, source_id)
    if row is None:
        raise _unknown(source_id)
    return _view(row) | {"text": row.text}


def remove(settings: Settings, owner_id: str, source_id: str) -> None:
    """Forgets a source and its passages.

    Raises:
        Refused: `unknown_source`.
    """

    def write(connection: Connection) -> bool:
        done = moves.remove(connection, owner_id, source_id)
        if done:
            audit.record(connection, owner_id, settings.by, "knowledge.removed", source_id)
        return done

    if not get_database(settings).write(write):
        raise _unknown(source_id)


def _unknown(source_id: str) -> Refused:
    return Refused(f"there is no source {source_id[:80]!r}; `officina knowledge` lists them", code="unknown_source")


def _view(row: Row[Any]) -> dict[str, Json]:
    return {
        "id": row.id,
        "uri": row.uri,
        "title": row.title,
        "agentId": row.namespace.removeprefix("agent:") if row.namespace != SHARED else None,
        "bytes": row.bytes,
        "updatedAt": iso(row.updated_at),
    }


def _namespace(agent_id: str | None) -> str:
    return SHARED if agent_id is None else f"agent:{agent_id}"


def _plain(text: str) -> str:
    """A text every database keeps, without what looks like a secret."""
    return masking.mask_text(text.replace("\0", "").encode("utf-8", "replace").decode())


def _placed(pieces: Sequence[str], embeddings: Embeddings | None) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [{"text": piece, "embedding": None, "embedded_by": None} for piece in pieces]
    if embeddings is None:
        return rows
    try:
        places = embeddings.embed(pieces, timeout_s=EMBED_S)
    except SkillError as error:
        log.warning("passages are found by their words alone: %s", error.message)
        return rows
    packed = [struct.pack(f"<{len(place)}f", *place) for place in places]
    named = {"embedded_by": embeddings.model}
    return [row | named | {"embedding": place} for row, place in zip(rows, packed, strict=True)]
