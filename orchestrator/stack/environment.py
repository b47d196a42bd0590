"""The environment handed to a process of the stack, so that it works on the same rows, broker and folders."""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.settings import Settings


def child_environment(settings: "Settings", broker_url: str | None = None) -> dict[str, str]:
    """Our environment, with home, database, broker, Redis and workspaces as they are in force here.

    Args:
        settings: what is in force.
        broker_url: the broker, where it is newer than the settings know; none: theirs.
    """
    found = {
        "OFFICINA_HOME": str(settings.home.absolute()),
        "OFFICINA_DATABASE_URL": settings.database_url,
        "OFFICINA_BROKER_URL": broker_url or settings.broker or "",
        "OFFICINA_REDIS_URL": settings.redis_url,
        "OFFICINA_WORKSPACE_ROOT": str(settings.workspaces),
    }
    return {**os.environ, **found}
