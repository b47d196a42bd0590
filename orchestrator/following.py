"""Events of a project as they come, until the project has ended."""

from collections.abc import Callable, Iterator

from sqlalchemy import select

from orchestrator import events
from orchestrator.records import Event
from orchestrator.settings import Settings
from orchestrator.states import PROJECT_ENDED
from orchestrator.store import events as rows
from orchestrator.store.database import get_database
from orchestrator.store.tables import projects

#: Events read at once.
BATCH = 1_000


def stored(settings: Settings, project_id: str, after: int = 0) -> Iterator[Event]:
    """Events with a number above `after` that are there now, in order."""
    while True:
        with get_database(settings).read() as connection:
            batch = rows.after(connection, project_id, after, BATCH)
        yield from batch
        if len(batch) < BATCH:
            return
        after = batch[-1].seq


def live(
    settings: Settings, project_id: str, after: int = 0, hear: Callable[[str], None] | None = None
) -> Iterator[list[Event]]:
    """Events as they come, in order; an empty list is a heartbeat. Stops when the project has ended and all is told.

    Args:
        hear: takes what agents say while they say it (`orchestrator.live`), as it was sent.
    """
    over = False
    for batch in events.follow(settings, project_id, after, lambda: False, hear):
        if over and not batch:
            return
        yield batch
        # Only a look that finds nothing *after* the end was seen proves that nothing is missing.
        over = over or has_ended(settings, project_id)


def has_ended(settings: Settings, project_id: str) -> bool:
    with get_database(settings).read() as connection:
        return connection.scalar(select(projects.c.status).where(projects.c.id == project_id)) in PROJECT_ENDED
