"""The producer: checks a project whole, stores it in one transaction, wakes the workers.

    python -m orchestrator.producer project.yaml

Nothing is written before everything is known to be good, and a submit that fails leaves nothing behind.
"""

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, get_args

from sqlalchemy import Connection, Row, select
from sqlalchemy.exc import IntegrityError

from orchestrator import crashpoints, events, held, known, planner, planning, queue, tracing
from orchestrator.records import Wake
from orchestrator.settings import Settings, get_settings
from orchestrator.store import audit, projects
from orchestrator.store.database import get_database, prepare
from orchestrator.store.tables import tasks as tasks_table
from registry.agents import AgentDefinition
from registry.base import Json
from registry.errors import Fault, WrongUse
from registry.graph.checks.known import Registries
from registry.graph.targets import AgentCard
from registry.ids import new_id
from registry.permissions import Mode
from registry.plans import PlanLimits
from registry.projects import reading
from registry.projects.inputs import Copied, copy_inputs
from registry.projects.reading import Project
from registry.skills import catalogue
from registry.skills.registry import SkillRegistry

MICRO = 1_000_000


@dataclass(frozen=True)
class Submitted:
    """A project as it was stored."""

    project_id: str
    status: str
    #: Task key -> task id.
    tasks: dict[str, str]
    #: False: the client key had been used for this very project before.
    created: bool

    def to_json(self) -> dict[str, Json]:
        return {"id": self.project_id, "status": self.status, "tasks": self.tasks}


def submit(
    source: str | Path,
    *,
    settings: Settings | None = None,
    key: str | None = None,
    mode: str | None = None,
    rehearse: bool = False,
    plan_only: bool = False,
) -> Submitted:
    """Stores a project and starts it.

    Args:
        source: a project file, a `.md` or `.txt` file with a brief, or the brief itself.
        key: client key; the same key and file give the same project.
        mode: run mode for the whole project, over the file's.
        rehearse: let the stand-in play the model and carry no world call out.
        plan_only: let the plan wait until a person starts it.

    Raises:
        WrongUse: with every fault found; nothing was written.
    """
    settings = settings or get_settings()
    skills = catalogue.build()
    found, named = read(source, settings, skills)
    return store(settings, skills, found, named, key=key, mode=mode, rehearse=rehearse, plan_only=plan_only)


def store(
    settings: Settings,
    skills: SkillRegistry,
    found: Project,
    named: dict[str, AgentDefinition],
    *,
    key: str | None = None,
    mode: str | None = None,
    rehearse: bool = False,
    plan_only: bool = False,
    generator_id: str | None = None,
) -> Submitted:
    """Stores and starts a project that `read` or `checked` found good.

    Args:
        generator_id: the generator it is made of, for the audit log.

    Raises:
        WrongUse: the mode or the key is of no use here; nothing was written.
    """
    if mode is not None and mode not in get_args(Mode):
        fault = Fault("mode", "unknown_mode", f"{mode!r} is no mode; use one of {', '.join(get_args(Mode))}")
        raise WrongUse("the mode is not known", faults=[fault])
    _need_model(settings, found, rehearse=rehearse)
    prepare(settings)
    client_key = key or found.file.key
    if client_key and (same := _earlier(settings, client_key, found.digest)):
        return same
    row = _row(settings, found, client_key, mode=mode, rehearse=rehearse) | {"held": plan_only}
    facts = {"officina.project.id": row["id"], "officina.project.tasks": len(found.file.tasks)}
    with tracing.span("submit_project", kind="producer", attributes=facts) as span:
        return _store(settings, skills, found, named, row | {"trace_parent": span.context}, generator_id)


def check(source: str, *, settings: Settings | None = None, rehearse: bool = False) -> None:
    """Judges a project as `submit` would, and writes nothing: for whoever has something to start before it.

    Raises:
        WrongUse: with every fault found.
    """
    settings = settings or get_settings()
    found, _ = read(source, settings, catalogue.build())
    _need_model(settings, found, rehearse=rehearse)


def read(source: str | Path, settings: Settings, skills: SkillRegistry) -> tuple[Project, dict[str, AgentDefinition]]:
    """The project of a file or brief, checked whole against what there is here, and the agents its tasks name.

    Raises:
        WrongUse: with every fault found.
    """
    return checked(lambda known, limits: reading.read_submission(str(source), known, limits), settings, skills)


def checked(
    read_it: Callable[[Registries, reading.Limits], Project], settings: Settings, skills: SkillRegistry
) -> tuple[Project, dict[str, AgentDefinition]]:
    """The same for whatever reads a project, given what there is here.

    Raises:
        WrongUse: with every fault found.
    """
    there = known.registries(settings, skills, stand_in=settings.stand_in or not settings.has_model)
    presets = known.load_presets(settings, there)
    limits = reading.Limits(plan=PlanLimits(tasks=settings.limits.project_tasks))
    saved = known.saved_agents(settings)
    cards = (*(AgentCard(agent.id, agent.name) for agent in saved.values()), *presets.cards)
    found = read_it(replace(there, agents=cards), limits)
    return found, planning.named_agents(found.file.tasks, found.agents, presets, saved)


def _store(
    settings: Settings,
    skills: SkillRegistry,
    found: Project,
    named: dict[str, AgentDefinition],
    row: dict[str, Any],
    generator_id: str | None,
) -> Submitted:
    project_id, client_key = row["id"], row["client_key"]
    registered = known.usable(settings, skills)
    row["skills"] = sorted(registered)
    rows = None
    if found.file.tasks and row["held"]:
        row["plan"] = held.plan_of(found)
    elif found.file.tasks:
        saved = known.reusable_agents(settings)
        rows = planning.rows_of(
            project_id, settings.owner, found.file.tasks, named, registered, saved=saved, souls=settings.souls
        )
    folder = settings.workspaces / project_id
    copied = _workspace(folder, found)
    maker = planner.planner(skills)
    queue.warm(settings)
    wake, inputs = settings.broker is not None, [_file(one) for one in copied]

    def write(connection: Connection) -> list[Wake]:
        facts: dict[str, Json] = {"title": found.file.title, "mode": row["mode"], "generatorId": generator_id}
        whose = {"owner_id": settings.owner, "by": settings.by, "project_id": project_id}
        audit.record(connection, act="project.submitted", subject=project_id, **whose, **facts)
        return projects.create(connection, row, rows, planner=maker, inputs=inputs, wake=wake)

    try:
        ready = get_database(settings).write(write)
    except IntegrityError:
        # Two submits with one key at once: the other one won.
        shutil.rmtree(folder, ignore_errors=True)
        if client_key and (same := _earlier(settings, client_key, found.digest)):
            return same
        raise
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    crashpoints.reached("submitted")
    if wake:  # else somebody advances it some day
        queue.send(settings, ready)
    else:
        queue.advance(settings, project_id, found.file.title)
    events.publish(settings, project_id, 0)
    keys = {task["key"]: task["id"] for task in rows.tasks} if rows else {}
    return Submitted(project_id, "running" if rows else "planning", keys, created=True)


def _need_model(settings: Settings, found: Project, *, rehearse: bool) -> None:
    if settings.has_model or settings.stand_in or rehearse or found.script is not None:
        return
    words = (
        "no model is configured and no stand-in was asked for: set OFFICINA_MODELS__STANDARD__NAME and "
        "OFFICINA_MODEL_API_KEY (or OFFICINA_MODEL_BASE_URL) to use a model, or give the project a `script`, "
        "submit with --rehearse, or set OFFICINA_STAND_IN=true to let the stand-in play it"
    )
    raise WrongUse(words, code="no_model", faults=[Fault("", "no_model", words)])


def _earlier(settings: Settings, client_key: str, digest: str) -> Submitted | None:
    """The project of a used key.

    Raises:
        WrongUse: `key_conflict` when it was another file.
    """
    with get_database(settings).read() as connection:
        row = projects.by_key(connection, settings.owner, client_key)
        if row is None:
            return None
        if row.file_digest != digest:
            words = f"the key {client_key!r} was used for another project ({row.id}); take a new key"
            raise WrongUse(words, code="key_conflict", faults=[Fault("key", "key_conflict", words)])
        return _submitted(connection, row)


def _submitted(connection: Connection, row: Row[Any]) -> Submitted:
    query = select(tasks_table.c.key, tasks_table.c.id).where(tasks_table.c.project_id == row.id)
    keys = {task.key: task.id for task in connection.execute(query.order_by(tasks_table.c.position))}
    return Submitted(row.id, row.status, keys, created=False)


def _workspace(folder: Path, found: Project) -> list[Copied]:
    """Makes the project's folder and copies its inputs; nothing stays when one cannot be copied."""
    folder.mkdir(parents=True)
    try:
        return copy_inputs(found.inputs, folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _row(
    settings: Settings, found: Project, client_key: str | None, *, mode: str | None, rehearse: bool
) -> dict[str, Any]:
    file, project_id = found.file, new_id()
    cap = file.budget.max_cost_usd
    return {
        "id": project_id,
        "owner_id": settings.owner,
        "client_key": client_key,
        "file_digest": found.digest,
        "title": file.title,
        "brief": file.brief or "",
        "mode": mode or file.mode,
        "permissions": dict(file.permissions),
        "approvals": file.approvals,
        "max_cost_micro": int((Decimal(str(cap)) if cap is not None else settings.project_cost_usd) * MICRO),
        "max_parallel": file.budget.max_parallel or settings.limits.parallel_tasks,
        "owner_parallel": settings.limits.owner_parallel,
        "priority": file.priority,
        "reuses": True,
        "souls": settings.souls,
        "script": _script(settings, found),
        "rehearsal": rehearse,
        "workspace": project_id,
    }


def _script(settings: Settings, found: Project) -> dict[str, Json] | None:
    """What the stand-in plays; an empty script where the settings ask for it, whatever the workers' settings say."""
    if found.script is not None:
        return found.script.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return {} if settings.stand_in else None


def _file(copied: Copied) -> dict[str, Any]:
    return {"path": copied.path, "bytes": copied.bytes, "sha256": copied.sha256}


def main(arguments: list[str]) -> int:
    """`python -m orchestrator.producer FILE`: prints the project id, or one line a fault."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m orchestrator.producer PROJECT_FILE\n")
        return 2
    try:
        made = submit(arguments[0])
    except WrongUse as error:
        sys.stderr.writelines(f"{fault}\n" for fault in error.faults)
        return 2
    sys.stdout.write(made.project_id + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
