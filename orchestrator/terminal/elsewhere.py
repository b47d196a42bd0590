"""A studio elsewhere as the terminal's pages read it: its JSON as scenes, events and names."""

import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final

from orchestrator.client import Client
from orchestrator.deltas import Delta
from orchestrator.records import Event
from orchestrator.states import RUN_ENDED
from orchestrator.terminal import underway
from orchestrator.terminal.outline import outline
from orchestrator.terminal.scene import Plan, Scene, TaskView
from orchestrator.terminal.tracing import Names
from orchestrator.terminal.underway import Underway
from registry.base import Json

#: Lines handed on at once, and seconds without any after which the page is looked at all the same.
BATCH: Final = 1_000
LOOK_S: Final = 1.0


def event_of(line: dict[str, Json]) -> Event:
    """A line of a trace as it was written."""
    return Event(
        line["kind"],
        line["data"],
        line.get("taskId"),
        line.get("runId"),
        line.get("agentId"),
        line.get("nodeId"),
        at=line["at"],
        seq=line["seq"],
    )


def names_of(client: Client, project: dict[str, Json]) -> Names:
    """What the ids in a project's trace are called: its tasks, and the team it began with."""
    agents: dict[str, str] = {}
    for line in client.events(project["id"]):
        if line["kind"] == "team.assembled":
            agents = {one["agentId"]: one["name"] for one in line["data"].get("members", [])}
            break
        if line["seq"] > BATCH:
            break
    return Names(project["id"], {task["id"]: task["key"] for task in project["tasks"]}, agents)


def nameless(client: Client, given: str) -> Names:
    """The trace of an id that is no project's.

    Raises:
        Refused: there is none.
    """
    first = next(client.events(given), None)
    return Names(given if first is None else first.get("projectId", given), {}, {})


class Remote:
    """What `watch` looks at, over HTTP."""

    def __init__(self, client: Client, project_id: str) -> None:
        self._client, self._id = client, project_id

    def scene(self, _before: Scene | None) -> Scene:
        return scene_of(self._client.project(self._id, live=True))

    def live(self, after: int, hear: Callable[[Delta], None]) -> Iterator[list[Event]]:
        """Events as they come; an empty list is a heartbeat. Pieces of answers are heard in a thread of their own."""
        heard: queue.SimpleQueue[Any] = queue.SimpleQueue()

        def listen() -> None:
            try:
                for line in self._client.events(self._id, after=after, follow=True, hear=hear):
                    heard.put(event_of(line))
                heard.put(None)
            except Exception as error:
                heard.put(error)

        threading.Thread(target=listen, name="trace", daemon=True).start()
        while True:
            batch: list[Any] = []
            with suppress(queue.Empty):
                batch.append(heard.get(timeout=LOOK_S))
                while len(batch) < BATCH:
                    batch.append(heard.get_nowait())
            last = batch[-1] if batch else None
            if isinstance(last, Exception):
                raise last
            over = bool(batch) and last is None
            yield [one for one in batch if one is not None]
            if over:
                return

    def files(self) -> list[Json]:
        found: list[Json] = self._client.project(self._id)["files"]
        return found

    def settle(self, signal_id: str, said: dict[str, Json]) -> None:
        self._client.answer(signal_id, **said)


def scene_of(project: dict[str, Json]) -> Scene:
    """A project as the API shows it when it is asked for its `live` part; a studio older than that part leaves out how
    a fan-out stands, who works, and what was promised.
    """
    live = project.get("live")
    look = underway.heard(live) if live else Underway(now=round(time.time() * 1000), workers=1)
    tasks = {task["key"]: _task(task, look) for task in project["tasks"]}
    depends_on = {task["key"]: list(task["dependsOn"]) for task in project["tasks"]}
    return Scene(
        id=project["id"],
        title=project["title"],
        status=project["status"],
        reason=project.get("reason"),
        rehearsal=bool(project.get("rehearsal", False)),
        planned=len(project["plan"]["tasks"]) if project.get("plan") else None,
        cost_usd=project["costUsd"],
        budget_usd=project.get("maxCostUsd"),
        cost_incomplete=project.get("costIncomplete", False),
        created_at=project["createdAt"],
        ended_at=project["endedAt"],
        now=look.now,
        workspace=project["workspace"],
        tasks=tasks,
        signals=[one for one in project["signals"] if one["status"] == "open"],
        unknown=[one["name"] for one in project["unknown"]],
        workers=look.workers,
        plan=Plan(depends_on, outline(depends_on)),
    )


def _task(task: dict[str, Json], look: Underway) -> TaskView:
    live = next((run for run in task["runs"] if run["status"] not in RUN_ENDED), None)
    of_run: dict[str, Any] = {}
    if live is not None:
        parked = {"waiting_on": live["on"], "due_at": live.get("dueAt")}
        of_run = {"run_id": live["id"], "attempt": live["attempt"], "fanout": look.fanouts.get(live["id"]), **parked}
    return TaskView(
        id=task["id"],
        key=task["key"],
        title=task["title"],
        status=task["status"],
        reason=task.get("reason"),
        agent=task["agent"],
        error=task["error"],
        cost_usd=task["costUsd"],
        cost_incomplete=task.get("costIncomplete", False),
        started_at=task["startedAt"],
        ended_at=task["endedAt"],
        deliverables=look.promised.get(task["id"], []),
        **of_run,
    )
