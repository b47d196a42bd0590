"""The `Pins` port over rows (spec: engine 15, pack `pin-memory`)."""

from typing import Any

from sqlalchemy import Connection, Row

from orchestrator.ports import spaces
from orchestrator.ports.provenance import Provenance
from orchestrator.store import pins as moves
from orchestrator.store.database import Database
from registry.errors import SkillError
from registry.skills.context import Caller
from registry.skills.notebook import Pin


class StoredPins:
    def __init__(self, database: Database, provenance: Provenance) -> None:
        self._database = database
        self._provenance = provenance

    def set(self, caller: Caller, key: str, text: str, *, most: int) -> Pin:
        """See `Pins`."""

        def write(connection: Connection) -> Row[Any] | None:
            namespace = _namespace(connection, caller)
            row = {
                "key": key,
                "text": text,
                "untrusted": self._provenance.untrusted(connection, caller),
                "project_id": spaces.project_of(caller, namespace),
            }
            return moves.put(connection, caller.owner_id, namespace, row, most=most)

        put = self._database.write(write)
        if put is None:
            raise SkillError("quota", f"you have {most} pins, and no more fit: remove one with pin_remove")
        return _pin(put)

    def listed(self, caller: Caller, limit: int) -> list[Pin]:
        """See `Pins`."""
        with self._database.read() as connection:
            namespace = spaces.own(connection, caller)
            if namespace is None:
                return []
            return [_pin(row) for row in moves.latest(connection, caller.owner_id, namespace, limit)]

    def remove(self, caller: Caller, key: str) -> None:
        """See `Pins`."""
        self._database.write(lambda c: moves.remove(c, caller.owner_id, _namespace(c, caller), key))


def _namespace(connection: Connection, caller: Caller) -> str:
    namespace = spaces.own(connection, caller)
    if namespace is None:
        raise SkillError("not_allowed", "pins belong to an agent, and this call is no agent's")
    return namespace


def _pin(row: Row[Any]) -> Pin:
    return Pin(row.key, row.text, row.created_at, row.updated_at, row.untrusted)
