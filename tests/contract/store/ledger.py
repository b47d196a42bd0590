"""What the store should do, as a ledger of a few plain fields: no database, no clock, no retries, no clever order.

One method for each move says what becomes of the states, and answers as the move has to. It knows runs, their tasks and
their questions; `test_any_order.py` holds it beside the real store.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.states import PROJECT_ENDED, RUN_ENDED

#: A failure that a new root run may get past, while the task has retries left.
PASSING = "model_failed"


@dataclass
class Run:
    id: str
    project: str
    task: str | None
    parent: str | None = None
    status: str = "queued"
    on: str | None = None
    fence: int = 0
    #: Open or closed questions it raised; True: open.
    asked: dict[str, bool] = field(default_factory=dict)
    #: Of these, the answers it has used.
    used: set[str] = field(default_factory=set)
    #: The children of its last fan-out, in order.
    children: list[str] = field(default_factory=list)
    sequential: bool = False

    @property
    def live(self) -> bool:
        return self.status not in RUN_ENDED

    @property
    def unused(self) -> list[str]:
        return [one for one in self.asked if one not in self.used]

    def queue(self) -> None:
        self.status, self.on = "queued", None


@dataclass
class Task:
    after: tuple[str, ...]
    retries: int
    status: str = "pending"
    #: Root runs that have ended.
    tried: int = 0


@dataclass
class Project:
    id: str
    places: int
    tasks: dict[str, Task]
    status: str = "running"


class Ledger:
    """Everything that has been submitted."""

    def __init__(self) -> None:
        self.projects: dict[str, Project] = {}
        self.runs: dict[str, Run] = {}
        #: Tasks that have to have a new root run, which the store has named: (project, task, waits out a back-off).
        self.owed: list[tuple[str, str, bool]] = []

    def submit(self, project: str, after: Mapping[str, Sequence[str]], places: int, retries: int) -> None:
        tasks = {key: Task(tuple(on), retries) for key, on in after.items()}
        self.projects[project] = Project(project, places, tasks)
        self._begin(self.projects[project])

    def add_root(self, run_id: str, project: str, task: str, *, waits: bool) -> None:
        run = self.runs[run_id] = Run(run_id, project, task)
        if waits:
            run.status, run.on = "waiting", "backoff"

    def claim(self, run_id: str, marked: set[str]) -> int | None:
        """The new fence; a run marked for a wake-up has its place, another needs one that nobody has or is promised."""
        run = self.runs[run_id]
        project = self.projects[run.project]
        at_work = sum(r.status == "running" for r in self.runs.values() if r.project == project.id)
        promised = sum(self.runs[one].project == project.id for one in marked)
        placed = run_id in marked or at_work + promised < project.places
        if project.status in PROJECT_ENDED or run.status != "queued" or not placed:
            return None
        run.status, run.fence = "running", run.fence + 1
        return run.fence

    def owns(self, run_id: str, fence: int) -> bool:
        run = self.runs[run_id]
        return run.status == "running" and run.fence == fence

    def raise_question(self, run_id: str, signal_id: str) -> None:
        self.runs[run_id].asked[signal_id] = True

    def use(self, run_id: str, signal_id: str) -> bool:
        """Whether the answer may be used: it is one, and nobody used it before."""
        run = self.runs[run_id]
        good = run.asked[signal_id] is False and signal_id not in run.used
        if good:
            run.used.add(signal_id)
        return good

    def park(self, run_id: str, status: str, on: str) -> None:
        run = self.runs[run_id]
        run.status, run.on = status, on
        heard = on in ("signals", "gate") and any(not run.asked[one] for one in run.unused)
        if heard or (on == "children" and not self.open_children(run)):
            run.queue()

    def fan_out(self, run_id: str, children: Sequence[str], *, sequential: bool) -> None:
        run = self.runs[run_id]
        run.children, run.sequential = list(children), sequential
        for place, child in enumerate(children):
            made = self.runs[child] = Run(child, run.project, None, parent=run_id)
            if sequential and place:
                made.status, made.on = "waiting", "turn"
        self.park(run_id, "waiting", "children")

    def open_children(self, run: Run) -> list[str]:
        return [one for one in run.children if self.runs[one].live]

    def cancel_children(self, run_id: str) -> None:
        for one in self.open_children(self.runs[run_id]):
            self._cancel(one)

    def end(self, run_id: str, status: str, code: str | None, *, later: bool) -> None:
        run = self.runs[run_id]
        run.status, run.on = status, None
        run.asked.update(dict.fromkeys(run.asked, False))
        if run.parent is not None:
            self._child_ended(self.runs[run.parent])
        else:
            self._root_ended(self.projects[run.project], str(run.task), status, code, later=later)

    def answer(self, signal_id: str) -> bool:
        """Whether it counts: the first answer to an open question does."""
        run = self.asker(signal_id)
        if not run.asked[signal_id]:
            return False
        run.asked[signal_id] = False
        if run.status == "needs_input" or run.on == "gate":
            run.queue()
        return True

    def asker(self, signal_id: str) -> Run:
        return next(run for run in self.runs.values() if signal_id in run.asked)

    def due(self, run_id: str) -> None:
        self.runs[run_id].queue()

    def lose(self, run_id: str) -> None:
        self.runs[run_id].queue()

    def cancel(self, project_id: str) -> bool:
        project = self.projects[project_id]
        if project.status in PROJECT_ENDED:
            return False
        project.status = "cancelled"
        for task in project.tasks.values():
            if task.status in ("pending", "live"):
                task.tried += task.status == "live"
                task.status = "cancelled"
        for run in self.runs.values():
            if run.project == project_id and run.live:
                self._cancelled(run)
        return True

    def retry(self, project_id: str, key: str) -> bool:
        project = self.projects[project_id]
        task = project.tasks[key]
        if task.status not in ("failed", "cancelled"):
            return False
        project.status, task.status = "running", "live"
        below = self._below(project, key)
        reopened = {one for one in below if project.tasks[one].status == "skipped"}
        while shut := {one for one in reopened if self._barred(project, one, reopened)}:
            reopened -= shut
        for one in reopened:
            project.tasks[one].status = "pending"
        self.owed.append((project_id, key, False))
        return True

    def _barred(self, project: Project, key: str, reopened: set[str]) -> bool:
        barring = ("failed", "skipped", "cancelled")
        return any(project.tasks[on].status in barring and on not in reopened for on in project.tasks[key].after)

    def _below(self, project: Project, key: str) -> set[str]:
        found: set[str] = set()
        level = {key}
        while level:
            level = {name for name, task in project.tasks.items() if level & set(task.after)} - found
            found |= level
        return found

    def _cancelled(self, run: Run) -> None:
        run.status, run.on, run.fence = "cancelled", None, run.fence + 1
        run.asked.update(dict.fromkeys(run.asked, False))

    def _cancel(self, run_id: str) -> None:
        run = self.runs[run_id]
        for one in self.open_children(run):
            self._cancel(one)
        self._cancelled(run)

    def _child_ended(self, parent: Run) -> None:
        still = self.open_children(parent)
        if not still and parent.on == "children":
            parent.queue()
        elif still and parent.sequential:
            self.runs[still[0]].queue()

    def _root_ended(self, project: Project, key: str, status: str, code: str | None, *, later: bool) -> None:
        task = project.tasks[key]
        again = status == "failed" and code == PASSING and task.tried < task.retries
        task.tried += 1
        if again:
            self.owed.append((project.id, key, later))
            return
        task.status = status
        if status != "completed":
            for one in self._below(project, key):
                if project.tasks[one].status == "pending":
                    project.tasks[one].status = "skipped"
        self._begin(project)
        states = [one.status for one in project.tasks.values()]
        if not {"pending", "live"} & set(states):
            done = states.count("completed")
            project.status = "completed" if done == len(states) else "partial" if done else "failed"

    def _begin(self, project: Project) -> None:
        """What waits for nothing gets a root run."""
        for key, task in project.tasks.items():
            if task.status == "pending" and all(project.tasks[on].status == "completed" for on in task.after):
                task.status = "live"
                self.owed.append((project.id, key, False))
