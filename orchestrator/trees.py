"""Runs as trees: every run of a project for `show`, and what a fan-out under way looks like right now.

Reads are a fixed number of statements, and the live view reads no more rows than can be at work at once, however many
children there are.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import Connection, RowMapping, Text, bindparam, func, or_, select, type_coerce

from orchestrator.states import RUN_ENDED
from orchestrator.store.tables import runs
from registry.base import Json

#: Children at work that one look reads.
MOST: Final = 200
#: Characters read of an item, which may be large.
ITEM_CHARS: Final = 80


@dataclass(frozen=True)
class Child:
    """A child that has begun and not ended."""

    id: str
    #: `spawn` or `item`.
    kind: str
    #: Its place among the calls or items, from 0.
    position: int
    agent: str
    status: str
    waiting_on: str | None
    node: str | None
    steps: int
    #: The beginning of a map's item, as JSON; None for a spawned child.
    item: str | None = None
    fanout: "Fanout | None" = None


@dataclass
class Fanout:
    """The children a run waits for: how many in each state, and in order those at work."""

    counts: Counter[str] = field(default_factory=Counter)
    at_work: list[Child] = field(default_factory=list)

    @property
    def total(self) -> int:
        return self.counts.total()

    @property
    def ended(self) -> int:
        return sum(self.counts[status] for status in RUN_ENDED)


_PLACES: Final = (runs.c.id, runs.c.parent_id, runs.c.parent_step, runs.c.position, runs.c.task_id, runs.c.kind)
_FACTS: Final = (
    *(runs.c.status, runs.c.waiting_on, runs.c.due_at, runs.c.error, runs.c.steps, runs.c.attempt, runs.c.queue),
    *(runs.c.cost_micro, runs.c.cost_incomplete),
)
#: Written once: to make a statement anew costs more than to send it.
_OF_PROJECT: Final = select(*_PLACES, *_FACTS).where(runs.c.project_id == bindparam("project"))


def read(connection: Connection, project_id: str) -> Sequence[RowMapping]:
    """Every run of a project, with what it has cost."""
    return connection.execute(_OF_PROJECT, {"project": project_id}).mappings().all()


def by_task(rows: Sequence[RowMapping]) -> dict[str | None, list[Json]]:
    """Root runs of each task in the order they were made, children in the order of their calls or items within them.

    Under None stand the runs of no task: those that made the plan.
    """
    made = {row["id"]: _run(row) for row in rows}
    roots: dict[str | None, list[Json]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row["parent_step"] or 0, row["position"] or 0, row["id"])):
        siblings = made[row["parent_id"]]["children"] if row["parent_id"] in made else roots[row["task_id"]]
        siblings.append(made[row["id"]])
    return dict(roots)


def under_way(connection: Connection, project_id: str) -> dict[str, Fanout]:
    """The fan-outs that runs of a project wait for, by the id of the parent."""
    child, parent = runs.alias(), runs.alias()
    current = (child.c.parent_id == parent.c.id) & (child.c.parent_step == parent.c.steps)
    waits = (parent.c.project_id == project_id) & (parent.c.status == "waiting") & (parent.c.waiting_on == "children")
    counts = (
        select(parent.c.id, child.c.status, func.count().label("many"))
        .select_from(parent)
        .join(child, current)
        .where(waits)
        .group_by(parent.c.id, child.c.status)
    )
    found: dict[str, Fanout] = defaultdict(Fanout)
    for row in connection.execute(counts):
        found[row.id].counts[row.status] = row.many
    return _with_children(dict(found), _at_work(connection, project_id)) if found else {}


def _at_work(connection: Connection, project_id: str) -> list[Any]:
    r = runs.c
    begun = or_(r.status == "running", (r.status == "waiting") & (r.waiting_on != "turn"))
    columns = (r.id, r.parent_id, r.kind, r.position, r.agent_name, r.status, r.waiting_on, r.node_id, r.steps)
    item = func.substr(type_coerce(r.item, Text), 1, ITEM_CHARS).label("item_head")
    query = select(*columns, item).where(r.project_id == project_id, r.parent_id.is_not(None), begun)
    # Oldest first: their parents are among them before their children are.
    return list(connection.execute(query.order_by(r.depth, r.position, r.id).limit(MOST)).all())


def _with_children(found: dict[str, Fanout], rows: Iterable[Any]) -> dict[str, Fanout]:
    """Hangs each child at work under its fan-out, with the fan-out it waits for itself."""
    for row in rows:
        if row.parent_id in found:
            one = Child(
                id=row.id,
                kind=row.kind,
                position=row.position or 0,
                agent=row.agent_name,
                status=row.status,
                waiting_on=row.waiting_on,
                node=row.node_id,
                steps=row.steps,
                item=row.item_head if row.kind == "item" else None,
                fanout=found.get(row.id),
            )
            found[row.parent_id].at_work.append(one)
    return found


def walk(fanout: Fanout, depth: int = 0) -> Iterator[tuple[int, Child]]:
    """Every child at work below a run, each before what is below itself, with its depth from 0."""
    for child in fanout.at_work:
        yield depth, child
        if child.fanout is not None:
            yield from walk(child.fanout, depth + 1)


def of_root(fanouts: Mapping[str, Fanout], run_ids: Iterable[str]) -> Fanout | None:
    """The fan-out that one of these runs waits for."""
    return next((fanouts[run_id] for run_id in run_ids if run_id in fanouts), None)


def _run(row: RowMapping) -> dict[str, Json]:
    return {
        "id": row["id"],
        "parentId": row["parent_id"],
        "kind": row["kind"],
        "status": row["status"],
        "on": row["waiting_on"],
        "code": row["error"] and row["error"].get("code"),
        "steps": row["steps"],
        "attempt": row["attempt"],
        **({"queue": row["queue"]} if row["queue"] else {}),
        **({"dueAt": row["due_at"]} if row["due_at"] is not None and row["status"] not in RUN_ENDED else {}),
        "children": [],
    }
