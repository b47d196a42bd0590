"""The `Agendas` port over rows (spec: engine 15, pack `plan`)."""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection, Row

from orchestrator.ports import spaces
from orchestrator.ports.keys import call_key
from orchestrator.ports.provenance import Provenance
from orchestrator.store import agendas as moves
from orchestrator.store.database import Database
from registry.errors import SkillError
from registry.skills.context import Caller
from registry.skills.notebook import Agenda, AgendaItem, ItemStatus, NewItem

#: Characters of an id that may stand for it.
PREFIX: Final = 8
NONE: Final = "there is no plan here; save one with plan_save"


class StoredAgendas:
    def __init__(self, database: Database, provenance: Provenance) -> None:
        self._database = database
        self._provenance = provenance

    def save(self, caller: Caller, overview: str, items: Sequence[NewItem]) -> Agenda:
        """See `Agendas`."""
        space = _space(caller)

        def write(connection: Connection) -> Agenda:
            row = {
                "overview": overview,
                "untrusted": self._provenance.untrusted(connection, caller),
                "call_key": call_key(caller),
                "agent_id": caller.agent_id,
                "project_id": caller.project_id,
            }
            steps = [{"title": i.title, "description": i.description, "role": i.role} for i in items]
            moves.save(connection, caller.owner_id, space, row, steps)
            return _read(connection, caller, space)

        return self._database.write(write)

    def mark(
        self, caller: Caller, item: str | int, status: ItemStatus, result_note: str | None
    ) -> tuple[Agenda, AgendaItem]:
        """See `Agendas`."""
        space = _space(caller)

        def write(connection: Connection) -> tuple[Agenda, AgendaItem]:
            agenda = moves.find(connection, caller.owner_id, space, lock=True)
            if agenda is None:
                raise SkillError("not_found", NONE)
            meant = _meant(moves.items(connection, agenda.id), item)
            values: dict[str, Any] = {"status": status}
            untrusted = False
            if result_note is not None:
                values["result_note"] = result_note
                untrusted = self._provenance.untrusted(connection, caller)
            moves.mark(connection, agenda.id, meant.id, values, untrusted=untrusted)
            after = _read(connection, caller, space)
            return after, next(one for one in after.items if one.id == meant.id)

        return self._database.write(write)

    def find(self, caller: Caller) -> Agenda | None:
        """See `Agendas`."""
        space = spaces.of_agenda(caller)
        if space is None:
            return None
        with self._database.read() as connection:
            row = moves.find(connection, caller.owner_id, space)
            return None if row is None else _agenda(row, moves.items(connection, row.id))


def _space(caller: Caller) -> str:
    space = spaces.of_agenda(caller)
    if space is None:
        raise SkillError("not_found", "a plan belongs to a task or a thread, and this call is part of neither")
    return space


def _meant(items: Sequence[Row[Any]], named: str | int) -> Row[Any]:
    """The item of an id, of the start of one, or of an order.

    Raises:
        SkillError: `not_found`, `conflict`; both list what there is.
    """
    text = str(named)
    found = [row for row in items if row.id == text or str(row.position) == text]
    if not found and len(text) >= PREFIX:
        found = [row for row in items if row.id.startswith(text)]
    if len(found) == 1:
        return found[0]
    listed = "; ".join(f"{row.position}: {row.id} ({row.title[:60]})" for row in found or items)
    if found:
        raise SkillError("conflict", f"several items begin with {text!r}: {listed}")
    raise SkillError("not_found", f"the plan has no item {text[:80]!r}; it has {listed}")


def _read(connection: Connection, caller: Caller, space: str) -> Agenda:
    row = moves.find(connection, caller.owner_id, space)
    assert row is not None
    return _agenda(row, moves.items(connection, row.id))


def _agenda(row: Row[Any], items: Sequence[Row[Any]]) -> Agenda:
    return Agenda(
        id=row.id,
        overview=row.overview,
        items=tuple(
            AgendaItem(i.id, i.position, i.title, i.description, i.role, i.status, i.result_note) for i in items
        ),
        untrusted=row.untrusted,
    )
