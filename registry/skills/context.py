"""Who calls a skill, how long it may take, and the ports it may use.

A port is the stateful side a skill needs (files, a sandbox, signals ...). Ports are small protocols here; their real
sides live in `orchestrator/ports` and `workers/sandbox`. A port that is None is not wired.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from registry.base import Json, Model
from registry.errors import SkillError
from registry.graph.targets import AgentCard
from registry.permissions import Policy
from registry.skills.jobs import Jobs
from registry.skills.metering import Meter
from registry.skills.network import Network
from registry.skills.notebook import Notebook
from registry.skills.pages import Web
from registry.skills.ports import Agents, Images, Llm, Memories, Schedules, Studio, Threads
from registry.skills.triggers import Scheduler, Webhooks

if TYPE_CHECKING:  # their models are built at import, and only few calls need them
    from registry.agents import AgentDefinition
    from registry.connections import Connections
    from registry.skills.skill import Skill

#: The settings of one pack.
S = TypeVar("S", bound=Model)

CallerKind = Literal["run", "person", "schedule", "generator", "plugin"]


@dataclass(frozen=True)
class Caller:
    """What asks for a call. Only a person's caller may hold authority of its own."""

    kind: CallerKind
    owner_id: str = "local"
    project_id: str | None = None
    #: The conversation it is part of, be it as a child of one of its runs.
    thread_id: str | None = None
    task_id: str | None = None
    run_id: str | None = None
    agent_id: str | None = None
    agent_name: str | None = None
    #: The being behind the agent: what it remembers outlives a project.
    being_id: str | None = None
    #: The id of the call: unique within its run, the key of rows a skill writes.
    call_id: str | None = None
    tier: str = "standard"


class Deadline:
    """A point on the monotonic clock; a call looks at it between chunks of work."""

    def __init__(self, seconds: float) -> None:
        self._at = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self._at - time.monotonic())

    @property
    def passed(self) -> bool:
        return self.left == 0.0


@dataclass(frozen=True)
class Entry:
    """One line of a folder: `type` is file, dir or link."""

    path: str
    type: Literal["file", "dir", "link"]
    size: int
    #: Epoch milliseconds.
    modified_at: int


@dataclass(frozen=True)
class Stored:
    """What a write left behind."""

    path: str
    bytes: int
    sha256: str
    created: bool
    previous_sha256: str | None = None


class Workspace(Protocol):
    """A project's folder behind a jail: no path leaves it, no link is followed (spec: skills 5).

    Every method takes relative POSIX paths and raises `SkillError` (`path_escape`, `invalid_input`, `not_found`,
    `conflict`, `too_large`, `quota`, `unsupported_type`).
    """

    def normalise(self, path: str, *, folder: bool = False) -> str:
        """The stored form of a path (NFC, no `.` segments); judged without touching the disk."""
        ...

    def read(self, path: str, *, max_bytes: int) -> bytes: ...

    def write(
        self,
        path: str,
        content: bytes,
        *,
        mode: Literal["overwrite", "create", "append"] = "overwrite",
        expected_sha256: str | None = None,
        max_bytes: int,
    ) -> Stored: ...

    def write_tree(self, folder: str, files: Mapping[str, bytes], *, overwrite: bool = False) -> list[Stored]:
        """Writes a folder of files, by path below it: all or none of a new one; else `conflict`, or each over its like
        with `overwrite`."""
        ...

    def entries(self, path: str, *, recursive: bool, enter: Callable[[str], bool] = lambda _path: True) -> list[Entry]:
        """What lies in a folder, sorted by path; hides `.officina` and temporary files.

        Args:
            enter: of a folder below, by its path: whether to look into it as well.
        """
        ...

    def exists(self, path: str) -> bool: ...

    def write_output(self, run_id: str, call_id: str, text: str) -> str:
        """Keeps a text that was too long for the model, where no skill can write; returns its path."""
        ...

    def lock(self, path: str, *, seconds: float = 10) -> AbstractContextManager[None]:
        """Holds the path against other calls that write it."""
        ...


@dataclass(frozen=True)
class Execution:
    """What a program in the sandbox did."""

    exit_code: int | None
    signal: str | None
    stdout: bytes
    stderr: bytes
    stdout_truncated: bool
    stderr_truncated: bool
    timed_out: bool
    duration_ms: int
    #: Regular files left in the scratch `out` folder: relative path and content; links are not followed or copied.
    files: list[tuple[str, bytes]]
    warnings: list[str] = field(default_factory=list)


class Sandbox(Protocol):
    """Runs a program that may be hostile, without network and without the workspace (spec: skills 7.10)."""

    def execute(
        self,
        argv: list[str],
        *,
        stdin: bytes,
        files: Mapping[str, bytes],
        timeout_s: float,
        cancelled: Callable[[], bool],
        max_output_bytes: int = 65_536,
        collect: bool = False,
    ) -> Execution:
        """Runs `argv` in a scratch folder that holds `files` read-only under `in/` and an empty `out/`.

        Raises:
            SkillError: `sandbox_unavailable` when this machine has none; nothing ran.
        """
        ...


@dataclass(frozen=True)
class RaisedSignal:
    signal_id: str
    status: str
    deduplicated: bool


class Signals(Protocol):
    """The desk, as far as a skill may write to it."""

    def raise_signal(
        self,
        caller: Caller,
        *,
        kind: str,
        title: str,
        body: str,
        options: list[str],
        priority: str,
        expires_in_hours: int,
    ) -> RaisedSignal: ...


@dataclass(frozen=True)
class Authority:
    """A person's yes. Made in three places only: the desk's invoke handler, the command line, a signal's answer."""

    #: The call the yes binds to; None when the person makes the call themselves.
    digest: str | None
    signal_id: str | None = None
    #: The release of the skill it was given for; None: it has none.
    release: str | None = None


@dataclass(frozen=True)
class Question:
    """What a skill wants to know from a person before it can answer."""

    title: str
    prompt: str
    #: JSON Schema of the answer.
    schema: dict[str, Json]
    #: [{id, label}]
    options: tuple[dict[str, str], ...] = ()


class AskPerson(Exception):
    """Control flow: raised by a skill; its run parks on the question, and the call runs again with the answer."""

    def __init__(self, question: Question) -> None:
        super().__init__(question.prompt)
        self.question = question


class Control(Protocol):
    """What a control tool may do to the run that calls it: queue work for a node of its graph."""

    def queue(self, node_type: str, key: str, value: Json) -> None:
        """Writes a queue key of the state.

        Raises:
            SkillError: `no_control_node` when the running graph has no such node; nothing is queued.
        """
        ...

    def extend(self, node_type: str, key: str, values: list[Json]) -> None:
        """Adds to a queue key that holds a list.

        Raises:
            SkillError: as `queue`.
        """
        ...

    def spawn(self, calls: list[Json]) -> list[str]:
        """Queues calls of children; returns the id each child will have.

        Raises:
            SkillError: as `queue`.
        """
        ...


class Shelf(Protocol):
    """The deferred tools of a run."""

    def load(self, names: Sequence[str]) -> "tuple[list[Skill], list[str]]":
        """Shows deferred tools to the model from its next call on, for the rest of the run.

        Returns:
            The tools of these names, those that were seen already too, and the names that no tool of the run has.
        """
        ...


class Documents(Protocol):
    """The documents (playbooks) an agent may read, as they were when its run began."""

    def instructions(self, name: str) -> tuple[str, list[str]]:
        """The text of a document and the paths of its supporting files.

        Raises:
            SkillError: `not_found`.
        """
        ...

    def file(self, name: str, path: str) -> str:
        """The content of a supporting file.

        Raises:
            SkillError: `not_found`.
        """
        ...


@dataclass(frozen=True)
class Colleague:
    """An agent a run can give work to, as `agents_list` shows it."""

    card: AgentCard
    role: str | None = None
    packs: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    #: Code and message of everything that keeps it from running here.
    faults: Callable[[], Sequence[str]] = field(default=tuple, compare=False)

    def to_json(self) -> dict[str, Json]:
        return {
            "id": self.card.id,
            "name": self.card.name,
            "role": self.role,
            "level": self.card.level,
            "packs": list(self.packs),
            "skills": list(self.skills),
        }


#: "No answer yet", where null is an answer: a rejection.
NO_ANSWER: Any = object()
#: "As it is": what `revise` gives for arguments it does not change.
KEEP: Any = object()


@dataclass
class SkillContext:
    """Everything one call may know and touch."""

    caller: Caller
    #: None for a person's own call: it has no map and no mode.
    policy: Policy | None = None
    #: Names this call may use; None: every registered skill.
    allowed: frozenset[str] | None = None
    workspace: Workspace | None = None
    sandbox: Sandbox | None = None
    jobs: Jobs | None = None
    signals: Signals | None = None
    memory: Memories | None = None
    notebook: Notebook | None = None
    schedules: Schedules | None = None
    scheduler: Scheduler | None = None
    webhooks: Webhooks | None = None
    studio: Studio | None = None
    threads: Threads | None = None
    agents: Agents | None = None
    llm: Llm | None = None
    images: Images | None = None
    net: Network | None = None
    web: Web | None = None
    connections: "Connections | None" = None
    meter: Meter | None = None
    control: Control | None = None
    shelf: Shelf | None = None
    documents: Documents | None = None
    #: Settings of the packs the agent holds, by the class of each.
    specs: Mapping[type[Model], Model] = field(default_factory=dict)
    #: The definition of the agent that calls; None: no agent does.
    agent: "AgentDefinition | None" = None
    #: Agents that can be spawned or handed over to.
    roster: Sequence[Colleague] = ()
    #: A person's answer to what this call asked with `AskPerson`; None is a rejection.
    answer: Json = NO_ANSWER
    #: A dress rehearsal: a world call that was approved is recorded, not carried out.
    rehearsal: bool = False
    #: Set when the run, its project or its worker stops; looked at between chunks.
    cancelled: Callable[[], bool] = field(default=lambda: False)
    #: Seconds of running time the run still has.
    time_left: float = float("inf")
    #: Epoch milliseconds; a virtual clock in rehearsed graphs.
    now_ms: Callable[[], int] = field(default=lambda: time.time_ns() // 1_000_000)
    #: Writes an event of the trace (`file.written` ...).
    emit: Callable[[str, dict[str, Json]], None] = field(default=lambda _kind, _data: None)
    #: Called with the `Checked` call: other arguments, which are checked anew, or `KEEP`; a `SkillError` refuses it.
    revise: Callable[[Any], Json] = field(default=lambda _checked: KEEP)
    #: Called with a `Checked` call that ran and its `SkillResult`; what it returns is the result that counts.
    review: Callable[[Any, Any], Any] = field(default=lambda _checked, result: result)
    #: Called with the `Checked` call right before it runs; raising a `SkillError` here means nothing ran.
    begin: Callable[[Any], None] = field(default=lambda _checked: None)
    #: Set by invoke: when the call must be over.
    deadline: Deadline = field(default_factory=lambda: Deadline(float("inf")))

    def spec(self, kind: type[S]) -> S:
        """The agent's settings of the pack whose they are; its defaults where it holds none."""
        found = self.specs.get(kind)
        return found if isinstance(found, kind) else kind()

    def check(self) -> None:
        """Between chunks of work: raises `cancelled` or `timeout` when the call should stop."""
        if self.cancelled():
            raise SkillError("cancelled", "the run was cancelled while this call was under way")
        if self.deadline.passed:
            raise SkillError("timeout", "the call took longer than it may", retryable=True)
