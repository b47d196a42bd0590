"""What of a project only a live view asks for, as JSON and back: how its fan-outs stand, what was promised, who works.

A studio answers it beside the project when it is asked with `live=true`, so that a page over HTTP says what one beside
the database says.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, select

from orchestrator import trees
from orchestrator.store.database import now_ms
from orchestrator.store.tables import tasks
from orchestrator.terminal.scene import seen_workers
from orchestrator.trees import Child, Fanout
from registry.base import Json


@dataclass(frozen=True)
class Underway:
    """One look; `now` in epoch milliseconds on the clock of the studio's database."""

    now: int
    #: Workers that gave a sign of life lately.
    workers: int
    #: Paths by task id, of tasks that promise some.
    promised: Mapping[str, list[str]] = field(default_factory=dict)
    #: By the run that waits.
    fanouts: Mapping[str, Fanout] = field(default_factory=dict)


def read(connection: Connection, project_id: str) -> dict[str, Json]:
    """{now, workers, promised, fanouts}: four statements at most, however many children there are."""
    row = connection.execute(select(now_ms().label("now"), seen_workers())).one()
    t = tasks.c
    found = connection.execute(select(t.id, t.deliverables).where(t.project_id == project_id))
    return {
        "now": row.now,
        "workers": row.seen_workers,
        "promised": {task.id: task.deliverables for task in found if task.deliverables},
        "fanouts": {run_id: _told(one) for run_id, one in trees.under_way(connection, project_id).items()},
    }


def heard(told: Mapping[str, Any]) -> Underway:
    """What `read` told, as the pages draw it."""
    fanouts = {run_id: Fanout(Counter(one["counts"])) for run_id, one in told["fanouts"].items()}
    for run_id, one in told["fanouts"].items():
        fanouts[run_id].at_work.extend(_child(child, fanouts) for child in one["atWork"])
    return Underway(told["now"], told["workers"], told["promised"], fanouts)


def _told(fanout: Fanout) -> dict[str, Json]:
    """The fan-outs of its children are told by their own ids."""
    at_work = [
        {
            "id": child.id,
            "kind": child.kind,
            "position": child.position,
            "agent": child.agent,
            "status": child.status,
            "on": child.waiting_on,
            "node": child.node,
            "steps": child.steps,
            "item": child.item,
        }
        for child in fanout.at_work
    ]
    return {"counts": dict(fanout.counts), "atWork": at_work}


def _child(told: Mapping[str, Any], fanouts: Mapping[str, Fanout]) -> Child:
    same = ("id", "kind", "position", "agent", "status", "node", "steps", "item")
    return Child(**{name: told[name] for name in same}, waiting_on=told["on"], fanout=fanouts.get(told["id"]))
