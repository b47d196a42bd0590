"""What a person does with connections: save one, look at them, remove one. Secrets go in and never come out here."""

from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, Row

from orchestrator.settings import Settings
from orchestrator.store import audit, connections
from orchestrator.store.database import get_database
from orchestrator.vault import Vault
from registry.base import Json
from registry.connections import ANY, KINDS, NAME, secret_fields, split
from registry.errors import Fault, Refused, WrongUse
from registry.jsontext import compact


def save(settings: Settings, owner_id: str, name: str, document: Json) -> bool:
    """Stores a connection whole, in place of one of this name; True when it is new.

    Raises:
        WrongUse: the document is none; every fault is named, no value is repeated.
    """
    try:
        NAME.validate_python(name, strict=True)
    except ValidationError:
        words = "a name is a small letter, then up to 39 small letters, digits, - or _"
        raise WrongUse(words, faults=[Fault("name", "invalid_name", words)]) from None
    try:
        connection = ANY.validate_json(compact(document), strict=True, by_alias=True, by_name=False)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False, include_context=False)
        faults = [
            Fault(
                ".".join(map(str, e["loc"][1:])) or "kind", "invalid_connection", e["msg"].removeprefix("Value error, ")
            )
            for e in found
        ]
        raise WrongUse("the connection cannot be used as it is", faults=faults) from None
    shown, secrets = split(connection)
    row = {"kind": connection.kind, "config": shown, "secrets": Vault(settings).close(secrets)}

    def write(database: Connection) -> bool:
        audit.record(database, owner_id, settings.by, "connection.saved", name, kind=connection.kind)
        return connections.save(database, owner_id, name, row)

    return get_database(settings).write(write)


def _fault(field: str, words: str) -> Fault:
    return Fault(field, "invalid_connection", words.removeprefix("Value error, "))


def remove(settings: Settings, owner_id: str, name: str) -> None:
    """Forgets a connection and its secrets.

    Raises:
        Refused: `unknown_connection`.
    """

    def write(database: Connection) -> bool:
        done = connections.remove(database, owner_id, name)
        if done:
            audit.record(database, owner_id, settings.by, "connection.removed", name)
        return done

    if not get_database(settings).write(write):
        raise Refused(f"you have no connection {name[:60]!r}", code="unknown_connection")


def listed(settings: Settings, owner_id: str) -> list[dict[str, Json]]:
    """The owner's connections as they may be shown."""
    with get_database(settings).read() as connection:
        return [_view(row) for row in connections.of_owner(connection, owner_id)]


def _view(row: Row[Any]) -> dict[str, Json]:
    return {
        "name": row.name,
        "kind": row.kind,
        "config": {key: value for key, value in row.config.items() if key != "kind"},
        "secrets": secret_fields(KINDS[row.kind]) if row.kind in KINDS else [],
        "createdAt": row.created_at,
        "updatedAt": row.updated_at,
    }
