"""From a project file to a project that can be started, or to every fault of it at once (spec: project 1)."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from registry.agents import AgentDefinition
from registry.base import Json
from registry.errors import Fault, WrongUse
from registry.graph.checks.known import Registries
from registry.graph.values import kind
from registry.jsontext import digest
from registry.plans import PlanLimits, check_plan
from registry.projects.agents import cards, read_agents
from registry.projects.beside import Unusable, find_file
from registry.projects.documents import parse, read_beside, read_text
from registry.projects.faults import check, ordered
from registry.projects.inputs import InputFile, InputLimits, plan_inputs
from registry.projects.model import MAX_TITLE, Input, ProjectFile
from registry.scripts import Script, check_script
from registry.text import nul_places

_BRIEFS: Final = (".md", ".txt")
_DOCUMENTS: Final = (".yaml", ".yml", ".json")


@dataclass(frozen=True)
class Limits:
    plan: PlanLimits = field(default_factory=PlanLimits)
    inputs: InputLimits = field(default_factory=InputLimits)


@dataclass(frozen=True)
class Project:
    """A project file and everything it names, found good."""

    file: ProjectFile
    agents: dict[str, AgentDefinition] = field(default_factory=dict)
    inputs: list[InputFile] = field(default_factory=list)
    script: Script | None = None

    @property
    def digest(self) -> str:
        """What tells one submitted file from another under the same client key; the content of inputs is left out."""
        agents = {id_: agent.to_json() for id_, agent in self.agents.items()}
        script = self.script.model_dump(mode="json", by_alias=True, exclude_unset=True) if self.script else None
        # As it was written: a default that changes with a release makes no other project of a file.
        file = self.file.model_dump(mode="json", by_alias=True, exclude_unset=True)
        return digest({"file": file, "agents": agents, "script": script})


def read_submission(source: str, known: Registries, limits: Limits | None = None) -> Project:
    """What `officina submit` was given: a project file, a file that holds a brief, or the brief itself.

    Raises:
        WrongUse: with every fault.
    """
    path = Path(source)
    if source.strip() == "-" or (path.name and not any(c.isspace() for c in source) and _is_folder(path)):
        raise _refused(
            [Fault(source, "no_file", "submit takes a project file, a .md or .txt file, or a brief in words")]
        )
    if _is_file(path):
        if path.suffix.lower() in _BRIEFS:
            return Project(of_brief(read_text(path)))
        return read_project(path, known, limits)
    if path.suffix.lower() in (*_BRIEFS, *_DOCUMENTS) and not any(c.isspace() for c in source):
        read_text(path)  # a name mistyped is not a brief: says that there is no such file
    return Project(of_brief(source))


def read_project(path: Path, known: Registries, limits: Limits | None = None) -> Project:
    """The project of a file.

    Raises:
        WrongUse: with every fault, sorted by path; nothing was written anywhere.
    """
    return project_of(parse(read_text(path), name=path.name), path.resolve().parent, known, limits)


def project_of(
    document: Json, folder: Path, known: Registries, limits: Limits | None = None, *, script: Json = None
) -> Project:
    """The project of a document as read; what it names lies in `folder`.

    Args:
        script: the stand-in's script itself, for a document that names none.

    Raises:
        WrongUse: with every fault.
    """
    limits = limits or Limits()
    if not isinstance(document, dict):
        raise _refused([Fault("", "wrong_type", f"a project file is an object with a title, found {kind(document)}")])
    file, faults = check(ProjectFile, document)
    faults += [Fault(at, "invalid_text", "holds a NUL, which no text may") for at in nul_places(document)]
    tasks = document.get("tasks")
    agents, agent_faults = read_agents(document.get("agents"), folder, known)
    inputs, input_faults = plan_inputs(folder, _inputs(document), limits.inputs)
    read, script_faults = _script(document.get("script"), folder, tasks)
    if script is not None:
        read, script_faults = check_script(script, tasks=_keys(tasks), at="script")
    faults += check_plan(tasks, known, agents=cards(document.get("agents")), limits=limits.plan)
    faults += [*_brief(document), *agent_faults, *input_faults, *script_faults]
    if file is None or faults:
        raise _refused(ordered(faults))
    return Project(file, agents, inputs, read)


def of_brief(text: str) -> ProjectFile:
    """A project that is a brief and nothing else; its title is the first line, cut to 120 characters.

    Raises:
        WrongUse: when it is blank or too long.
    """
    lines = [line.strip() for line in text.replace("\ufeff", "").splitlines()]
    first = next((line.lstrip("#").strip() for line in lines if line.lstrip("#").strip()), "")
    title = "".join(c if c.isprintable() else " " for c in first)[:MAX_TITLE].strip()
    file, faults = check(ProjectFile, {"title": title, "brief": text.strip()})
    if file is None:
        raise _refused([fault for fault in faults if fault.path == "brief"] or faults)
    return file


def _brief(document: dict[str, Json]) -> list[Fault]:
    if document.get("tasks") or document.get("brief") is not None:
        return []
    return [Fault("brief", "required", "is required where no tasks are given: the planner works from it")]


def _inputs(document: dict[str, Json]) -> list[Input | None]:
    """The inputs at their places; None stands for one that the model reports."""
    written = document.get("inputs")
    if not isinstance(written, list):
        return []
    return [check(Input, {"path": one} if isinstance(one, str) else one)[0] for one in written]


def _script(name: Json, folder: Path, tasks: Json) -> tuple[Script | None, list[Fault]]:
    if not isinstance(name, str) or not name:
        return None, []
    try:
        document = read_beside(find_file(folder, name))
    except Unusable as error:
        return None, [error.at("script")]
    except WrongUse as error:
        return None, [Fault("script", fault.code, f"{fault.path}: {fault.message}") for fault in error.faults]
    return check_script(document, tasks=_keys(tasks), at="script")


def _keys(tasks: Json) -> list[str] | None:
    """The keys of the plan; None when the planner is to make it."""
    if not isinstance(tasks, list) or not tasks:
        return None
    return [task["key"] for task in tasks if isinstance(task, dict) and isinstance(task.get("key"), str)]


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a brief is no path: too long, or with characters no path has
        return False


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _refused(faults: list[Fault]) -> WrongUse:
    first = f"{faults[0]}" + (f" (and {len(faults) - 1} more)" if len(faults) > 1 else "")
    return WrongUse(first, code="project_invalid", faults=faults)


__all__ = ["Limits", "Project", "of_brief", "project_of", "read_project", "read_submission"]
