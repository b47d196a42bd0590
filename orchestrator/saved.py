"""What a person does with saved agents and generators: written whole, changed, deleted; and a generator run.

An agent is judged at both levels before a row is written, as everywhere. Versions tell one state of an agent from
another, so that of two who edit the same one only the first wins.
"""

from collections.abc import Callable
from typing import Any, Final

from sqlalchemy import Connection, Row
from sqlalchemy.exc import IntegrityError

from orchestrator import submission
from orchestrator.known import load_presets, registries
from orchestrator.ports.studio import MAX_SAVED, comparable_name
from orchestrator.producer import Submitted
from orchestrator.settings import Settings
from orchestrator.store import agents, audit, generators, memories, pins
from orchestrator.store.database import get_database
from orchestrator.store.memories import Space
from registry.agents import ROW_COLUMNS, AgentDefinition
from registry.base import Json
from registry.citizens import CITIZENS, Citizen
from registry.errors import Fault, Refused, WrongUse
from registry.generators import Generator, Unusable, built_in, faults, plan, unused
from registry.graph.validation import check_registries, parse_agent
from registry.ids import new_id
from registry.skills.registry import SkillRegistry

#: What nobody writes into a definition here.
_COLUMNS: Final = ("id", *ROW_COLUMNS)


def agent_list(settings: Settings, *, limit: int, after: tuple[int, str] | None) -> list[dict[str, Json]]:
    """The owner's agents, the eldest first."""
    with get_database(settings).read() as connection:
        return [_agent(row) for row in agents.page(connection, settings.owner, limit, after)]


def agent(settings: Settings, agent_id: str) -> dict[str, Json]:
    """
    Raises:
        Refused: `unknown_agent`.
    """
    with get_database(settings).read() as connection:
        return _agent(_mine(connection, settings, agent_id))


def create_agent(settings: Settings, skills: SkillRegistry, body: dict[str, Json], *, person: bool) -> dict[str, Json]:
    """Saves an agent.

    Raises:
        WrongUse: `agent_invalid` with every fault.
        Refused: `name_taken`, `quota`.
    """
    made = _valid(settings, skills, body, new_id(), person=person)

    def write(connection: Connection) -> dict[str, Json]:
        _insert(connection, settings, skills, made)
        return _agent(_mine(connection, settings, made.id))

    return _twice(settings, write)


def change_agent(
    settings: Settings,
    skills: SkillRegistry,
    agent_id: str,
    changes: dict[str, Json],
    *,
    version: str | None,
    person: bool,
) -> dict[str, Json]:
    """Gives an agent other fields; null takes one away. What runs keeps the definition it began with.

    Args:
        version: the version that was read; None: whichever it is.

    Raises:
        WrongUse: `agent_invalid` with every fault.
        Refused: `unknown_agent`, `version_conflict`, `name_taken`.
    """

    def write(connection: Connection) -> dict[str, Json]:
        row = _mine(connection, settings, agent_id)
        _same(row, version)
        body = {key: value for key, value in {**row.body, **changes}.items() if value is not None}
        prompts = body.get("prompts")
        if ("instructions" in changes or "systemPrompt" in changes) and isinstance(prompts, dict):
            body["prompts"] = {name: one for name, one in prompts.items() if name != "main"}
        body.pop("id", None)
        hooks = row.body.get("hooks")
        valid = _valid(settings, skills, body, row.key, person=person, told=changes, hooks=hooks)
        made = _as_being(valid, row.being_id)
        if comparable_name(made.name) != comparable_name(row.name):
            _free(connection, settings, skills, made.name)
        agents.change(connection, row.id, made, name_key=comparable_name(made.name))
        fields = sorted(changes)
        audit.record(connection, settings.owner, settings.by, "agent.changed", row.key, fields=fields, **_rights(made))
        return _agent(_mine(connection, settings, agent_id))

    return _twice(settings, write)


def promote_agent(settings: Settings, agent_id: str, *, version: str | None) -> dict[str, Json]:
    """Makes a being of an agent: from now on it remembers across projects, what it has noted for itself included.

    One that is a being already stays as it is.

    Raises:
        Refused: `unknown_agent`, `version_conflict`.
    """

    def write(connection: Connection) -> dict[str, Json]:
        row = _mine(connection, settings, agent_id)
        _same(row, version)
        if row.being_id is None:
            agents.promote(connection, row.id, _as_being(AgentDefinition.model_validate(row.body), row.key))
            memories.move(connection, Space(settings.owner, f"agent:{row.key}"), f"being:{row.key}", being_id=row.key)
            pins.move(connection, settings.owner, f"agent:{row.key}", f"being:{row.key}")
            audit.record(connection, settings.owner, settings.by, "agent.promoted", row.key)
        return _agent(_mine(connection, settings, agent_id))

    return get_database(settings).write(write)


def citizen_list(settings: Settings) -> list[dict[str, Json]]:
    """The twelve, by name, each with the id of the owner's copy."""
    with get_database(settings).read() as connection:
        mine = agents.beings(connection, settings.owner)
    return [_citizen(one, mine.get(id_)) for id_, one in CITIZENS.items()]


def citizen(settings: Settings, citizen_id: str) -> dict[str, Json]:
    """One of the twelve.

    Raises:
        Refused: `unknown_citizen`.
    """
    found = _one_of_twelve(citizen_id)
    with get_database(settings).read() as connection:
        return _citizen(found, agents.beings(connection, settings.owner).get(found.id))


def adopt_citizen(settings: Settings, skills: SkillRegistry, citizen_id: str) -> tuple[dict[str, Json], bool]:
    """Gives the owner a copy of a citizen, and says whether it is new: of each there is one, however often asked for.

    Its memory is the being's, per owner: whoever removes a copy and takes the citizen on again finds it as it was.

    Raises:
        Refused: `unknown_citizen`, `name_taken`, `quota`.
    """
    found = _one_of_twelve(citizen_id)
    made = _as_being(_valid(settings, skills, found.body(), new_id(), person=False), found.id)

    def write(connection: Connection) -> dict[str, Json]:
        if (mine := agents.copy_of(connection, settings.owner, found.id)) is None:
            _insert(connection, settings, skills, made, found.id)
        return _agent(_mine(connection, settings, mine or made.id))

    kept = _twice(settings, write)
    return kept, kept["id"] == made.id


def remove_agent(settings: Settings, agent_id: str, *, version: str | None) -> None:
    """Deletes an agent; projects at work keep theirs.

    Raises:
        Refused: `unknown_agent`, `version_conflict`.
    """

    def write(connection: Connection) -> None:
        row = _mine(connection, settings, agent_id)
        _same(row, version)
        agents.remove(connection, row.id)
        audit.record(connection, settings.owner, settings.by, "agent.removed", row.key)

    get_database(settings).write(write)


def _rights(agent: AgentDefinition) -> dict[str, Json]:
    """What an agent may do, for the audit log: its name, and what was granted to it."""
    may = {"permissions": dict(agent.permissions) or None, "mode": agent.mode, "skills": list(agent.skills) or None}
    return {"name": agent.name, "packs": sorted(agent.packs) or None, "hooks": len(agent.hooks) or None} | may


def generator_list(settings: Settings, *, limit: int, after: tuple[int, str] | None) -> list[dict[str, Json]]:
    """The owner's generators, the eldest first."""
    with get_database(settings).read() as connection:
        return [_generator(row) for row in generators.page(connection, settings.owner, limit, after)]


def generators_built_in() -> list[dict[str, Json]]:
    """The generators that ship, in the shape of saved ones."""
    return [_built_in(id_, one) for id_, one in built_in().items()]


def generator(settings: Settings, generator_id: str) -> dict[str, Json]:
    """One of the owner's, or one that ships.

    Raises:
        Refused: `unknown_generator`.
    """
    with get_database(settings).read() as connection:
        row = generators.row(connection, settings.owner, generator_id)
    if row is not None:
        return _generator(row)
    if (one := built_in().get(generator_id)) is None:
        raise _no_generator(generator_id)
    return _built_in(generator_id, one)


def create_generator(settings: Settings, skills: SkillRegistry, made: Generator) -> dict[str, Json]:
    """Saves a generator.

    Raises:
        WrongUse: `generator_invalid` with every fault.
        Refused: `name_taken`, `quota`.
    """
    if found := faults(made, frozenset(one.name for one in skills if one.catalogued)):
        raise WrongUse(str(found[0]), code="generator_invalid", faults=found)
    written, name_key = made.to_json(), comparable_name(made.name)
    row: dict[str, Any] = {
        "id": new_id(),
        "owner_id": settings.owner,
        "name": made.name,
        "name_key": name_key,
        "description": made.description,
        "inputs": written["inputs"],
        "steps": written["steps"],
    }

    def write(connection: Connection) -> dict[str, Json]:
        if name_key in {comparable_name(one.name) for one in built_in().values()}:
            raise Refused(f"a generator that ships is called {made.name!r}; take another name", code="name_taken")
        if generators.by_name(connection, settings.owner, name_key) is not None:
            raise Refused(f"you have a generator called {made.name!r} already", code="name_taken")
        if generators.count(connection, settings.owner) >= MAX_SAVED:
            raise Refused(f"{MAX_SAVED} generators are saved already; delete one first", code="quota")
        generators.create(connection, row)
        steps = len(written["steps"])
        audit.record(connection, settings.owner, settings.by, "generator.saved", row["id"], name=made.name, steps=steps)
        made_row = generators.row(connection, settings.owner, row["id"])
        assert made_row is not None
        return _generator(made_row) | {"warnings": [f"no step uses the input {key}" for key in unused(made)]}

    return _twice(settings, write)


def remove_generator(settings: Settings, generator_id: str) -> None:
    """Deletes a generator; projects made of it keep their plan.

    Raises:
        Refused: `unknown_generator`, `built_in`.
    """
    if generator_id in built_in():
        raise Refused("that generator ships with the release and stays", code="built_in")

    def write(connection: Connection) -> bool:
        done = generators.remove(connection, settings.owner, generator_id)
        if done:
            audit.record(connection, settings.owner, settings.by, "generator.removed", generator_id)
        return done

    if not get_database(settings).write(write):
        raise _no_generator(generator_id)


def run_generator(
    settings: Settings,
    skills: SkillRegistry,
    generator_id: str,
    inputs: dict[str, Json],
    *,
    key: str | None = None,
    rehearse: bool = False,
) -> Submitted:
    """Starts a project whose plan is the generator's steps, filled with these inputs; no planner is asked.

    Raises:
        WrongUse: `invalid_input` with every fault of the inputs.
        Refused: `unknown_generator`.
    """
    with get_database(settings).read() as connection:
        found = generators.get(connection, settings.owner, generator_id)
    if found is None:
        raise _no_generator(generator_id)
    try:
        tasks = plan(found, inputs)
    except Unusable as error:
        raise WrongUse(str(error.faults[0]), code="invalid_input", faults=error.faults) from None
    document: dict[str, Json] = {"title": found.name, "brief": found.description or found.name}
    document |= {"tasks": [task.to_json() for task in tasks]}
    return submission.submit(settings, skills, document, [], key=key, rehearse=rehearse, generator_id=generator_id)


def _valid(
    settings: Settings,
    skills: SkillRegistry,
    body: dict[str, Json],
    agent_id: str,
    *,
    person: bool,
    told: dict[str, Json] | None = None,
    hooks: Json = None,
) -> AgentDefinition:
    """The definition of an agent, found good.

    Args:
        hooks: those it has: a program neither adds one nor takes one away.
        told: what its writer wrote of it, where that is not all of it.
    """
    said = body if told is None else told
    wrong = [Fault(name, "unknown_field", f"{name} is set here, not by you") for name in _COLUMNS if name in said]
    if not person and (body.get("hooks") or []) != (hooks or []):
        wrong.append(Fault("hooks", "not_a_person", submission.NOT_A_PERSON))
    known = registries(settings, skills, stand_in=settings.stand_in or not settings.has_model)
    body = {key: value for key, value in body.items() if key not in _COLUMNS}
    made, found = parse_agent({**body, "id": agent_id}, known.limits)
    if made is not None:
        found = [*found, *check_registries(made, known)]
    wrong += [Fault(one.path, one.code, one.message) for one in found if one.severity == "error"]
    if made is None or wrong:
        raise WrongUse(str(wrong[0]), code="agent_invalid", faults=wrong)
    return made


def _as_being(agent: AgentDefinition, being_id: str | None) -> AgentDefinition:
    if being_id is None:
        return agent
    return AgentDefinition.model_validate(agent.to_json() | {"beingId": being_id})


def _free(connection: Connection, settings: Settings, skills: SkillRegistry, name: str) -> None:
    wanted = comparable_name(name)
    known = registries(settings, skills, stand_in=settings.stand_in or not settings.has_model)
    presets = {comparable_name(card.name) for card in load_presets(settings, known).cards}
    if wanted in presets or agents.has_name(connection, settings.owner, wanted):
        raise Refused(f"an agent is called {name[:120]!r} already; take another name", code="name_taken")


def _insert(
    connection: Connection,
    settings: Settings,
    skills: SkillRegistry,
    made: AgentDefinition,
    being_id: str | None = None,
) -> None:
    _free(connection, settings, skills, made.name)
    if agents.count_saved(connection, settings.owner) >= MAX_SAVED:
        raise Refused(f"{MAX_SAVED} agents are saved already; delete one first", code="quota")
    name_key = comparable_name(made.name)
    agents.save(connection, settings.owner, made, name_key=name_key, call_key=None, being_id=being_id)
    audit.record(connection, settings.owner, settings.by, "agent.saved", made.id, **_rights(made), being=being_id)


def _one_of_twelve(citizen_id: str) -> Citizen:
    if (found := CITIZENS.get(citizen_id)) is None:
        raise Refused(
            f"there is no citizen {citizen_id[:80]!r}; there are {', '.join(CITIZENS)}", code="unknown_citizen"
        )
    return found


def _same(row: Row[Any], version: str | None) -> None:
    if version is not None and version != row.definition_digest:
        raise Refused("it was changed since you read it; read it again", code="version_conflict")


def _mine(connection: Connection, settings: Settings, agent_id: str) -> Row[Any]:
    row = agents.by_key(connection, settings.owner, None, agent_id)
    if row is None or row.creator_key is not None:
        raise Refused(f"you have no agent {agent_id[:80]!r}", code="unknown_agent")
    return row


def _no_generator(generator_id: str) -> Refused:
    return Refused(f"you have no generator {generator_id[:80]!r}", code="unknown_generator")


def _twice(settings: Settings, work: Callable[[Connection], dict[str, Json]]) -> dict[str, Json]:
    try:
        return get_database(settings).write(work)
    except IntegrityError:  # the same name at the same moment: now it is there to be seen
        return get_database(settings).write(work)


def _agent(row: Row[Any]) -> dict[str, Json]:
    times = {"createdAt": row.created_at, "updatedAt": row.updated_at}
    about = {"id": row.key, "name": row.name, "beingId": row.being_id, "digest": row.definition_digest}
    return {**row.body, **about, **times}


def _citizen(one: Citizen, agent_id: str | None) -> dict[str, Json]:
    about = {"voice": one.persona.voice, "backstory": one.soul.backstory, "agentId": agent_id}
    return one.agent().to_json() | about


def _generator(row: Row[Any]) -> dict[str, Json]:
    return {
        "id": row.id,
        "name": row.name,
        "description": row.description,
        "inputs": row.inputs,
        "steps": row.steps,
        "isPublic": row.is_public,
        "version": row.version,
        "createdAt": row.created_at,
        "builtIn": False,
    }


def _built_in(id_: str, one: Generator) -> dict[str, Json]:
    about = {"id": id_, "isPublic": True, "version": 1, "createdAt": 0, "builtIn": True}
    return one.to_json() | about
