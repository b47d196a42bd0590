"""A small world for tests of the store: plans written through the real moves, and workers made of a few lines."""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Table, event, select, update

from orchestrator.planning import PlanRows
from orchestrator.records import Checkpoint, ChildRecord, Ending, Event, Fanout, Park, SignalRecord, Wake
from orchestrator.states import RUN_ENDED
from orchestrator.store import checkpoints, claims, endings, projects
from orchestrator.store import tables as t
from orchestrator.store.claims import Claim
from orchestrator.store.database import Database
from registry.agents import AgentDefinition
from registry.ids import new_id
from registry.jsontext import digest

LEASE_MS = 30_000
#: What every agent of this world is: nothing here executes it.
BODY: dict[str, Any] = {"id": "hand", "name": "Hand"}
YES = {"approved": True}


@dataclass
class Plan:
    """A project that has been written, by the keys of its tasks."""

    world: "World"
    id: str
    tasks: dict[str, str]
    #: Wake-ups that were marked with it.
    woken: Sequence[Wake] = ()

    def run(self, key: str) -> str:
        """The latest root run of a task."""
        query = select(t.runs.c.id).where(t.runs.c.task_id == self.tasks[key], t.runs.c.kind == "root")
        return str(self.world.all(query.order_by(t.runs.c.attempt.desc()))[0].id)

    def status(self, key: str) -> str:
        return str(self.world.row(t.tasks, self.tasks[key]).status)

    @property
    def row(self) -> Any:
        return self.world.row(t.projects, self.id)

    @property
    def trace(self) -> list[Any]:
        return self.world.all(select(t.events).where(t.events.c.trace_id == self.id).order_by(t.events.c.seq))

    def kinds(self, kind: str) -> list[Any]:
        return [line.data for line in self.trace if line.kind == kind]


@dataclass
class World:
    database: Database
    worker: str = "worker-1"
    statements: list[str] = field(default_factory=list)

    def plan(
        self,
        after: Mapping[str, Sequence[str]] | None = None,
        *,
        cap: int = 32,
        retries: int = 0,
        agents: Mapping[str, dict[str, Any]] | None = None,
        wake: bool = False,
        **about: Any,
    ) -> Plan:
        """A project with a task for each key, waiting for the tasks it names.

        Args:
            agents: its agents by id, the first of which does the tasks.
            wake: whether its first runs are marked at once.
            about: columns of the project.
        """
        after = after or {"a": []}
        agents = agents or {"hand": BODY}
        project_id, key = new_id(), digest(next(iter(agents.values())))
        ids = {name: new_id() for name in after}
        rows = PlanRows(
            team={"id": new_id(), "project_id": project_id, "lead_agent_id": "hand", "member_agent_ids": ["hand"]},
            members=[self._member(project_id, name, body) for name, body in agents.items()],
            tasks=[self._task(project_id, n, name, ids[name], key, retries) for n, name in enumerate(after)],
            depends=[(ids[name], ids[on], n) for name, on_all in after.items() for n, on in enumerate(on_all)],
            bodies={digest(body): body for body in agents.values()},
        )
        planner = AgentDefinition.model_validate(BODY)
        project = self._project(project_id, cap) | about
        for row in rows.tasks:
            row |= {"agent_id": next(iter(agents)), "agent_name": next(iter(agents))}
        woken = self.database.write(lambda c: projects.create(c, project, rows, planner=planner, wake=wake))
        return Plan(self, project_id, ids, woken)

    def claim(self, run_id: str, worker: str | None = None, lease_ms: int = LEASE_MS) -> Claim | None:
        return self.database.write(lambda c: claims.claim(c, run_id, worker or self.worker, lease_ms))

    def claimed(self, run_id: str, worker: str | None = None, lease_ms: int = LEASE_MS) -> Claim:
        claim = self.claim(run_id, worker, lease_ms)
        assert claim is not None, "the run could not be claimed"
        return claim

    def write(self, *batch: Checkpoint) -> set[str]:
        """Checkpoints in one transaction; gives the runs that are not the writer's any more."""
        return {run_id for run_id, _ in self.database.write(lambda c: checkpoints.write(c, batch, lease_ms=LEASE_MS))}

    def park(self, checkpoint: Checkpoint) -> list[Wake]:
        return self.database.write(lambda c: checkpoints.park(c, checkpoint))

    def end(self, claim: Claim, status: Any = "completed", **fields: Any) -> list[Wake]:
        ending = Ending(status, output="done") if status == "completed" else Ending(status, error=failure())
        return self.database.write(lambda c: endings.end(c, at(claim, ending=ending, **fields)))

    def fan_out(self, claim: Claim, count: int, *, sequential: bool = False, step: int = 1) -> list[str]:
        """Parks a run on so many children; gives their ids in order."""
        made = [child(position) for position in range(count)]
        fanout = Fanout("spread", step, depth=1, sequential=sequential, children=made)
        self.park(at(claim, park=Park("waiting", "children"), fanout=fanout, steps=step))
        return [one.id for one in made]

    def end_child(self, claim: Claim, **fields: Any) -> list[Wake]:
        ending = Ending("completed", result={"output": claim.run_id})
        return self.database.write(lambda c: endings.end(c, at(claim, ending=ending, **fields)))

    def row(self, table: Table, key: str) -> Any:
        return self.all(select(table).where(next(iter(table.primary_key)) == key))[0]

    def run(self, run_id: str) -> Any:
        return self.row(t.runs, run_id)

    def all(self, query: Any) -> list[Any]:
        with self.database.read() as connection:
            return list(connection.execute(query).all())

    def set(self, table: Table, key: str, **columns: Any) -> None:
        """Makes a row what no move would make it: stale."""
        statement = update(table).where(next(iter(table.primary_key)) == key).values(columns)
        self.database.write(lambda c: c.execute(statement))

    def counted(self, work: Callable[[], Any]) -> list[str]:
        """The statements that some work sends."""
        sent: list[str] = []

        def note(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
            sent.append(statement)

        event.listen(self.database.engine, "before_cursor_execute", note)
        try:
            work()
        finally:
            event.remove(self.database.engine, "before_cursor_execute", note)
        return sent

    @staticmethod
    def _project(project_id: str, cap: int) -> dict[str, Any]:
        return {
            "id": project_id,
            "owner_id": "local",
            "file_digest": "0",
            "title": "A world",
            "brief": "b",
            "permissions": {},
            "approvals": "park",
            "max_parallel": cap,
            "priority": 5,
            "skills": [],
            "workspace": project_id,
        }

    @staticmethod
    def _task(project_id: str, position: int, key: str, task_id: str, body: str, retries: int) -> dict[str, Any]:
        return {
            "id": task_id,
            "project_id": project_id,
            "position": position,
            "key": key,
            "title": key,
            "role": "hand",
            "instruction": "Do it.",
            "deliverables": [],
            "agent_id": "hand",
            "agent_name": "Hand",
            "skills": [],
            "tier": "standard",
            "definition_digest": body,
            "retries": retries,
        }

    @staticmethod
    def _member(project_id: str, name: str, body: dict[str, Any]) -> dict[str, Any]:
        return {
            "id": new_id(),
            "owner_id": "local",
            "project_id": project_id,
            "being_id": None,
            "key": name,
            "name": str(body.get("name", name)),
            "role": "hand",
            "definition_digest": digest(body),
        }


def failure(code: str = "unknown_path") -> dict[str, Any]:
    return {"code": code, "message": "it broke"}


def at(claim: Claim, number: int | None = 1, **fields: Any) -> Checkpoint:
    """A checkpoint of a claimed run, with one line for the trace."""
    lines = fields.pop("events", None)
    if lines is None:
        lines = [Event("node.completed", {"step": number}, run_id=claim.run_id)]
    return Checkpoint(claim.run_id, claim.fence, number=number, node_id="next", events=lines, **fields)


def child(position: int) -> ChildRecord:
    return ChildRecord(
        id=new_id(),
        kind="spawn",
        position=position,
        agent_id="hand",
        agent_name="Hand",
        definition_digest=digest(BODY),
        input=position,
    )


def decision(life_ms: int | None = None) -> SignalRecord:
    """A question about one call."""
    schema = {"type": "object", "properties": {"approved": {"type": "boolean"}}}
    return SignalRecord(new_id(), "decision", "May it?", schema=schema, digest="d", life_ms=life_ms)


def together(*works: Callable[[], Any]) -> list[Any]:
    """Runs all of them at one moment; gives what each returned or raised, in order."""
    gate = threading.Barrier(len(works))

    def one(work: Callable[[], Any]) -> Any:
        gate.wait()
        try:
            return work()
        except Exception as error:
            return error

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(one, works))


def live(world: World, plan: Plan) -> list[Any]:
    """The runs of a project that have not ended."""
    query = select(t.runs).where(t.runs.c.project_id == plan.id, t.runs.c.status.not_in(sorted(RUN_ENDED)))
    return world.all(query.order_by(t.runs.c.id))
