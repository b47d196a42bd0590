"""Money spent by runs under way.

A run's cost is booked on its task and project when it ends; until then it stands in the run's own row. Whoever shows a
sum adds both, so that a project that works for an hour does not look free for an hour.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import Connection, Integer, RowMapping, bindparam, func, literal, select

from orchestrator.states import RUN_OPEN
from orchestrator.store.tables import projects, runs, windows


@dataclass(frozen=True, slots=True)
class Cost:
    """An amount in micro-USD; incomplete where a price was unknown."""

    micro: int = 0
    incomplete: bool = False

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.micro + other.micro, self.incomplete or other.incomplete)


NOTHING: Final = Cost()


@dataclass(frozen=True, slots=True)
class Spent:
    """What the open runs of one project have spent, by task; under None what made its plan."""

    by_task: dict[str | None, Cost] = field(default_factory=dict)

    @property
    def all(self) -> Cost:
        return sum(self.by_task.values(), NOTHING)

    def of(self, task_id: str) -> Cost:
        return self.by_task.get(task_id, NOTHING)


#: Written once: to make a statement anew costs more than to send it.
_SPENT: Final = (
    select(
        runs.c.project_id,
        runs.c.task_id,
        func.sum(runs.c.cost_micro).label("micro"),
        func.max(runs.c.cost_incomplete.cast(Integer)).label("incomplete"),
    )
    .where(
        runs.c.project_id.in_(bindparam("projects", expanding=True)),
        runs.c.status.in_([literal(status) for status in sorted(RUN_OPEN)]),
    )
    .group_by(runs.c.project_id, runs.c.task_id)
)


def of_open_runs(connection: Connection, project_ids: Collection[str]) -> Mapping[str, Spent]:
    """What is spent and not booked yet, by project: one statement; none without projects."""
    found: defaultdict[str, Spent] = defaultdict(Spent)
    if not project_ids:
        return found
    for row in connection.execute(_SPENT, {"projects": list(project_ids)}):
        found[row.project_id].by_task[row.task_id] = Cost(int(row.micro or 0), bool(row.incomplete))
    return found


def of_runs(rows: Iterable[RowMapping]) -> Spent:
    """The same of one project whose runs were read anyway."""
    by_task: dict[str | None, Cost] = {}
    for row in rows:
        if row["status"] in RUN_OPEN:
            by_task[row["task_id"]] = by_task.get(row["task_id"], NOTHING) + Cost(
                row["cost_micro"], row["cost_incomplete"]
            )
    return Spent(by_task)


def limit_micro() -> Any:
    """A column beside `projects`: what one may cost, as it began or as a person has extended it; null: no limit."""
    own = windows.c.id == literal("project:").concat(projects.c.id)
    now = select(windows.c.limit_micro).where(own).scalar_subquery()
    return func.coalesce(now, projects.c.max_cost_micro).label("limit_micro")
