"""Every run of a project as a tree: who ran, for whom, in which state, and what it cost."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import Connection, Text, func, select, type_coerce

from orchestrator import views
from orchestrator.store.tables import runs

#: Rows one page reads; children beyond that are only counted.
MOST: Final = 2_000
_ITEM_CHARS: Final = 120


@dataclass
class Run:
    """A run and what it made. Times are epoch milliseconds."""

    id: str
    parent_id: str | None
    task_id: str | None
    kind: str
    position: int
    agent: str
    status: str
    waiting_on: str | None
    due_at: int | None
    code: str | None
    node: str | None
    steps: int
    tokens: int
    attempt: int
    cost_usd: float
    cost_incomplete: bool
    created_at: int
    started_at: int | None
    ended_at: int | None
    #: The beginning of a map's item, as JSON.
    item: str | None
    children: list["Run"] = field(default_factory=list)

    @property
    def below(self) -> Counter[str]:
        """States of its children and theirs."""
        return Counter(run.status for run in walk(self.children))


def read(connection: Connection, project_id: str, task_id: str | None = None) -> tuple[list[Run], int]:
    """Root runs with everything below them, and how many runs there are beyond those that were read."""
    r = runs.c
    mine = (r.project_id == project_id) if task_id is None else (r.task_id == task_id)
    item = func.substr(type_coerce(r.item, Text), 1, _ITEM_CHARS).label("item_head")
    columns = (r.id, r.parent_id, r.parent_step, r.task_id, r.kind, r.position, r.agent_name, r.status, r.waiting_on)
    facts = (r.due_at, r.error, r.node_id, r.steps, r.tokens, r.attempt, r.cost_micro, r.cost_incomplete)
    query = select(*columns, *facts, r.created_at, r.started_at, r.ended_at, item).where(mine)
    # Parents are read before their children, so that a cut leaves no child without one.
    rows = connection.execute(query.order_by(r.depth, r.parent_step, r.position, r.id).limit(MOST + 1)).all()
    beyond = 0
    if len(rows) > MOST:
        rows = rows[:MOST]
        beyond = int(connection.execute(select(func.count()).where(mine)).scalar_one()) - MOST
    made = {row.id: _run(row) for row in rows}
    roots: list[Run] = []
    for run in made.values():
        (made[run.parent_id].children if run.parent_id in made else roots).append(run)
    return roots, beyond


def walk(found: list[Run]) -> Iterator[Run]:
    """Every run of some trees, each before those below it."""
    stack = list(reversed(found))
    while stack:
        run = stack.pop()
        yield run
        stack.extend(reversed(run.children))


def _run(row: Any) -> Run:
    return Run(
        id=row.id,
        parent_id=row.parent_id,
        task_id=row.task_id,
        kind=row.kind,
        position=row.position or 0,
        agent=row.agent_name,
        status=row.status,
        waiting_on=row.waiting_on,
        due_at=row.due_at if row.status == "waiting" else None,
        code=row.error and row.error.get("code"),
        node=row.node_id,
        steps=row.steps,
        tokens=row.tokens,
        attempt=row.attempt,
        cost_usd=views.usd(row.cost_micro),
        cost_incomplete=row.cost_incomplete,
        created_at=row.created_at,
        started_at=row.started_at,
        ended_at=row.ended_at,
        item=row.item_head if row.kind == "item" else None,
    )
