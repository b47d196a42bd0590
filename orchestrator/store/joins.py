"""The last checkpoints of children: their parents are counted down, and queued after their last ones.

Several children of one process may end in one transaction. Lock order: the project where a run is to get a place, the
parents, the children, the event counters.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, select

from orchestrator.records import Checkpoint, Ending, Event, Wake
from orchestrator.store import checkpoints, children, effects, money, wakes
from orchestrator.store.sql import among, several
from orchestrator.store.tables import runs

_parents = runs.alias("parents")
_CHILDREN = (
    select(
        *(runs.c.id, runs.c.project_id, runs.c.parent_id, runs.c.parent_step),
        *(runs.c.cost_micro, runs.c.cost_incomplete, _parents.c.open_children, _parents.c.sequential),
        wakes.any_unsent(runs.c.project_id).label("unsent"),
    )
    .join(_parents, _parents.c.id == runs.c.parent_id)
    .where(among(runs.c.id, several("ids")))
)


def end(connection: Connection, batch: Sequence[Checkpoint]) -> list[tuple[Checkpoint, list[Wake] | None]]:
    """Ends children; gives for each the wake-ups to send after the commit, or None where its fence was old and nothing
    of it was written."""
    before = _children(connection, [c.run_id for c in batch])
    _lock_projects(connection, list(before.values()))
    children.lock_parents(connection, {row.parent_id for row in before.values()})
    good, projects = checkpoints.move_all(connection, batch, _last, checkpoints.ENDED_NOW)
    if not good:
        return [(checkpoint, None) for checkpoint in batch]
    checkpoints.append(connection, good)
    ids = [c.run_id for c in good]
    money.release(connection, ids)
    lines = {c.run_id: left_open(connection, c) for c in good}
    by_parent: dict[str, list[Checkpoint]] = {}
    for checkpoint in good:
        by_parent.setdefault(before[checkpoint.run_id].parent_id, []).append(checkpoint)
    unsent = {row.project_id for row in before.values() if row.unsent}
    for parent_id, gone in sorted(by_parent.items()):
        if children.counted_down(connection, parent_id, [_brought(before[c.run_id], c) for c in gone]):
            unsent.add(projects[gone[0].run_id])
    ready = {project_id: wakes.take(connection, project_id) for project_id in sorted(unsent & set(projects.values()))}
    checkpoints.seal(connection, good, lines, projects)
    written = {(c.run_id, c.fence) for c in good}
    # What is ready goes to one child of the project, whichever.
    return [(c, ready.pop(projects[c.run_id], []) if (c.run_id, c.fence) in written else None) for c in batch]


def left_open(connection: Connection, checkpoint: Checkpoint) -> list[Event]:
    """The lines of the last checkpoint; before them those of calls that a run without success left in the middle."""
    completed = checkpoint.ending is not None and checkpoint.ending.status == "completed"
    gone = [] if completed else effects.give_up(connection, [checkpoint.run_id])
    return gone + checkpoints.told(connection, checkpoint)


def ended(ending: Ending) -> dict[str, Any]:
    """The columns of a run that has ended, beside the time."""
    return {"status": ending.status, "waiting_on": None, "due_at": None, "worker_id": None, "error": ending.error}


def _last(checkpoint: Checkpoint) -> dict[str, Any]:
    assert checkpoint.ending is not None
    return ended(checkpoint.ending) | {"result": checkpoint.ending.result}


def _brought(row: Row[Any], checkpoint: Checkpoint) -> children.Brought:
    """Nobody but its owner, who has its fence, adds to what a running child has spent: what was read stands."""
    incomplete = row.cost_incomplete or checkpoint.cost_incomplete
    return children.Brought(row.parent_step, row.cost_micro + checkpoint.cost_micro, incomplete)


def _children(connection: Connection, run_ids: Sequence[str]) -> dict[str, Row[Any]]:
    """What their parents take over from them, and what is known of these."""
    return {row.id: row for row in connection.execute(_CHILDREN, {"ids": run_ids})}


def _lock_projects(connection: Connection, ending: Sequence[Row[Any]]) -> None:
    """Locks the projects in which a run will be ready for a place: a parent after its last child, the next of a
    sequence, or one that has waited for a place. Where this look comes too early, `wakes.take` does without waiting."""
    many = len(ending)
    for project_id in sorted({r.project_id for r in ending if r.unsent or r.sequential or r.open_children <= many}):
        wakes.lock_places(connection, project_id)
