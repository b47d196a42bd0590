"""The agents a project brings along, inline or in files beside it (spec: project 1, engine 1 and 4)."""

from dataclasses import replace
from pathlib import Path

from registry.agents import AgentDefinition
from registry.base import Json
from registry.errors import Fault, WrongUse
from registry.graph.checks.known import Registries, check_registries
from registry.graph.findings import Finding, quoted, shown
from registry.graph.targets import AgentCard
from registry.graph.validation import parse_agent
from registry.projects.beside import Unusable, find_file
from registry.projects.documents import read_beside


def cards(agents: Json) -> list[AgentCard]:
    """Every agent the file names, whether its definition is right or not."""
    if not isinstance(agents, dict):
        return []
    names = {id_: one.get("name") if isinstance(one, dict) else None for id_, one in agents.items()}
    return [AgentCard(id_, name if isinstance(name, str) else id_) for id_, name in names.items()]


def read_agents(agents: Json, folder: Path, known: Registries) -> tuple[dict[str, AgentDefinition], list[Fault]]:
    """The definitions by id, and every error of both levels of validation; warnings never block.

    Args:
        agents: the map as written: id to a definition or `{file: path}`.
        folder: where files are looked for.
        known: what definitions may name besides each other.
    """
    read: dict[str, AgentDefinition] = {}
    faults: list[Fault] = []
    if known.agents is not None:
        known = replace(known, agents=(*cards(agents), *known.agents))
    for id_, one in agents.items() if isinstance(agents, dict) else ():
        if not isinstance(one, dict):
            continue  # the model of the file reports it
        path = f"agents.{id_}"
        try:
            definition = _definition(id_, one, folder)
        except Unusable as error:
            faults.append(error.at(path))
            continue
        except WrongUse as error:
            faults += [Fault(path, fault.code, f"{fault.path}: {fault.message}") for fault in error.faults]
            continue
        agent, findings = parse_agent(definition, known.limits)
        if agent is not None:
            findings = [*findings, *check_registries(agent, known)]
            read[id_] = agent
        faults += [_fault(path, finding) for finding in findings if finding.severity == "error"]
    return read, faults


def _definition(id_: str, one: dict[str, Json], folder: Path) -> Json:
    """The definition with its id, which may be left out where the key says it."""
    if isinstance(one, dict) and set(one) == {"file"}:
        if not isinstance(one["file"], str):
            raise Unusable("wrong_type", f"file must be a text, found {shown(one['file'])}")
        written = read_beside(find_file(folder, one["file"]))
        if not isinstance(written, dict):
            return written
        one = written
    if one.get("id", id_) != id_:
        raise Unusable("id_mismatch", f"the definition has the id {shown(one['id'])}, and the key says {quoted(id_)}")
    return {"id": id_, **one}


def _fault(path: str, finding: Finding) -> Fault:
    return Fault(f"{path}.{finding.path}" if finding.path else path, finding.code, finding.message)


__all__ = ["cards", "read_agents"]
