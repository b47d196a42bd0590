"""Definitions that an agent writes: never more than its writer holds (spec: engine 15, `agents_create*`).

Pure: a writer's definition and what it asked for go in, the new definition comes out, or the reasons why not. What is
not allowed is refused; permissions alone are narrowed without a word.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from registry.agents import TIERS, AgentDefinition, PackSettings, Tier
from registry.base import Json
from registry.errors import Detail, SkillError
from registry.permissions import OPERATIONS, Gate, worst

#: What a delegate without a budget and without a graph of its own gets (spec: engine 7).
DELEGATE_BUDGET: Final[dict[str, Json]] = {"maxSteps": 25, "policy": "error"}
#: A pack that only an agent a person can hand work to may hold.
NOT_FOR_DELEGATES: Final = "agents"
#: Modes that only take away.
_CAUTIOUS: Final = ("ask", "plan", "dont_ask")
_DEFAULT: Final[Mapping[str, Gate]] = {"fs.read": "allow"}


@dataclass(frozen=True)
class Wanted:
    """What an agent asks for, as its call says it; None: not given."""

    name: str
    role: str
    instructions: str
    skills: Sequence[str] = ()
    mcp_servers: Sequence[str] = ()
    tier: Tier | None = None
    budget: Mapping[str, Json] | None = None
    packs: Mapping[str, Json] = field(default_factory=dict)
    permissions: Mapping[str, Gate] = field(default_factory=dict)
    graph: Mapping[str, Json] | None = None


def top(wanted: Wanted, creator: AgentDefinition | None) -> dict[str, Json]:
    """The definition of an agent of its owner's own.

    It may hold what its writer does not: every such agent asks a person like any other. What its writer is denied or
    has to ask for stays so, with the hooks and the cautious mode a person gave it: nobody gains by handing over to an
    agent it wrote.

    Raises:
        SkillError: `invalid_input`, naming each field.
    """
    faults = list(_anyone(wanted, creator))
    _refuse(faults)
    carried = {name: gate for name, gate in (creator.permissions if creator else {}).items() if gate != "allow"}
    return _body(wanted, creator) | _given("permissions", carried)


def delegate(wanted: Wanted, creator: AgentDefinition) -> dict[str, Json]:
    """The definition of an agent that only its writer spawns: packs, skills and servers of the writer's at most.

    Raises:
        SkillError: `invalid_input`, naming each field.
    """
    faults = [*_anyone(wanted, creator), *_beyond(wanted, creator)]
    _refuse(faults)
    body = _body(wanted, creator) | {"packs": _narrowed(wanted.packs, creator)}
    body |= _given("permissions", narrowed_permissions(wanted.permissions, creator.permissions))
    body |= _given("disallowedTools", list(creator.disallowed_tools))
    if wanted.budget is None and wanted.graph is None:
        body["budget"] = dict(DELEGATE_BUDGET)
    return body


def narrowed_permissions(wanted: Mapping[str, Gate], held: Mapping[str, Gate]) -> dict[str, Gate]:
    """Operation by operation the stricter of the two maps, where one of them says anything."""
    names = [name for name in (*OPERATIONS, *wanted, *held) if name in wanted or name in held]
    return {name: worst((_gate(wanted, name), _gate(held, name))) for name in dict.fromkeys(names)}


def at_most(tier: Tier | None, highest: str) -> Tier:
    """The tier of an agent somebody writes: as wanted, or standard, or less where the writer's own is lower.

    Raises:
        SkillError: `invalid_input` when one above the writer's is asked for.
    """
    limit = TIERS.index(highest)
    if tier is None:
        return TIERS[min(TIERS.index("standard"), limit)]
    if TIERS.index(tier) > limit:
        words = f"{tier} is above your own tier; leave it out or use {' or '.join(TIERS[: limit + 1])}"
        raise SkillError("invalid_input", f"tier: {words}", details=[Detail("tier", words)])
    return tier


def _gate(gates: Mapping[str, Gate], operation: str) -> Gate:
    return gates.get(operation, _DEFAULT.get(operation, "ask"))


def _given(key: str, value: Json) -> dict[str, Json]:
    return {key: value} if value else {}


def _body(wanted: Wanted, creator: AgentDefinition | None) -> dict[str, Json]:
    body: dict[str, Json] = {
        "id": "new",  # the row's id takes its place
        "name": wanted.name,
        "role": wanted.role,
        # What a model wrote is no template: a brace before a dollar sign would be filled in.
        "instructions": wanted.instructions.replace("{$", "{ $"),
        **_given("skills", list(wanted.skills)),
        **_given("mcpServers", list(wanted.mcp_servers)),
        **_given("packs", dict(wanted.packs)),
        **_given("budget", dict(wanted.budget) if wanted.budget is not None else None),
        **_given("graph", dict(wanted.graph) if wanted.graph is not None else None),
    }
    return body | _thinking(wanted, creator) | _guarded(creator)


def _guarded(creator: AgentDefinition | None) -> dict[str, Json]:
    """What a person put around the writer to hold it back holds for what it writes."""
    if creator is None:
        return {}
    written = creator.to_json()
    mode = {"mode": creator.mode} if creator.mode in _CAUTIOUS else {}
    return _given("hooks", written.get("hooks")) | mode


def _thinking(wanted: Wanted, creator: AgentDefinition | None) -> dict[str, Json]:
    """Tier and model: the writer's, when the call names none."""
    if creator is None:
        return {"tier": wanted.tier or "standard"}
    if wanted.tier is not None and wanted.tier != creator.tier:
        return {"tier": wanted.tier}
    written = creator.to_json()
    same = {key: written[key] for key in ("model", "models", "fallback") if written.get(key)}
    return {"tier": creator.tier, **same}


def _anyone(wanted: Wanted, creator: AgentDefinition | None) -> Iterator[Detail]:
    """What no agent may ask for."""
    if creator is not None:
        try:
            at_most(wanted.tier, creator.tier)
        except SkillError as error:
            yield error.details[0]
    core = wanted.packs.get("core", True)
    if core is None or core is False:
        yield Detail("packs.core", "core cannot be off in a saved agent; name its tools under disabledTools instead")
    nodes = (wanted.graph or {}).get("nodes")
    for node_id, node in (nodes if isinstance(nodes, dict) else {}).items():
        if isinstance(node, dict) and node.get("model") is not None:
            yield Detail(f"graph.nodes.{node_id}.model", "a graph you write names no model: its tier says which it is")


def _beyond(wanted: Wanted, creator: AgentDefinition) -> Iterator[Detail]:
    """What a delegate would hold and its writer does not."""
    held = creator.enabled_packs()
    for name, settings in _on(wanted.packs).items():
        if name == NOT_FOR_DELEGATES:
            yield Detail(f"packs.{name}", "a delegate cannot create, spawn or hand over; leave this pack out")
        elif name not in held:
            if name != "core":
                yield Detail(f"packs.{name}", f"you do not hold this pack yourself; you hold {_list(held)}")
        elif settings.spec and settings.spec != held[name].spec:
            yield Detail(f"packs.{name}.spec", "a delegate uses your own settings of the pack; leave spec out")
    for place, skill in enumerate(wanted.skills):
        if skill not in creator.skills:
            words = f"you do not hold {skill} yourself; you hold {_list(creator.skills)}"
            yield Detail(f"skills[{place}]", words)
    for place, server in enumerate(wanted.mcp_servers):
        if server not in creator.mcp_servers:
            yield Detail(f"mcpServers[{place}]", f"you do not use the server {server} yourself")


def _narrowed(packs: Mapping[str, Json], creator: AgentDefinition) -> dict[str, Json]:
    """The packs of a delegate under its writer's own settings; what its writer lacks of a pack it lacks, too."""
    held = creator.enabled_packs()
    made: dict[str, Json] = {}
    for name, settings in _on({"core": True, **packs}).items():
        if name not in held:  # only core comes here: its writer has it off, and a saved agent cannot
            made[name] = {"disabledTools": ["ask_user", "map", "wait"]}
            continue
        mine = held[name]
        written = {
            "spec": dict(mine.spec),
            "disabledTools": list(dict.fromkeys((*mine.disabled_tools, *settings.disabled_tools))),
            "exposure": {**mine.exposure, **settings.exposure},
        }
        made[name] = {key: value for key, value in written.items() if value} or True
    return made


def _on(packs: Mapping[str, Json]) -> dict[str, PackSettings]:
    """The packs that are on; what is no pack's settings is left for the checks of definitions."""
    found = {}
    for name, value in packs.items():
        if value is True:
            found[name] = PackSettings()
        elif isinstance(value, dict):
            try:
                found[name] = PackSettings.model_validate(value)
            except ValueError as error:
                words = str(error).splitlines()[-2].strip() if "\n" in str(error) else str(error)
                raise SkillError("invalid_input", f"packs.{name}: {words}") from None
    return found


def _list(names: Mapping[str, Json] | Sequence[str]) -> str:
    return ", ".join(names) or "none"


def _refuse(faults: Sequence[Detail]) -> None:
    if faults:
        words = "; ".join(f"{fault.path}: {fault.message}" for fault in faults[:5])
        raise SkillError("invalid_input", words, details=list(faults[:10]))


__all__ = ["DELEGATE_BUDGET", "Wanted", "at_most", "delegate", "narrowed_permissions", "top"]
