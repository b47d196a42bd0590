"""The trace of a project as lines for people: number, time, task, agent, kind, words."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select

from orchestrator import following
from orchestrator.records import Event
from orchestrator.settings import Settings
from orchestrator.store.tables import runs, tasks
from orchestrator.terminal.sentences import is_stand_in, sentence
from orchestrator.terminal.wording import one_line
from registry.errors import Refused


@dataclass
class Names:
    """What the ids in events are called."""

    project_id: str
    tasks: dict[str, str]
    agents: dict[str, str]

    @classmethod
    def read(cls, connection: Connection, project_id: str) -> "Names":
        keys = select(tasks.c.id, tasks.c.key).where(tasks.c.project_id == project_id)
        spoken = select(runs.c.agent_id, runs.c.agent_name).where(runs.c.project_id == project_id).distinct()
        assigned = select(tasks.c.agent_id, tasks.c.agent_name).where(tasks.c.project_id == project_id)
        agents = [*connection.execute(assigned), *connection.execute(spoken)]
        tasks_by_id = {row.id: row.key for row in connection.execute(keys)}
        return cls(project_id, tasks_by_id, {row.agent_id: row.agent_name for row in agents})

    def task_id(self, key: str) -> str:
        for task_id, known in self.tasks.items():
            if known == key:
                return task_id
        raise Refused(f"the project has no task {key[:60]!r}", code="unknown_task")


def lines(settings: Settings, project_id: str, *, after: int, follow: bool) -> Iterator[Event]:
    """Events in order; with `follow` until the project has ended, else those that are there."""
    if not follow:
        yield from following.stored(settings, project_id, after)
        return
    for batch in following.live(settings, project_id, after):
        yield from batch


def line_of(event: Event, names: Names) -> str:
    """One event as one line in columns that line up."""
    time = _clock(event)
    task = one_line(names.tasks.get(event.task_id or "", ""), 16)
    agent = one_line(names.agents.get(event.agent_id or "", ""), 14)
    label = _label(event)
    return f"{event.seq:>5}  {time}  {task:<16}  {agent:<14}  {event.kind:<16}  {sentence(event)}{label}".rstrip()


def short_line(event: Event) -> str:
    """The same for a narrow screen, where columns would leave no room for the words: time, kind, words."""
    return f"{_clock(event)[:8]} {event.kind}  {sentence(event)}{_label(event)}".rstrip()


def _clock(event: Event) -> str:
    return datetime.fromtimestamp(event.at / 1000).astimezone().strftime("%H:%M:%S.%f")[:-3]


def _label(event: Event) -> str:
    return " (stand-in)" if is_stand_in(event) else ""
