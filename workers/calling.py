"""Calls of skills outside of a run: by a person or a program, on their own or for a project (spec: skills 3.1)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
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
from workers.engine import spans

if TYPE_CHECKING:
    from orchestrator.outside import Place

#: Ports that stand on rows, and those whose use is counted beside them.
_ROWS = frozenset({"memory", "schedules", "studio", "connections", "signals", "net", "llm"})
#: What a plugin may be granted; it is served no more than it was.
_PLUGIN = frozenset({"workspace", "memory", "signals", "schedules", "connections", "net", "llm"})
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

    def frame(self, call_id: str, checked: Checked | None, result: SkillResult) -> None:
        """Puts the call's own two lines around what was said in it; none where nothing happened at all."""
        from registry.jsontext import compact

        if checked is None:  # no such skill, or an input that is none
            return
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
        first, last = Event("tool.call", about | begun | effect), Event("tool.result", about | ended)
        self.lines = [first, *self.lines, last]


@dataclass
class Made:
    """A call that was made, and what the trace of its project should hear of it."""

    result: SkillResult
    lines: list[Event]
    files: list[FileRecord]


@dataclass(frozen=True)
class Call:
    """One call of a skill.

    Args:
        name: of a skill of the catalogue, or of a plugin of the settings' owner.
        id: of the call; a skill that writes a row writes it once for each.
        as_agent: with a team agent's permissions and nobody's yes; for a project, what needs one is asked on the desk.
        approved: digest of the one call a person said yes to; None: they make this one themselves.
        workspace: the folder the call works in; else the project's, or the owner's scratch folder.
        project: whose trace hears of the call.
        trace_parent: where its span hangs; None: under the one under way, if there is one.
    """

    name: str
    arguments: Json
    id: str = field(default_factory=new_id)
    as_agent: bool = False
    approved: str | None = None
    workspace: Path | None = None
    project: "Place | None" = None
    trace_parent: str | None = None


def call(settings: Settings, skills: SkillRegistry, wanted: Call) -> SkillResult:
    """Makes a call, and records it with its project."""
    from orchestrator import outside

    made = make(settings, skills, wanted)
    if wanted.project is not None and made.lines:
        outside.record(settings, wanted.project, made.lines, made.files)
    return made.result


def make(
    settings: Settings,
    skills: SkillRegistry,
    wanted: Call,
    *,
    begin: Callable[[Checked], None] = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Made:
    """Makes a call; what needs a yes is on the desk when this returns, and what is to be recorded is returned.

    Args:
        begin: told right before the call runs.
        cancelled: whether the call should stop.
    """
    heard, project = _Heard(), wanted.project
    try:
        known = with_plugin(settings, skills, wanted.name)
    except SkillError as error:
        return Made(SkillResult(False, None, error.message, error.code), [], [])
    context = SkillContext(
        caller=Caller(
            kind="run" if wanted.as_agent else "person",
            owner_id=settings.owner,
            project_id=project.id if project else None,
            call_id=wanted.id,
        ),
        policy=Policy(agent=TEAM_PERMISSIONS, run={}) if wanted.as_agent else None,
        rehearsal=project.rehearsal if project else False,
        emit=heard.emit,
        begin=begin,
        cancelled=cancelled,
        **ports(settings, known, wanted.name, wanted.workspace or _folder(settings, project)),
    )
    authority = None if wanted.as_agent else Authority(wanted.approved)
    call = partial(known.invoke, wanted.name, wanted.arguments, context, authority)
    result = spans.called(wanted, known.find(wanted.name), call)
    if project is not None:
        if result.pending is not None:
            _ask(settings, project, wanted.id, result)
        heard.frame(wanted.id, _checked(known, wanted.name, wanted.arguments, context), result)
    return Made(result, heard.lines, heard.files)


def with_plugin(settings: Settings, skills: SkillRegistry, name: str) -> SkillRegistry:
    """The catalogue, and the tools of the owner's plugin that a name belongs to.

    Raises:
        SkillError: `not_allowed`: there is such a plugin, and it cannot run.
    """
    from orchestrator import plugins

    found = None if name in skills else plugins.skill(settings, name)
    if found is None or found.plugin is None:
        return skills
    from workers.plugins.tools import PluginTools
    from workers.sandbox.process import find_sandbox

    why: list[str] = []
    tools = PluginTools(settings, skills, find_sandbox)
    there = tools.skills(settings.owner, [found.plugin], lambda _plugin, _tool, reason: why.append(reason))
    if why:
        raise SkillError("not_allowed", f"the plugin {found.plugin} cannot be used: {why[0]}")
    return SkillRegistry([*skills, *there])


def ports(settings: Settings, skills: SkillRegistry, name: str, folder: Path) -> dict[str, Any]:
    """The ports one skill needs, and no other: each of them costs something to make."""
    found = skills.find(name)
    needs = found.needs if found else frozenset()
    if found is not None and found.plugin is not None:
        needs = _PLUGIN
    made: dict[str, Any] = {}
    if needs & _ROWS or (found is not None and found.rate):
        made |= _row_ports(settings, skills)
    if "workspace" in needs:
        from orchestrator.workspaces.jail import JailedWorkspace

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
