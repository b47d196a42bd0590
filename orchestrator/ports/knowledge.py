"""The `Knowledge` port over rows: passages of sources by their words, and by their meaning where a model is set up for
it (spec: engine 15, pack `knowledge-memory`).
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection, Row

from orchestrator.ports import ranking, spaces
from orchestrator.store import fulltext
from orchestrator.store import sources as moves
from orchestrator.store.database import Database
from registry.errors import SkillError
from registry.skills.context import Caller
from registry.skills.notebook import Embeddings, Passage, Text

log = logging.getLogger(__name__)

#: Where the sources lie that every agent of an owner may search.
SHARED: Final = "owner"
#: Passages compared by meaning at most, the latest.
COMPARED: Final = 5_000
#: Passages before and after the one that is read, and characters of a source that is read whole.
REACH: Final = 2
WHOLE: Final = 200_000
#: Seconds a question may take to be placed.
EMBED_S: Final = 10.0
#: Between the id of a source and the place of a passage in it.
JOINT: Final = "."


class StoredKnowledge:
    """
    Args:
        embeddings: what places texts by their meaning; None: words alone count.
        nearness: cosine below which two texts have nothing to do with each other.
    """

    def __init__(self, database: Database, embeddings: Embeddings | None = None, nearness: float = 0.3) -> None:
        self._database = database
        self._embeddings = embeddings
        self._nearness = nearness

    def search(self, caller: Caller, query: str, *, limit: int) -> list[Passage]:
        """See `Knowledge`."""
        place = self._placed(query)
        with self._database.read() as connection:
            return self._best(connection, caller.owner_id, _namespaces(connection, caller), query, place, limit)

    def search_all(self, owner_id: str, query: str, *, limit: int) -> list[Passage]:
        """As `search`, for the owner: among everything that was given to any agent of theirs."""
        place = self._placed(query)
        with self._database.read() as connection:
            namespaces = moves.namespaces(connection, owner_id)
            return self._best(connection, owner_id, namespaces, query, place, limit) if namespaces else []

    def _best(
        self,
        connection: Connection,
        owner_id: str,
        namespaces: Sequence[str],
        query: str,
        place: list[float] | None,
        limit: int,
    ) -> list[Passage]:
        wanted = fulltext.sought(query)
        mine = [moves.space(owner_id, name) for name in namespaces]
        found = {row.number: row for row in fulltext.find(connection, mine, wanted)}
        fits = dict(zip(found, ranking.scores([row.text for row in found.values()], wanted), strict=True))
        if place is not None and self._embeddings is not None:
            near = _near(moves.embedded(connection, mine, self._embeddings.model, COMPARED), place)
            likely = sorted(near, key=lambda number: -near[number])[: fulltext.CANDIDATES]
            close = {number: near[number] for number in likely if near[number] >= self._nearness}
            fits |= {number: max(fits.get(number, 0.0), score) for number, score in close.items()}
        best = sorted((n for n in fits if fits[n] > 0), key=lambda n: (-fits[n], -n))[:limit]
        rows = {row.number: row for row in moves.read(connection, best)}
        heads = moves.heads(connection, [row.source_id for row in rows.values()])
        return [_passage(rows[n], heads, fits[n]) for n in best if n in rows]

    def read(self, caller: Caller, id_: str) -> Text | None:
        """See `Knowledge`."""
        source_id, _, position = id_.partition(JOINT)
        with self._database.read() as connection:
            source = moves.find(connection, caller.owner_id, _namespaces(connection, caller), source_id)
            if source is None or (position and not (position.isascii() and position.isdigit() and len(position) < 9)):
                return None
            if not position:
                return Text(id_, source.text[:WHOLE], source.uri)
            near = moves.around(connection, source_id, int(position), REACH)
        return Text(id_, "\n\n".join(near), source.uri) if near else None

    def _placed(self, query: str) -> list[float] | None:
        if self._embeddings is None:
            return None
        try:
            return self._embeddings.embed([query[:8_000]], timeout_s=EMBED_S)[0]
        except SkillError as error:  # words are found without it
            log.warning("the question cannot be compared by its meaning: %s", error.message)
            return None


def _namespaces(connection: Connection, caller: Caller) -> list[str]:
    """What an agent may search: what its owner gave to all, and what was given to it."""
    own = spaces.own(connection, caller)
    named = f"agent:{caller.agent_id}" if caller.agent_id is not None else None
    return [name for name in dict.fromkeys((SHARED, own, named)) if name is not None]


def _near(rows: Sequence[Row[Any]], place: Sequence[float]) -> dict[int, float]:
    """The cosine of each passage with a place."""
    import numpy

    point = numpy.asarray(place, dtype="<f4")
    fitting = [row for row in rows if len(row.embedding) == point.nbytes]
    if not fitting:
        return {}
    points = numpy.frombuffer(b"".join(row.embedding for row in fitting), dtype="<f4").reshape(len(fitting), -1)
    lengths = numpy.linalg.norm(points, axis=1) * numpy.linalg.norm(point)
    cosines = numpy.divide(points @ point, lengths, out=numpy.zeros(len(fitting), dtype="<f4"), where=lengths > 0)
    return {row.number: float(cosine) for row, cosine in zip(fitting, cosines, strict=True)}


def _passage(row: Row[Any], heads: Mapping[str, Row[Any]], score: float) -> Passage:
    head = heads[row.source_id]
    return Passage(f"{row.source_id}{JOINT}{row.position}", head.title, row.text, head.uri, round(min(score, 1.0), 4))
