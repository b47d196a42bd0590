"""What the API's answers look like, for its OpenAPI document. The views make them; a test holds the two together."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from orchestrator.states import ProjectStatus, TaskStatus
from registry.base import Json


class Out(BaseModel):
    """Part of an answer. Later releases may add fields."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="allow")


class ProjectLine(Out):
    """A project in a list."""

    id: str
    title: str
    status: ProjectStatus
    reason: str | None = None
    cost_usd: float
    cost_incomplete: bool | None = Field(None, description="Some price was unknown: the cost is a lower bound.")
    created_at: int = Field(description="Epoch milliseconds, as every time here.")
    ended_at: int | None
    tasks: int = Field(description="How many there are.")
    ended_tasks: int
    history_pruned_at: int | None = Field(None, description="When its history was taken away, because it was old.")
    files_pruned_at: int | None = Field(None, description="The same of its workspace.")


class ErrorView(Out):
    code: str | None
    message: str | None
    node: str | None


class RunView(Out):
    """A run: a task's own, or a child of one."""

    id: str
    parent_id: str | None
    kind: str
    status: str
    on: str | None = Field(description="What a parked run waits for.")
    code: str | None
    steps: int
    attempt: int
    queue: str | None = Field(None, description="Where it waits for a free slot, unless that is the default queue.")
    due_at: int | None = Field(None, description="When a run that waits for a time goes on.")
    children: list["RunView"]


class TaskView(Out):
    key: str
    id: str
    title: str
    role: str
    status: TaskStatus
    reason: str | None = None
    agent: str
    depends_on: list[str]
    output: Json
    error: ErrorView | None
    cost_usd: float
    started_at: int | None
    ended_at: int | None
    runs: list[RunView]


class FileView(Out):
    path: str
    bytes: int
    sha256: str


class SignalView(Out):
    """A question to a person, or something a person should know; with exactly what a yes would run."""

    id: str
    kind: str
    status: Literal["open", "answered", "expired", "dismissed"]
    title: str
    options: list[dict[str, Any]]
    priority: str
    action: Json = Field(description="{toolCallId, skill, input}: secrets in it are masked.")
    digest: str | None
    schema_: dict[str, Any] = Field(alias="schema", description="What a payload has to fit.")
    answer: Json
    rejected: bool
    execution: Literal["none", "started", "succeeded", "failed", "unknown"]
    created_at: int
    expires_at: int | None


class ProjectView(Out):
    """A project whole: what `officina show ID --json` prints."""

    id: str
    title: str
    status: ProjectStatus
    reason: str | None = None
    cost_usd: float
    max_cost_usd: float | None = Field(None, description="Its budget, as a person has extended it; absent: none.")
    rehearsal: bool | None = Field(None, description="The stand-in plays the model, and nothing acts on the world.")
    created_at: int
    ended_at: int | None
    history_pruned_at: int | None = Field(None, description="When its history was taken away, because it was old.")
    files_pruned_at: int | None = Field(None, description="The same of its workspace.")
    workspace: str
    tasks: list[TaskView]
    files: list[FileView]
    signals: list[SignalView]
    unknown: list[dict[str, Any]] = Field(description="Calls that may have happened, and nobody has spoken about.")
    plan: dict[str, Any] | None = Field(
        None, description="A plan that waits for its start: {goal?, summary?, note?, dropped?, version, tasks}."
    )
    live: dict[str, Any] | None = Field(
        None,
        description="Only when asked for: {now, workers, promised: paths by task id, fanouts: {counts, atWork} by the "
        "id of the run that waits}.",
    )


class EventView(Out):
    """A line of a trace."""

    seq: int = Field(description="Rises by one from line to line; the id of a server-sent event.")
    at: int
    kind: str
    project_id: str | None = None
    data: dict[str, Any]


class ProjectPage(Out):
    items: list[ProjectLine]
    next: str | None = Field(description="Cursor of the next page; null on the last.")


class EventPage(Out):
    items: list[EventView]
    next: int | None = Field(description="Give it as `after` for the lines that follow; null: these are all, so far.")


class SignalPage(Out):
    items: list[SignalView]
    next: str | None


class FileList(Out):
    items: list[FileView]


class KeyView(Out):
    """A key, without its text."""

    id: str
    name: str
    scopes: list[str]
    created_at: int
    last_used_at: int | None = Field(description="When it was last shown, to the minute.")
    revoked_at: int | None
    expires_at: int | None = Field(description="From when on it is refused as `key_expired`; null: never.")


class KeyList(Out):
    items: list[KeyView]


class NewKey(KeyView):
    key: str = Field(description="The key's text. It is shown this once.")
