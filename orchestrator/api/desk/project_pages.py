"""Projects: the list, and each as a picture, its runs, a timeline, its trace, its cost and its files."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from fastapi import Query, Request
from sqlalchemy import Connection, select
from starlette.responses import Response

from orchestrator import lookup, views
from orchestrator.api.auth import Asking, Person
from orchestrator.api.desk import (
    opened_files,
    plan_column,
    plan_picture,
    previews,
    questions,
    run_trees,
    spending,
    timeline,
    traces,
)
from orchestrator.api.desk.rendering import page
from orchestrator.api.desk.routing import router as make_router
from orchestrator.api.desk.routing import shell
from orchestrator.api.parts import cursor_of, place_of
from orchestrator.api.sending import attachment
from orchestrator.states import PROJECT_ENDED, TASK_ENDED
from orchestrator.store import events
from orchestrator.store.tables import checkpoints, files, projects, tasks
from orchestrator.terminal import scene as scenes
from orchestrator.terminal.activity import Activity
from orchestrator.terminal.scene import Scene
from registry.errors import Refused
from registry.jsontext import digest

router = make_router()

#: Projects of one page.
PAGE: Final = 30
#: Last lines of a trace that say what each run does right now.
_LATELY: Final = 400
#: Checkpoints that a fork may choose from, the latest.
_CUTS: Final = 60


@dataclass(frozen=True)
class Looked:
    """One look at a project: what every page of it shows."""

    scene: Scene
    activity: Activity
    #: Number of the last line of its trace, from before everything else was read.
    seq: int
    titles: dict[str, str]

    def facts(self, tab: str) -> dict[str, Any]:
        ended = self.scene.ended
        stream = "/pulse?of=project" if ended else f"/api/studio/projects/{self.scene.id}/events?after={self.seq}"
        return {"project": self.scene, "activity": self.activity, "tab": tab, "stream": stream, "titles": self.titles}


@router.get("/")
def project_list(
    asking: Person,
    status: Annotated[str | None, Query(max_length=20)] = None,
    cursor: Annotated[str | None, Query(max_length=200)] = None,
) -> Response:
    wanted = status if status in ("running", "completed", "partial", "failed", "cancelled", "planning") else None
    with asking.database.read() as connection:
        found = views.project_list(
            connection, asking.owner, status=wanted, limit=PAGE, after=place_of(cursor, int, str)
        )
        waits = _waiting(connection, [one["id"] for one in found])
    last = found[-1] if len(found) == PAGE else None
    following = last and cursor_of(last["createdAt"], last["id"])
    facts = {"projects": found, "waits": waits, "status": wanted, "next": following, "first": cursor is None}
    return page("projects.html", shell(asking, "projects", **facts))


@router.get("/projects/{project_id}")
def overview(asking: Person, project_id: str) -> Response:
    """The plan as a picture and as a list, and what of it waits for a person."""
    with asking.database.read() as connection:
        looked = _look(connection, asking, project_id)
        facts = {
            "picture": plan_picture.picture(looked.scene),
            "column": plan_column.column(looked.scene),
            "cards": questions.cards(connection, looked.scene.signals),
            "unknown": views.unknown(connection, looked.scene.id),
            **_asked(connection, looked.scene),
        }
    return page("overview.html", shell(asking, "projects", **looked.facts("overview"), **facts))


@router.get("/projects/{project_id}/tasks/{key}")
def task(asking: Person, project_id: str, key: str) -> Response:
    """One task: what was asked, what came of it, its runs."""
    with asking.database.read() as connection:
        looked = _look(connection, asking, project_id)
        found = looked.scene.tasks.get(key)
        if found is None:
            raise Refused(f"the project has no task {key[:80]!r}", code="unknown_task")
        t = tasks.c
        columns = (t.instruction, t.expected_output, t.deliverables, t.skills, t.tier, t.role, t.output, t.agent_id)
        row = connection.execute(select(*columns).where(t.id == found.id)).one()
        roots, beyond = run_trees.read(connection, looked.scene.id, found.id)
        ended = found.status in TASK_ENDED
        text, written = previews.output(row.output)
        shown, more = previews.beginning(text)
        facts = {
            "task": found,
            "row": row,
            "output": None if row.output is None else {"text": shown, "cut": more, "all": len(text), "words": written},
            "roots": roots,
            "beyond": beyond,
            "after": looked.scene.plan.depends_on[key],
            "before": [other for other, keys in looked.scene.plan.depends_on.items() if key in keys],
            "written": _written(connection, looked.scene.id, found.id),
            "cuts": _cuts(connection, roots[-1].id) if roots and ended else [],
            "cards": questions.cards(connection, [s for s in looked.scene.signals if s.get("taskId") == found.id]),
        }
    return page("task.html", shell(asking, "projects", **looked.facts("overview"), **facts))


@router.get("/projects/{project_id}/tasks/{key}/output")
def task_output(asking: Person, project_id: str, key: str) -> Response:
    """All that a task came to, as a file: its page shows a beginning."""
    with asking.database.read() as connection:
        whole = lookup.project_id(connection, project_id, asking.owner)
        mine = (tasks.c.project_id == whole) & (tasks.c.key == key) & tasks.c.output.is_not(None)
        row = connection.execute(select(tasks.c.output).where(mine)).one_or_none()
    if row is None:
        raise Refused(f"no task {key[:80]!r} of the project has an output", code="unknown_task")
    text, written = previews.output(row.output)
    headers = {
        "content-disposition": attachment(f"{key}.{'txt' if written else 'json'}"),
        "content-security-policy": "sandbox; default-src 'none'",
    }
    return Response(text.encode(errors="backslashreplace"), headers=headers, media_type="application/octet-stream")


@router.get("/projects/{project_id}/runs")
def run_list(asking: Person, project_id: str) -> Response:
    with asking.database.read() as connection:
        looked = _look(connection, asking, project_id)
        roots, beyond = run_trees.read(connection, looked.scene.id)
    facts = looked.facts("runs") | {"roots": roots, "beyond": beyond}
    return page("runs.html", shell(asking, "projects", **facts))


@router.get("/projects/{project_id}/timeline")
def timeline_page(asking: Person, project_id: str) -> Response:
    with asking.database.read() as connection:
        looked = _look(connection, asking, project_id)
        drawn = timeline.read(connection, looked.scene.id, looked.titles, looked.scene.now)
    facts = looked.facts("timeline") | {"timeline": drawn, "words": timeline.WORDS}
    return page("timeline.html", shell(asking, "projects", **facts))


@router.get("/projects/{project_id}/trace")
def trace(
    request: Request,
    asking: Person,
    project_id: str,
    show: Annotated[str, Query(max_length=20)] = "story",
    task: Annotated[str, Query(max_length=36)] = "",
    run: Annotated[str, Query(max_length=36)] = "",
    after: Annotated[int, Query(ge=0, le=2**62)] = 0,
) -> Response:
    """A page of lines; asked for by the page itself, only the lines that follow."""
    asked = traces.Asked(show, task or None, run or None, after)
    with asking.database.read() as connection:
        looked = _look(connection, asking, project_id)
        lines, following = traces.read(connection, looked.scene.id, asked, looked.titles)
    facts = looked.facts("trace") | {"lines": lines, "following": following, "asked": asked, "groups": traces.GROUPS}
    begun = looked.scene.created_at
    more = request.query_params.get("part") == "lines"
    template = "trace_lines.html" if more else "trace.html"
    return page(template, shell(asking, "projects", **facts, begun=begun, inside=more))


@router.get("/projects/{project_id}/events/{seq}")
def event(asking: Person, project_id: str, seq: int) -> Response:
    """The data of one line, for whoever unfolds it."""
    with asking.database.read() as connection:
        whole = lookup.project_id(connection, project_id, asking.owner)
        found = traces.one(connection, whole, seq) if 0 < seq < 2**62 else None
    if found is None:
        raise Refused(f"the trace has no line {seq}", code="unknown_event")
    return page("event.html", {"event": found})


@router.get("/projects/{project_id}/cost")
def cost(asking: Person, project_id: str) -> Response:
    with asking.database.read() as connection:
        looked = _look(connection, asking, project_id)
        facts = {
            "agents": spending.by_agent(connection, looked.scene.id),
            "models": spending.by_model(connection, looked.scene.id),
        }
    return page("cost.html", shell(asking, "projects", **looked.facts("cost"), **facts))


@router.get("/projects/{project_id}/files")
def file_list(asking: Person, project_id: str) -> Response:
    with asking.database.read() as connection:
        looked = _look(connection, asking, project_id)
        found = views.file_list(connection, looked.scene.id)
    promised = {path for one in looked.scene.tasks.values() for path in one.deliverables}
    found.sort(key=lambda one: (one["path"].startswith("inputs/"), one["path"] not in promised, one["path"]))
    facts = looked.facts("files") | {"files": found, "promised": promised}
    return page("files.html", shell(asking, "projects", **facts))


@router.get("/projects/{project_id}/files/{path:path}")
def file(asking: Person, project_id: str, path: str) -> Response:
    """A file with a preview of what it holds."""
    with asking.database.read() as connection:
        looked = _look(connection, asking, project_id)
        row = connection.execute(
            select(files).where(files.c.project_id == looked.scene.id, files.c.path == path)
        ).one_or_none()
    facts = opened_files.shown(Path(looked.scene.workspace), path, f"/projects/{looked.scene.id}")
    return page("file.html", shell(asking, "projects", **looked.facts("files"), **facts, row=row))


@router.get("/projects/{project_id}/pictures/{path:path}")
def picture(asking: Person, project_id: str, path: str) -> Response:
    """A picture of the workspace, for a page to show."""
    with asking.database.read() as connection:
        whole = lookup.project_id(connection, project_id, asking.owner)
        scene = scenes.read(connection, whole, asking.settings)
    return opened_files.picture(Path(scene.workspace), path)


def _look(connection: Connection, asking: Asking, project_id: str) -> Looked:
    whole = lookup.project_id(connection, project_id, asking.owner)
    seq = events.last(connection, whole)
    scene = scenes.read(connection, whole, asking.settings)
    activity = Activity()
    if scene.status not in PROJECT_ENDED:
        activity.take(events.after(connection, whole, max(0, seq - _LATELY), 2 * _LATELY))
    return Looked(scene, activity, seq, {one.id: one.title for one in scene.tasks.values()})


def _asked(connection: Connection, scene: Scene) -> dict[str, Any]:
    """The brief, and the plan while it waits for a person, with the version a start is bound to."""
    p = projects.c
    row = connection.execute(select(p.brief, p.held, p.plan).where(p.id == scene.id)).one()
    plan = row.plan if row.held and scene.status == "planning" else None
    return {"brief": row.brief, "plan": plan, "version": plan and digest(plan)}


def _waiting(connection: Connection, ids: list[str]) -> dict[str, int]:
    """How many open questions each project has."""
    from sqlalchemy import func

    from orchestrator.store.tables import signals

    query = (
        select(signals.c.project_id, func.count())
        .where(signals.c.project_id.in_(ids), signals.c.status == "open")
        .group_by(signals.c.project_id)
    )
    return {row[0]: row[1] for row in connection.execute(query)}


def _written(connection: Connection, project_id: str, task_id: str) -> list[Any]:
    columns = (files.c.path, files.c.bytes)
    mine = (files.c.project_id == project_id) & (files.c.task_id == task_id)
    return list(connection.execute(select(*columns).where(mine).order_by(files.c.path)).all())


def _cuts(connection: Connection, run_id: str) -> list[Any]:
    """Checkpoints of a run from which a fork can go on, the latest first."""
    c = checkpoints.c
    usable = (c.run_id == run_id) & c.event_seq.is_not(None) & c.node_id.is_not(None)
    query = select(c.number, c.event_seq, c.node_id, c.at).where(usable).order_by(c.number.desc()).limit(_CUTS)
    return list(connection.execute(query).all())
