"""What an owner saves: agents and generators that skills propose (spec: skills 7.27, 7.28)."""

import unicodedata
from collections.abc import Callable, Collection
from typing import Any, Final, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from orchestrator.ports.keys import call_key
from orchestrator.store import agents, generators
from orchestrator.store.database import Database
from registry.agents import AgentDefinition
from registry.errors import Detail, SkillError
from registry.generators import Generator, built_in, faults
from registry.ids import new_id
from registry.skills.context import Caller
from registry.skills.registry import SkillRegistry

T = TypeVar("T")

#: Saved agents, and generators, of one owner.
MAX_SAVED: Final = 100


class StoredStudio:
    """The `Studio` port over rows.

    Args:
        skills: the catalogue.
        documents: kebab names of the documents there are.
    """

    def __init__(self, database: Database, skills: SkillRegistry, *, documents: Collection[str] = ()) -> None:
        self._database = database
        self._skills = frozenset(skill.name for skill in skills)
        self._catalogued = frozenset(skill.name for skill in skills if skill.catalogued)
        self._documents = frozenset(documents)

    def unknown(self, names: list[str]) -> list[str]:
        """See `Studio`."""
        return [name for name in names if name not in self._skills | self._documents]

    def save_agent(self, caller: Caller, agent: AgentDefinition) -> tuple[str, bool]:
        """See `Studio`."""
        return self._twice(lambda c: _agent(c, caller, agent)), True

    def save_generator(self, caller: Caller, generator: Generator) -> str:
        """See `Studio`."""
        if found := faults(generator, self._catalogued):
            details = [Detail(fault.path, fault.message) for fault in found]
            words = f"{found[0].path}: {found[0].message}"
            more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
            raise SkillError("invalid_input", words + more, details=details[:10])
        return self._twice(lambda c: _generator(c, caller, generator))

    def _twice(self, work: Callable[[Connection], T]) -> T:
        try:
            return self._database.write(work)
        except IntegrityError:  # the same name, or the same call, at the same moment: now it is there to be seen
            return self._database.write(work)


def _agent(connection: Connection, caller: Caller, agent: AgentDefinition) -> str:
    key = call_key(caller)
    if mine := agents.of_call(connection, key):
        return mine
    name_key = comparable_name(agent.name)
    if agents.has_name(connection, caller.owner_id, name_key):
        raise _taken("agent", agent.name)
    if agents.count_saved(connection, caller.owner_id) >= MAX_SAVED:
        raise SkillError("quota", f"{MAX_SAVED} agents are saved already; delete one first")
    made = AgentDefinition.model_validate({**agent.to_json(), "id": new_id()})
    agents.save(connection, caller.owner_id, made, name_key=name_key, call_key=key)
    return made.id


def _generator(connection: Connection, caller: Caller, generator: Generator) -> str:
    key = call_key(caller)
    if mine := generators.of_call(connection, key):
        return mine
    name_key = comparable_name(generator.name)
    shipped = name_key in {comparable_name(one.name) for one in built_in().values()}
    if shipped or generators.by_name(connection, caller.owner_id, name_key) is not None:
        raise _taken("generator", generator.name)
    if generators.count(connection, caller.owner_id) >= MAX_SAVED:
        raise SkillError("quota", f"{MAX_SAVED} generators are saved already; delete one first")
    written = generator.to_json()
    row: dict[str, Any] = {
        "id": new_id(),
        "owner_id": caller.owner_id,
        "name": generator.name,
        "name_key": name_key,
        "description": generator.description,
        "inputs": written["inputs"],
        "steps": written["steps"],
        "call_key": key,
    }
    generators.create(connection, row)
    return str(row["id"])


def comparable_name(name: str) -> str:
    """A name as it compares: composed, without case, blanks squeezed, invisible format characters left out."""
    seen = "".join(c for c in unicodedata.normalize("NFC", name) if unicodedata.category(c) != "Cf")
    return " ".join(unicodedata.normalize("NFC", seen.casefold()).split())


def _taken(what: str, name: str) -> SkillError:
    return SkillError("conflict", f"you have {'an' if what[0] == 'a' else 'a'} {what} called {name!r} already")
