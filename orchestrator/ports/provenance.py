"""Whether text from outside may be in what a caller writes down: then it is marked, and read as data for ever."""

from collections.abc import Iterable
from typing import Any, Final

from sqlalchemy import Connection, Text, or_, select, type_coerce

from orchestrator.ports import spaces
from orchestrator.store import agendas, memories, pins
from orchestrator.store.tables import calls, runs
from registry.skills.context import Caller

#: Tools whose results say themselves whether text from outside is in them.
TELLING: Final = frozenset({"memory.recall", "memory_list", "memory_update", "memory_write", "pin_list", "plan_get"})


class Provenance:
    """
    Args:
        outside: names of the tools whose output is text from outside.
    """

    def __init__(self, outside: Iterable[str]) -> None:
        self._outside = sorted(outside)

    def untrusted(self, connection: Connection, caller: Caller, *, notes: bool = True) -> bool:
        """Anything in its project can have passed text from outside on, and so can the notes it reads at each turn.

        Args:
            notes: whether the caller may have notes at all: an agent that holds none of the packs has none.
        """
        if caller.kind == "person":
            return False
        return self._project_has(connection, caller) or (notes and _notes_have(connection, caller))

    def _project_has(self, connection: Connection, caller: Caller) -> bool:
        if caller.project_id is None:
            return False
        done = (
            select(calls.c.name, calls.c.result)
            .join(runs, runs.c.id == calls.c.run_id)
            .where(runs.c.project_id == caller.project_id, calls.c.status == "done")
        )
        # Tools of MCP servers are from outside, whatever they are called: only their names hold two underlines.
        outside = or_(calls.c.name.in_(self._outside), calls.c.name.contains("__", autoescape=True))
        if connection.execute(done.where(outside).limit(1)).first():
            return True
        # Long lists are not read to find that none of them says so; what is sealed has to be opened.
        written = type_coerce(calls.c.result, Text)
        saying = or_(written.like('%"untrusted":true%'), written.like("sealed:%"))
        telling = done.where(calls.c.name.in_(sorted(TELLING)), saying)
        return any(_told(row.result) for row in connection.execute(telling))


def _notes_have(connection: Connection, caller: Caller) -> bool:
    own = spaces.own(connection, caller)
    if own is not None and pins.any_untrusted(connection, caller.owner_id, own):
        return True
    for scope in ("long", "session"):
        space = spaces.of_record(connection, caller, scope)
        if space is not None and memories.any_untrusted(connection, memories.Space(caller.owner_id, space)):
            return True
    agenda = spaces.of_agenda(caller)
    found = None if agenda is None else agendas.find(connection, caller.owner_id, agenda)
    return found is not None and bool(found.untrusted)


def _told(entry: Any) -> bool:
    result = entry.get("result") if isinstance(entry, dict) else None
    return any(isinstance(one, dict) and one.get("untrusted") is True for one in _each(result))


def _each(result: Any) -> list[Any]:
    return result if isinstance(result, list) else [result]
