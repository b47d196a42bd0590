"""The `Connections` port over the rows: opens a connection's secrets for the call that uses them."""

from typing import Any

from sqlalchemy import Row

from orchestrator.settings import Settings
from orchestrator.store import connections
from orchestrator.store.database import Database
from orchestrator.vault import Sealed, Vault
from registry import masking
from registry.connections import DEFAULT, C
from registry.errors import SkillError
from registry.jsontext import compact


class StoredConnections:
    """One per process; each call reads the rows anew, so that a removed connection is gone at once."""

    def __init__(self, settings: Settings, database: Database) -> None:
        self._settings = settings
        self._database = database

    def find(self, owner_id: str, kind: type[C], name: str | None = None) -> C | None:
        """See `Connections.find`."""
        with self._database.read() as connection:
            rows = connections.of_owner(connection, owner_id, str(kind.model_fields["kind"].default))
        row = _chosen(rows, name)
        return None if row is None else self._opened(kind, row)

    def _opened(self, kind: type[C], row: Row[Any]) -> C:
        try:
            secrets = Vault(self._settings).open(row.secrets)
        except Sealed as error:
            words = f"the connection {row.name!r} cannot be opened: {error.message}; its owner has to save it anew"
            raise SkillError("tool_failed", words) from None
        for value in secrets.values():
            masking.remember(value)
        return kind.model_validate_json(compact(row.config | secrets), strict=True)


def _chosen(rows: list[Row[Any]], name: str | None) -> Row[Any] | None:
    if name is not None:
        return next((row for row in rows if row.name == name), None)
    return next((row for row in rows if row.name == DEFAULT), rows[0] if rows else None)
