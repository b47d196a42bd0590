"""Calls of skills outside of a run: by a person or a program, on their own or for a project (spec: skills 3.1)."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.records import Event, FileRecord
from orchestrator.settings import Settings
from registry.base import Json
from registry.errors import SkillError
from registry.ids import new_id
from registry.permissions import Policy
from registry.personas import TEAM_PERMISSIONS
from registry.skills.context import Authority, Caller, SkillContext
from registry.skills.registry import Checked, SkillRegistry, SkillResult

if TYPE_CHECKING:
    from orchestrator.outside import Place

#: Ports that stand on rows, and those whose use is counted beside them.
_ROWS = frozenset({"memory", "schedules", "studio", "connections", "signals", "net", "llm"})
#: Bytes of an output an event keeps.
_SHOWN = 16 * 1024


@dataclass
class _Heard:
    """What a call has to tell its project."""

    lines: list[Event] = field(default_factory=list)
    files: list[FileRecord] = field(default_factory=list)

    def emit(self, kind: str, data: dict[str, Json]) -> None:
        self.lines.append(Event(kind, data))
        if kind == "file.written":
            self.files.append(FileRecord(data["path"], data["bytes"], data["sha256"], data.get("skill")))


def call(
    settings: Settings,
    skills: SkillRegistry,
    name: str,
    arguments: Json,
    *,
    as_agent: bool = False,
    workspace: Path | None = None,
    project: "Place | None" = None,
) -> SkillResult:
    """Calls a skill once.

    Args:
        as_agent: with a team agent's permissions and nobody's yes; for a project, what needs one is asked on the desk.
        workspace: the folder the call works in; else the project's, or the owner's scratch folder.
        project: whose trace hears of the call.
    """
    call_id, heard = new_id(), _Heard()
    context = SkillContext(
        caller=Caller(
            kind="run" if as_agent else "person",
            owner_id=settings.owner,
            project_id=project.id if project else None,
            call_id=call_id,
        ),
        policy=Policy(agent=TEAM_PERMISSIONS, run={}) if as_agent else None,
        rehearsal=project.rehearsal if project else False,
        emit=heard.emit,
        **ports(settings, skills, name, workspace or _folder(settings, project)),
    )
    authority = None if as_agent else Authority(digest=None)
    result = skills.invoke(name, arguments, context, authority)
    if project is not None:
        if result.pending is not None:
            _ask(settings, project, call_id, result)
        _tell(settings, project, call_id, _checked(skills, name, arguments, context), result, heard)
    return result


def ports(settings: Settings, skills: SkillRegistry, name: str, folder: Path) -> dict[str, Any]:
    """The ports one skill needs, and no other: each of them costs something to make."""
    found = skills.find(name)
    needs = found.needs if found else frozenset()
    made: dict[str, Any] = {}
    if needs & _ROWS or (found is not None and found.rate):
        made |= _row_ports(settings, skills)
    if "workspace" in needs:
        from workers.sandbox.workspace import JailedWorkspace

        folder.mkdir(parents=True, exist_ok=True)
        made["workspace"] = JailedWorkspace(folder)
    if "sandbox" in needs:
        from workers.sandbox.process import find_sandbox

        made["sandbox"] = find_sandbox()  # each link of the chain is tried by running a program behind it
    if "net" in needs:
        from workers.net.wiring import guard_for
        from workers.web.wiring import web_for

        made["net"] = net = guard_for(settings)
        made["web"] = web_for(settings, net)
    if "images" in needs:
        from workers.models.painting import PlainPainter

        made["images"] = PlainPainter(settings, made["net"])
    if "llm" in needs:
        from workers.models.asking import PlainModel

        made["llm"] = PlainModel(settings)
    return made


def _row_ports(settings: Settings, skills: SkillRegistry) -> dict[str, Any]:
    """The ports over rows, with an SQLite database made where there is none yet."""
    from orchestrator.ports.signals import DeskSignals
    from orchestrator.ports.wiring import wire
    from orchestrator.store.database import get_database, prepare

    prepare(settings)
    rows = wire(settings, skills)
    return {
        "memory": rows.memory,
        "schedules": rows.schedules,
        "studio": rows.studio,
        "connections": rows.connections,
        "meter": rows.meter,
        "signals": DeskSignals(settings, get_database(settings)),
    }


def _folder(settings: Settings, project: "Place | None") -> Path:
    from registry.skills.paths import slug

    return settings.workspaces / (project.workspace if project else f"scratch-{slug(settings.owner)}")


def _ask(settings: Settings, project: "Place", call_id: str, result: SkillResult) -> None:
    from orchestrator import outside

    assert result.pending is not None
    try:
        result.signal_id = outside.ask(settings, project, call_id, result.pending)
    except SkillError as error:
        result.code, result.error = error.code, error.message


def _checked(skills: SkillRegistry, name: str, arguments: Json, context: SkillContext) -> Checked | None:
    try:
        return skills.check(name, arguments, context)
    except SkillError:
        return None


def _tell(
    settings: Settings, project: "Place", call_id: str, checked: Checked | None, result: SkillResult, heard: _Heard
) -> None:
    """The call's two lines in the trace, with what it wrote between them."""
    from orchestrator import outside
    from registry.jsontext import compact

    if checked is None:
        return  # no such skill, or an input that is none: nothing happened
    about: dict[str, Json] = {"toolCallId": call_id, "name": checked.skill.name}
    begun = {"input": checked.canonical, "operations": checked.operations}
    effect = {"effect": checked.skill.effect_of(checked.input)}
    ended: dict[str, Json] = {
        "outcome": "ok" if result.ok else "deferred" if result.signal_id else "error",
        "isError": not result.ok,
        "output": result.output if result.ok else result.error,
        "durationMs": result.duration_ms,
    }
    if result.code:
        ended["code"] = result.code
    text = compact(ended["output"])
    if len(text.encode("utf-8", "replace")) > _SHOWN:
        ended |= {"output": text[: _SHOWN // 4], "clipped": True}
    first = Event("tool.call", about | begun | effect)
    outside.record(settings, project, [first, *heard.lines, Event("tool.result", about | ended)], heard.files)
