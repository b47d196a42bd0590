"""Conversations as the pack `threads` sees them."""

from orchestrator.store import threads
from orchestrator.store.database import Database
from registry.base import Json
from registry.skills.context import Caller


class StoredThreads:
    """The threads of the caller's owner, whoever speaks in them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def rows(self, caller: Caller) -> list[dict[str, Json]]:
        with self._database.read() as connection:
            found = threads.listed(connection, caller.owner_id)
            scheduled = threads.scheduled(connection, [row.id for row in found])
        return [
            {
                "id": row.id,
                "title": row.title,
                "kind": row.kind,
                "agentId": row.agent_id,
                "agentName": row.agent_name,
                "current": row.id == caller.thread_id,
                "hasSchedule": row.id in scheduled,
            }
            for row in found
        ]
