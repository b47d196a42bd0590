"""Checks a definition before anything is saved or run (spec: engine 4).

    agent, findings = parse_agent(json)       # the agent is None when any finding is an error
    findings += check_registries(agent, known)

The structural level reads raw JSON, so whatever a person, file or model wrote gives findings and never an exception.
"""

from collections.abc import Callable
from typing import Final

from pydantic import ValidationError

from registry.agents import ROW_COLUMNS, AgentDefinition
from registry.base import Json
from registry.graph.checks import agent, calls, fields, flow, maps, places, waits, wiring
from registry.graph.checks.draft import Draft
from registry.graph.checks.known import PackCard, Registries, check_registries
from registry.graph.findings import Finding, Findings, quoted
from registry.graph.limits import USUAL, GraphLimits
from registry.graph.values import kind
from registry.jsontext import MAX_DEPTH, compact, depth
from registry.text import nul_places

_CHECKS: Final[tuple[Callable[[Draft, Findings], None], ...]] = (
    agent.identity,
    agent.one_main_prompt,
    agent.budget,
    agent.reducers,
    agent.permissions,
    agent.packs,
    agent.hooks,
    wiring.counts,
    wiring.types,
    wiring.endpoints,
    wiring.outgoing,
    wiring.ignored,
    wiring.defaults,
    places.syntax,
    places.undeclared,
    places.literal_outputs,
    calls.prompts,
    calls.histories,
    calls.schemas,
    calls.tool_calls,
    calls.approvals,
    calls.fan_outs,
    calls.unrouted,
    calls.gotos,
    calls.dynamic_spawns,
    maps.fields,
    maps.bodies,
    maps.enters,
    maps.escapes,
    maps.yields,
    maps.outsiders,
    waits.waits,
    flow.cycles,
    flow.unreachable,
)


#: Times a limit of the graph, beyond which nothing else is looked at.
FAR = 4


def validate(definition: Json, limits: GraphLimits = USUAL) -> list[Finding]:
    """The structural level: everything that can be said without registries, in the order of the table of codes."""
    found = Findings(limits)
    reason = _unreadable(definition)
    if reason:
        found.add("definition_shape", "", reason)
        return list(found)
    if _far_too_large(definition, limits):
        wiring.counts(Draft(definition), found)
        return list(found)
    draft = Draft(definition)
    fields.check_fields(definition, "", found)
    for check in _CHECKS:
        check(draft, found)
    return list(found)


def parse_agent(definition: Json, limits: GraphLimits = USUAL) -> tuple[AgentDefinition | None, list[Finding]]:
    """The agent, or None when a finding of the structural level is an error; the findings either way.

    The columns of a saved row may stand there and say nothing: who writes a file must not become a being by it, and
    read what that being remembers.
    """
    found = validate(definition, limits)
    if any(finding.severity == "error" for finding in found):
        return None, found
    try:
        written = {name: value for name, value in definition.items() if name not in ROW_COLUMNS}
        return AgentDefinition.model_validate(written), found
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        path = ".".join(str(step) for step in first["loc"])
        return None, [Finding("definition_shape", "error", first["msg"], path), *found]


def _far_too_large(definition: dict[str, Json], limits: GraphLimits) -> bool:
    """Whether a graph is so far over its limits that its other faults are not worth the seconds they take to find."""
    graph = definition.get("graph")
    if not isinstance(graph, dict):
        return False
    most = {"nodes": limits.graph_nodes, "edges": limits.graph_edges}
    written = {name: value for name in most if isinstance(value := graph.get(name), (dict, list))}
    return any(len(value) > FAR * most[name] for name, value in written.items())


def _unreadable(definition: Json) -> str | None:
    """Why nothing more can be said about a definition."""
    if not isinstance(definition, dict):
        return f"an agent definition is an object, found {kind(definition)}"
    if depth(definition) > MAX_DEPTH:
        return f"nested deeper than {MAX_DEPTH} levels"
    if place := next(nul_places(definition), None):
        return f"{quoted(place)} holds a NUL character, which no database keeps"
    try:
        compact(definition).encode("utf-8")
    except UnicodeEncodeError:
        return "a text holds half of a surrogate pair, which UTF-8 cannot write"
    except (TypeError, ValueError) as error:
        return f"not JSON: {error}"
    return None


__all__ = ["Finding", "PackCard", "Registries", "check_registries", "parse_agent", "validate"]
