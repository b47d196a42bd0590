"""What there is besides projects: agents and their graphs, skills and packs, schedules, workers."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import func, select
from starlette.responses import Response

from orchestrator import lookup, saved, timetable
from orchestrator.api.auth import Asking, Person
from orchestrator.api.desk.rendering import page, said
from orchestrator.api.desk.routing import router as make_router
from orchestrator.api.desk.routing import shell
from orchestrator.api.shared import skills
from orchestrator.known import load_presets, playbooks, registries
from orchestrator.states import RUN_ENDED
from orchestrator.store.database import now_ms
from orchestrator.store.tables import agents, definitions, projects, runs, workers
from orchestrator.store.workers import SILENT_MS
from orchestrator.wiring import unwired
from registry.agents import AgentDefinition
from registry.citizens import CITIZENS
from registry.errors import Refused
from registry.graph.drawing.svg import draw
from registry.packs import PACKS
from registry.presets import Presets
from registry.queues import DEFAULT

router = make_router()

#: Rows of one page.
MOST: Final = 200
_PICTURE: Final = {"content-security-policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'"}


@dataclass(frozen=True)
class Shown:
    """An agent, wherever it comes from, and where its pages are."""

    agent: AgentDefinition
    at: str
    source: str
    lacks: tuple[str, ...] = ()
    #: Of a citizen nobody here has taken on yet: its id.
    adopt: str | None = None


@router.get("/agents")
def agent_list(asking: Person) -> Response:
    mine = [_saved(one) for one in saved.agent_list(asking.settings, limit=MOST, after=None)]
    presets = _presets(asking)
    shipped = [_preset(presets, id_) for id_ in presets]
    citizens = [_citizen(one) for one in saved.citizen_list(asking.settings) if one["agentId"] is None]
    facts = {"mine": mine, "citizens": citizens, "shipped": shipped, "faults": presets.faults}
    return page("agents.html", shell(asking, "agents", **facts))


@router.get("/agents/{agent_id}")
def agent(asking: Person, agent_id: str) -> Response:
    return page("agent.html", shell(asking, "agents", shown=_agent(asking, agent_id), project=None))


@router.post("/citizens/{citizen_id}/adopt")
def adopt(asking: Person, citizen_id: str) -> Response:
    """Takes a citizen on."""
    kept, _ = saved.adopt_citizen(asking.settings, skills(), citizen_id)
    return said("Adopted: projects with this role are given to it", go=f"/agents/{kept['id']}")


@router.get("/agents/{agent_id}/graph.svg")
def graph(asking: Person, agent_id: str) -> Response:
    """The agent's graph as a picture."""
    return _drawn(_agent(asking, agent_id).agent)


@router.get("/projects/{project_id}/agents/{agent_id}")
def member(asking: Person, project_id: str, agent_id: str) -> Response:
    """An agent of a project's team."""
    shown, project = _member(asking, project_id, agent_id)
    return page("agent.html", shell(asking, "projects", shown=shown, project=project))


@router.get("/projects/{project_id}/agents/{agent_id}/graph.svg")
def member_graph(asking: Person, project_id: str, agent_id: str) -> Response:
    return _drawn(_member(asking, project_id, agent_id)[0].agent)


@router.get("/library")
def library(asking: Person) -> Response:
    found = list(skills())
    missing = unwired(asking.settings, found)
    families: dict[str, list[Any]] = {}
    for one in found:
        if one.catalogued:
            families.setdefault(one.name.partition(".")[0], []).append(one)
    documents = playbooks(asking.settings)
    facts = {
        "families": families,
        "missing": missing,
        "packs": list(PACKS.values()),
        "documents": [documents[name] for name in documents],
    }
    return page("library.html", shell(asking, "library", **facts))


@router.get("/schedules")
def schedule_list(asking: Person) -> Response:
    found = timetable.listed(asking.settings, limit=MOST, after=None)
    return page("schedules.html", shell(asking, "schedules", schedules=found))


@router.get("/workers")
def worker_list(asking: Person) -> Response:
    """Processes that carry runs, and how much waits for them."""
    w, r = workers.c, runs.c
    here = w.stopped_at.is_(None) & (w.seen_at > now_ms() - 10 * SILENT_MS)
    of_mine = r.project_id.in_(select(projects.c.id).where(projects.c.owner_id == asking.owner))
    states = (
        select(r.status, r.waiting_on, func.count().label("many"))
        .where(of_mine, r.status.not_in(sorted(RUN_ENDED)))
        .group_by(r.status, r.waiting_on)
        .order_by(r.status, r.waiting_on)
    )
    with asking.database.read() as connection:
        found = connection.execute(select(workers, now_ms().label("now")).where(here).order_by(w.host, w.pid)).all()
        counts = connection.execute(states).all()
        oldest = select(func.min(r.created_at)).where(of_mine, r.status == "queued")
        waits_since = connection.execute(oldest).scalar()
        depth = select(r.queue, func.count().label("many")).where(of_mine, r.status == "queued").group_by(r.queue)
        waiting = {row.queue or DEFAULT: row.many for row in connection.execute(depth)}
    facts = {
        "workers": found,
        "counts": counts,
        "waits_since": waits_since,
        "queues": _queues(found, waiting),
        "silent_ms": SILENT_MS,
        "flower": asking.settings.stack.get("flowerUrl"),
    }
    return page("workers.html", shell(asking, "workers", **facts))


def _queues(found: Sequence[Any], waiting: Mapping[str, int]) -> list[tuple[str, int, int]]:
    """(name, runs of the owner that wait in it, processes that serve it) of each queue there is anything to say of."""
    served = Counter(name for row in found for name in (row.queues or [DEFAULT]))
    return [(name, waiting.get(name, 0), served[name]) for name in sorted({*served, *waiting})]


def _agent(asking: Asking, agent_id: str) -> Shown:
    presets = _presets(asking)
    if agent_id in presets:
        return _preset(presets, agent_id)
    if agent_id in CITIZENS:
        return _citizen(saved.citizen(asking.settings, agent_id))
    return _saved(saved.agent(asking.settings, agent_id))


def _saved(found: dict[str, Any]) -> Shown:
    known = AgentDefinition.model_fields
    names = set(known) | {field.alias for field in known.values() if field.alias}
    body = {name: value for name, value in found.items() if name in names}
    return Shown(AgentDefinition.model_validate(body), f"/agents/{found['id']}", "yours")


def _citizen(found: dict[str, Any]) -> Shown:
    id_ = str(found["id"])
    free = found["agentId"] is None
    return Shown(CITIZENS[id_].agent(), f"/agents/{id_}", "a citizen", adopt=id_ if free else None)


def _presets(asking: Asking) -> Presets:
    settings = asking.settings
    return load_presets(settings, registries(settings, skills(), stand_in=settings.stand_in or not settings.has_model))


def _preset(presets: Presets, id_: str) -> Shown:
    one = presets[id_]
    lacks = tuple(finding.message for finding in one.lacks)
    return Shown(one.agent, f"/agents/{id_}", "ships with Officina" if one.shipped else "from your folder", lacks)


def _member(asking: Asking, project_id: str, agent_id: str) -> tuple[Shown, Any]:
    with asking.database.read() as connection:
        whole = lookup.project_id(connection, project_id, asking.owner)
        project = connection.execute(select(projects.c.id, projects.c.title).where(projects.c.id == whole)).one()
        query = (
            select(definitions.c.body)
            .join(agents, agents.c.definition_digest == definitions.c.digest)
            .where(agents.c.project_id == whole, agents.c.key == agent_id)
        )
        body = connection.execute(query).scalar()
    if body is None:
        raise Refused(f"the team has no agent {agent_id[:80]!r}", code="unknown_agent")
    definition = AgentDefinition.model_validate(body)
    return Shown(definition, f"/projects/{whole}/agents/{agent_id}", "of this project's team"), project


def _drawn(found: AgentDefinition) -> Response:
    return Response(draw(found), media_type="image/svg+xml", headers=_PICTURE)
