"""Moves of `definitions`: written once under their digest, never changed."""

from collections import OrderedDict
from collections.abc import Mapping

from sqlalchemy import Connection, select

from orchestrator.store.sql import insert_or_ignore
from orchestrator.store.tables import definitions
from registry.base import Json

#: Definitions this process remembers: what a digest stands for is the same for ever, and in every database.
REMEMBERED = 256

_known: OrderedDict[str, dict[str, Json]] = OrderedDict()


def keep(connection: Connection, bodies: Mapping[str, dict[str, Json]]) -> None:
    """Stores definitions by digest."""
    insert_or_ignore(connection, definitions, [{"digest": k, "body": v} for k, v in sorted(bodies.items())])


def get(connection: Connection, digest: str) -> dict[str, Json]:
    """The definition behind a digest, shared by all that ask: it is read, never written to."""
    found = _known.get(digest)
    if found is None:
        found = dict(connection.execute(select(definitions.c.body).where(definitions.c.digest == digest)).scalar_one())
        _known[digest] = found
        while len(_known) > REMEMBERED:
            _known.popitem(last=False)
    return found
