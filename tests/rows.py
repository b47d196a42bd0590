"""Projects written straight into the tables, for tests of what is shown of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import insert

from orchestrator.records import Event
from orchestrator.settings import Settings
from orchestrator.store import events as trace
from orchestrator.store.database import get_database
from orchestrator.store.tables import calls, definitions, dependencies, files, projects, runs, signals, tasks
from registry.ids import new_id

#: When everything in these projects began: 30 November 2026, 09:00 UTC.
BEGAN = 1_796_029_200_000

CODE = "import csv, statistics\n\nrows = list(csv.DictReader(open('in/seattle-weather.csv')))\nprint(len(rows))\n"


class Project:
    """A project under construction: each method writes rows at once."""

    def __init__(self, settings: Settings, title: str = "Seattle weather 2012-2015", **columns: Any) -> None:
        self.settings, self.id = settings, str(columns.get("id") or new_id())
        self.task_ids: dict[str, str] = {}
        self.run_ids: dict[str, str] = {}
        self.defaults = {"project_id": self.id, "definition_digest": self._definition(), "created_at": BEGAN}
        row = {
            "id": self.id,
            "owner_id": settings.owner,
            "file_digest": "0" * 64,
            "title": title,
            "brief": "What the weather did",
            "skills": [],
            "status": "running",
            "permissions": {},
            "approvals": "park",
            "max_parallel": 32,
            "priority": 5,
            "workspace": "seattle-weather-2012-2015",
            "created_at": BEGAN,
        }
        self._insert(projects, row | columns)
        get_database(settings).write(lambda connection: trace.open_trace(connection, self.id))

    def task(self, key: str, status: str = "pending", *, after: Sequence[str] = (), **columns: Any) -> str:
        """A task, and below it its dependencies; one that has started has a root run in the same state."""
        row = {
            "id": new_id(),
            "position": len(self.task_ids),
            "key": key,
            "title": key.replace("-", " ").capitalize(),
            "role": "analyst",
            "instruction": "Do it",
            "deliverables": [],
            "agent_id": "nadia",
            "agent_name": "Nadia Kest",
            "skills": [],
            "tier": "standard",
            "status": status,
            "retries": 1,
        }
        self.task_ids[key] = str(row["id"])
        run = columns.pop("run", {})
        self._insert(tasks, self.defaults | row | columns)
        for position, before in enumerate(after):
            edge = {"task_id": row["id"], "depends_on_id": self.task_ids[before], "position": position}
            self._insert(dependencies, edge)
        if status not in ("pending", "skipped"):
            self.run_ids[key] = self.run(key, status, **run)
        return str(row["id"])

    def run(self, key: str, status: str, **columns: Any) -> str:
        row = {
            "id": new_id(),
            "task_id": self.task_ids[key],
            "kind": "root",
            "agent_id": "nadia",
            "agent_name": "Nadia Kest",
            "status": status,
            "attempt": 1,
            "permissions": {},
            "approvals": "park",
            "priority": 5,
        } | columns
        self._insert(runs, self.defaults | row)
        return str(row["id"])

    def signal(self, key: str, **columns: Any) -> str:
        """A decision about `code.execute`, open unless told otherwise."""
        row = {
            "id": new_id(),
            "owner_id": self.settings.owner,
            "project_id": self.id,
            "task_id": self.task_ids[key],
            "run_id": self.run_ids.get(key),
            "agent_id": "nadia",
            "agent_name": "Nadia Kest",
            "kind": "decision",
            "status": "open",
            "title": "Something running for you wants to use code.execute, which acts outside Officina",
            "reason": "process is ask by default",
            "options": [{"id": "Do it", "label": "Do it"}, {"id": "No", "label": "No"}],
            "priority": "normal",
            "action": {"toolCallId": "c1", "skill": "code.execute", "input": {"language": "python", "code": CODE}},
            "digest": "d" * 64,
            "schema": {"type": "object", "required": ["approved"]},
            "created_at": BEGAN + 5_000,
            "expires_at": BEGAN + 7 * 24 * 3_600_000,
        }
        self._insert(signals, row | columns)
        return str(row["id"])

    def call(self, key: str, call_id: str, **columns: Any) -> None:
        """A call of the task's root run that has ended, of `files.write` unless told otherwise."""
        row = {
            "run_id": self.run_ids[key],
            "id": call_id,
            "node_id": "tools",
            "step": 1,
            "position": 0,
            "name": "files.write",
            "input": {"path": "a.md", "content": "x", "mode": "create"},
            "digest": "d" * 64,
            "status": "done",
            "checkpoint": 1,
        }
        self._insert(calls, row | columns)

    def file(self, path: str, size: int = 4_200, **columns: Any) -> None:
        row = {"project_id": self.id, "path": path, "bytes": size, "sha256": "a" * 64, "written_at": BEGAN}
        self._insert(files, row | columns)

    def event(
        self, kind: str, data: Mapping[str, Any], key: str | None = None, *, at: int = BEGAN, **columns: Any
    ) -> None:
        """A line of the trace, by the task's root run when a task is named and no run."""
        line = Event(kind, dict(data), at=at, **columns)
        if key is not None:
            line.task_id, line.run_id = self.task_ids[key], line.run_id or self.run_ids.get(key)
            line.agent_id = "nadia"
        get_database(self.settings).write(lambda connection: trace.append(connection, self.id, [line]))

    def set(self, table: Any, row_id: str, **columns: Any) -> None:
        """Changes a row, as the moves of the store would."""
        self._write(table.update().where(table.c.id == row_id).values(**columns))

    def _definition(self) -> str:
        from orchestrator.store.sql import insert_or_ignore

        row = {"digest": "f" * 64, "body": {"id": "nadia"}}
        get_database(self.settings).write(lambda connection: insert_or_ignore(connection, definitions, [row]))
        return str(row["digest"])

    def _insert(self, table: Any, row: Mapping[str, Any]) -> None:
        self._write(insert(table).values({k: v for k, v in row.items() if k in table.c}))

    def _write(self, statement: Any) -> None:
        get_database(self.settings).write(lambda connection: connection.execute(statement))


def weather(settings: Settings, **columns: Any) -> Project:
    """The example in the middle of its work: one task done, one at work, one that asks, three that wait."""
    made = Project(settings, cost_micro=12_300, open_tasks=5, **columns)
    done = {"started_at": BEGAN + 400, "ended_at": BEGAN + 3_100, "cost_micro": 4_100, "output": "1,461 days, no gaps"}
    made.task("profile", "completed", title="Profile the data", deliverables=["profile.md"], **done)
    began = {"started_at": BEGAN + 3_200, "cost_micro": 8_200}
    made.task("monthly", "running", title="Monthly figures", after=["profile"], **began)
    made.task("yearly", "needs_input", title="Yearly figures", after=["profile"], started_at=BEGAN + 3_200)
    made.task("chart", title="Draw the temperature chart", after=["monthly"])
    drafted = ["brief.md", "brief.docx"]
    made.task("brief", title="Write the brief", after=["monthly", "yearly", "chart"], deliverables=drafted)
    made.task("review", title="Review and finish", after=["brief"])
    made.event("run.started", {"attempt": 1, "depth": 0}, "monthly")
    calls = [{"id": "m1", "name": "math.evaluate", "args": {}}, {"id": "m2", "name": "files.read", "args": {}}]
    made.event("think", {"model": "stand-in", "text": "", "toolCount": 2, "usage": {}, "costUsd": 0}, "monthly")
    made.event("message", {"role": "assistant", "text": "", "toolCalls": calls}, "monthly")
    made.file("profile.md", 1_830, task_id=made.task_ids["profile"])
    made.file("inputs/seattle-weather.csv", 48_219)
    return made
