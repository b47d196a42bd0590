"""Project files for tests, written to a folder of their own and submitted."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import select

from orchestrator import views
from orchestrator.producer import Submitted, submit
from orchestrator.records import Event
from orchestrator.settings import Settings
from orchestrator.states import PROJECT_ENDED
from orchestrator.store import events
from orchestrator.store.database import get_database
from orchestrator.store.tables import projects, runs, signals, tasks
from tests.support import eventually


def task(key: str, *, after: Sequence[str] = (), **fields: Any) -> dict[str, Any]:
    """A task of a plan that any agent can do."""
    return {"key": key, "role": "writer", "instruction": f"Do {key}.", "dependsOn": list(after)} | fields


def start(
    folder: Path, settings: Settings, tasks: Sequence[Mapping[str, Any]], script: Mapping[str, Any], **fields: Any
) -> Submitted:
    """Writes a project file with its script and submits it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "script.json").write_text(json.dumps(script), encoding="utf-8")
    project = {"title": "A test", "brief": "b", "tasks": list(tasks), "script": "script.json"} | fields
    (folder / "project.json").write_text(json.dumps(project), encoding="utf-8")
    return submit(folder / "project.json", settings=settings)


class Watched:
    """What the rows say of a project."""

    def __init__(self, settings: Settings, project_id: str) -> None:
        self.settings, self.id = settings, project_id

    @property
    def status(self) -> str:
        return str(self._rows(select(projects.c.status).where(projects.c.id == self.id))[0][0])

    @property
    def tasks(self) -> dict[str, Any]:
        query = select(tasks).where(tasks.c.project_id == self.id).order_by(tasks.c.position)
        return {row.key: row for row in self._rows(query)}

    @property
    def runs(self) -> list[Any]:
        return self._rows(select(runs).where(runs.c.project_id == self.id).order_by(runs.c.id))

    @property
    def shown(self) -> dict[str, Any]:
        """What `show --json` prints."""
        with get_database(self.settings).read() as connection:
            return views.project(connection, self.id, self.settings)

    @property
    def signals(self) -> list[Any]:
        return self._rows(select(signals).where(signals.c.project_id == self.id).order_by(signals.c.id))

    @property
    def trace(self) -> list[Event]:
        with get_database(self.settings).read() as connection:
            return events.after(connection, self.id, 0, limit=100_000)

    def kinds(self, kind: str) -> list[dict[str, Any]]:
        """The data of all events of a kind."""
        return [event.data for event in self.trace if event.kind == kind]

    def ended(self, seconds: float = 30) -> str:
        """Waits for its end; returns how it ended, with the first error where one is the reason."""
        eventually(lambda: self.status in PROJECT_ENDED, seconds)
        for row in self.tasks.values():
            if row.error:
                sys.stderr.write(f"task {row.key}: {row.error}\n")
        return self.status

    def open_signal(self, seconds: float = 15) -> Any:
        """Waits until something is asked."""
        return eventually(lambda: next((s for s in self.signals if s.status == "open"), None), seconds)

    def _rows(self, query: Any) -> list[Any]:
        with get_database(self.settings).read() as connection:
            return list(connection.execute(query).all())
