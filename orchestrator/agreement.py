"""What every process of an installation has to be set to alike, and whether it is.

Rules of queues are read in the process that marks a run: one with other rules sends the same run elsewhere, perhaps
where nobody listens. So workers write the digest of theirs into their rows, and whoever starts or looks compares it.
"""

from typing import Final

from orchestrator.settings import Settings
from orchestrator.store import workers
from orchestrator.store.database import get_database

REMEDY: Final = "give every process the same OFFICINA_QUEUES and OFFICINA_STRICT_PRIORITY, and restart it"
#: Workers that are named.
MOST: Final = 5


def disagreement(settings: Settings) -> str | None:
    """Which living workers go by other rules of queues than this process; None: all agree.

    Raises:
        Unavailable: the database does not answer.
    """
    with get_database(settings).read() as connection:
        strangers, living = workers.others(connection, settings.routing)
    if not strangers:
        return None
    named = ", ".join(f"{host} pid {pid}" for host, pid in strangers[:MOST])
    more = f" and {len(strangers) - MOST} more" if len(strangers) > MOST else ""
    verb = "goes" if len(strangers) == 1 else "go"
    return f"{len(strangers)} of {living} workers {verb} by other rules of queues than this process: {named}{more}"
