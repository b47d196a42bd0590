"""Moves of `runs.queue`: the queue a run's wake-up goes to, decided when it is marked.

So rules that are changed hold from the next wake-up on, those that are sent again included. None is the default queue.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, or_, true, update

from orchestrator.store import definitions
from orchestrator.store.sql import among
from orchestrator.store.tables import runs
from registry.queues import DEFAULT, QueueRule, choose

#: Where a connection's options name the rules in force.
ROUTES = "officina_routes"


class Routes:
    """The rules of one process, and what it knows of definitions: a digest goes to one queue for ever."""

    def __init__(self, rules: Sequence[QueueRule] = ()) -> None:
        self.rules = tuple(rules)
        self._known: dict[str, str | None] = {}

    def queue(self, connection: Connection, digest: str) -> str | None:
        """The queue of runs of a definition; None: the default."""
        if digest not in self._known:
            if len(self._known) > 10_000:
                self._known.clear()
            name = choose(self.rules, definitions.get(connection, digest))
            self._known[digest] = None if name == DEFAULT else name
        return self._known[digest]


_NONE = Routes()


def assign(connection: Connection, found: Iterable[Any]) -> dict[str, str | None]:
    """The queue of each of these marked runs (`id`, `definition_digest`, `queue`), written where it is another now."""
    routes: Routes = connection.get_execution_options().get(ROUTES, _NONE)
    chosen: dict[str, str | None] = {}
    moved: dict[str | None, list[str]] = {}
    for row in found:
        chosen[row.id] = routes.queue(connection, row.definition_digest) if routes.rules else None
        if chosen[row.id] != row.queue:
            moved.setdefault(chosen[row.id], []).append(row.id)
    for name, ids in moved.items():
        connection.execute(update(runs).where(among(runs.c.id, ids)).values(queue=name))
    return chosen


def within(queues: frozenset[str] | None) -> ColumnElement[bool]:
    """Whether a run waits in one of these queues; None: in whichever."""
    if queues is None:
        return true()
    named = runs.c.queue.in_(sorted(queues - {DEFAULT}))
    return or_(named, runs.c.queue.is_(None)) if DEFAULT in queues else and_(named, runs.c.queue.is_not(None))
