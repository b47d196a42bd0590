"""Moves of a run that begins with what it is given: a child, and a run of no task.

What it is given is its checkpoint 0. (The first run of a task begins with the task's brief, and needs none.)
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, insert

from orchestrator.store import definitions, events, runs
from orchestrator.store.database import now_ms
from orchestrator.store.rows import Shared, insert_all
from orchestrator.store.tables import checkpoints, projects
from registry.base import Json
from registry.jsontext import digest
from registry.permissions import Gate, Mode

#: Runs of a project without a plan that may be claimed at once: a limit is for those who share workers.
PLACES = 1_000
_AT: Shared = (("at", now_ms()),)


def row(run_id: str, given: Json, state: Mapping[str, Json], node_id: str | None = None) -> dict[str, Any]:
    """Checkpoint 0: its `$input`, its state, and the node it begins at where that is not the start."""
    return {
        "run_id": run_id,
        "number": 0,
        "node_id": node_id,
        "counters": {},
        "patch": {"set": dict(state)},
        "snapshot": True,
        "input": given,
        "has_input": True,
    }


def write(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    insert_all(connection, checkpoints, rows, _AT)


def alone(
    connection: Connection,
    run_id: str,
    definition: dict[str, Json],
    *,
    given: Json,
    state: Mapping[str, Json],
    mode: Mode | None,
    permissions: Mapping[str, Gate],
) -> None:
    """A project without a plan, and in it one run of no task, `queued`.

    Args:
        definition: a valid definition of the agent.
        mode: with `permissions`, what the run and everything below it may do.
    """
    name = str(definition.get("name", definition["id"]))
    project_id, body = f"project-of-{run_id}", digest(definition)
    about = {"title": name, "brief": "", "file_digest": body, "skills": [], "workspace": "", "max_parallel": PLACES}
    shared = {"approvals": "park", "priority": 5, "mode": mode, "permissions": dict(permissions)}
    project = about | shared | {"id": project_id, "owner_id": "local", "status": "running"}
    connection.execute(insert(projects).values(project | {"created_at": now_ms()}))
    events.open_trace(connection, project_id)
    definitions.keep(connection, {body: definition})
    made = {
        "id": run_id,
        "project_id": project_id,
        "kind": "root",
        "agent_id": definition["id"],
        "agent_name": name,
        "definition_digest": body,
        "status": "queued",
        "attempt": 1,
    }
    runs.insert_queued(connection, [made | shared])
    write(connection, [row(run_id, given, state)])
