"""What a person takes away of what agents keep: memories and pins. The API and the desk call this."""

from collections.abc import Mapping

from sqlalchemy import Connection

from orchestrator.settings import Settings
from orchestrator.store import audit, memories, pins
from orchestrator.store.database import get_database


def forget(settings: Settings, only: Mapping[str, str]) -> int:
    """Forgets the owner's memories that fit (none named: all of them); returns how many."""

    def write(connection: Connection) -> int:
        gone = memories.forget_all(connection, settings.owner, dict(only))
        if gone:
            named = {f"only_{name}": value for name, value in only.items() if name != "id"}
            audit.record(
                connection, settings.owner, settings.by, "memory.forgotten", only.get("id"), count=gone, **named
            )
        return gone

    return get_database(settings).write(write)


def unpin(settings: Settings, pin_id: str) -> bool:
    """Takes a pin away; False: it is gone already."""

    def write(connection: Connection) -> bool:
        done = pins.unpin(connection, settings.owner, pin_id)
        if done:
            audit.record(connection, settings.owner, settings.by, "pin.removed", pin_id)
        return done

    return get_database(settings).write(write)
