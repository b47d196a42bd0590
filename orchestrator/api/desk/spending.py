"""What a project cost: by task, by agent from the runs, by model from the trace."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Integer, func, select

from orchestrator import views
from orchestrator.store.tables import events, runs

#: Model calls that one page adds up.
MOST: Final = 50_000


@dataclass
class Spent:
    name: str
    usd: float = 0.0
    incomplete: bool = False
    tokens: int = 0
    #: Runs of an agent, calls of a model.
    count: int = 0
    stand_in: bool = False
    #: Milliseconds it took, of a model.
    ms: int = 0


def by_agent(connection: Connection, project_id: str) -> list[Spent]:
    """The dearest first."""
    r = runs.c
    query = (
        select(
            r.agent_name,
            func.sum(r.cost_micro).label("micro"),
            func.max(r.cost_incomplete.cast(Integer)).label("incomplete"),
            func.sum(r.tokens).label("tokens"),
            func.count().label("many"),
        )
        .where(r.project_id == project_id)
        .group_by(r.agent_name)
    )
    found = [
        Spent(row.agent_name, views.usd(int(row.micro or 0)), bool(row.incomplete), int(row.tokens or 0), row.many)
        for row in connection.execute(query)
    ]
    return sorted(found, key=_dearest)


def by_model(connection: Connection, project_id: str) -> list[Spent]:
    """Models that thought for this project, the dearest first; what skills asked of models is in the agents' sums."""
    e = events.c
    query = select(e.data).where(e.trace_id == project_id, e.kind == "think").order_by(e.seq).limit(MOST)
    found: dict[str, Spent] = defaultdict(lambda: Spent(""))
    for data in connection.execute(query).scalars():
        _add(found, data)
    return sorted(found.values(), key=_dearest)


def _add(found: dict[str, Spent], data: dict[str, Any]) -> None:
    name = str(data.get("model"))
    one = found[name]
    one.name, one.count = name, one.count + 1
    one.stand_in = bool(data.get("standIn"))
    one.tokens += int((data.get("usage") or {}).get("totalTokens") or 0)
    one.ms += int(data.get("durationMs") or 0)
    cost = data.get("costUsd")
    one.incomplete = one.incomplete or cost is None
    one.usd += float(cost or 0)


def _dearest(one: Spent) -> tuple[float, int, str]:
    return (-one.usd, -one.tokens, one.name)
