"""The bounds of the engine, as a group of settings."""

from pydantic import Field, model_validator

from registry.graph.limits import GraphLimits


class Limits(GraphLimits):
    """Bounds of the engine; one table, so that a limit has one name everywhere (spec: engine 21)."""

    calls_per_batch: int = Field(32, ge=1)
    """Tool calls one batch may hold."""
    spawn_calls: int = Field(256, ge=1)
    """Children one spawn may start."""
    spawn_depth: int = Field(8, ge=1)
    """How deep spawned runs may nest; the root is 0."""
    handoffs_per_run: int = Field(16, ge=1)
    """Times one run may change its speaker."""
    tool_output_chars: int = Field(30_000, ge=100)
    """Characters of a tool result the model sees; longer ones keep head and tail."""
    tool_output_head_chars: int = Field(8_000, ge=10)
    """Characters kept from the start of a clipped result."""
    tool_output_tail_chars: int = Field(8_000, ge=10)
    """Characters kept from the end of a clipped result."""
    event_bytes: int = Field(65_536, ge=1_024)
    """Bytes one event may have."""
    pending_triggers: int = Field(20, ge=1)
    """Messages of schedules and webhooks that may wait for a busy thread."""
    late_schedule_s: int = Field(900, ge=1)
    """Seconds a due time may be found late and still be worked off; later it is missed."""
    signal_life_days: int = Field(7, ge=1)
    """Days until an unanswered signal expires."""
    open_decisions_per_project: int = Field(20, ge=1)
    """Decisions of one project that may wait for a person at once."""
    run_attempts: int = Field(3, ge=1)
    """Times a run may be begun without reaching a new checkpoint before it ends as `poison`. From the second time on it
    has a process to itself, and only the death of that counts."""
    run_claims: int = Field(20, ge=1)
    """Claims without a new checkpoint after which a run ends as `poison` though nobody saw its process die."""
    stuck_s: float = Field(30, gt=0)
    """Seconds beyond its own time after which a call counts as stuck: its run goes on elsewhere."""
    stuck_calls: int = Field(8, ge=1)
    """Stuck calls one worker puts up with before it leaves, so that its supervisor starts a fresh one."""
    deaf_s: float = Field(60, gt=0)
    """Seconds a worker may hear nothing while runs wait and the broker answers, before it is started again."""
    silent_s: float = Field(60, gt=0)
    """Seconds without a sign of life in its row after which a worker's supervisor kills it."""
    retry_backoff_s: float = Field(2, ge=0)
    """Seconds a failed task waits before its next attempt; doubled with each, to 5 minutes at most; 0: none."""
    lease_s: float = Field(30, gt=0)
    """Seconds a claim holds without being renewed."""
    renew_s: float = Field(10, gt=0)
    """Seconds between renewals."""
    clock_tick_s: float = Field(1, gt=0)
    """Seconds between looks of the clock, at most: there are eight within a lease at least."""
    tool_timeout_ms: int = Field(120_000, ge=1)
    """Milliseconds a tool may take when it names no time of its own."""
    hook_timeout_s: float = Field(30, gt=0)
    """Seconds a hook may take to answer."""
    tool_threads: int = Field(8, ge=1)
    """Calls of one batch that run at once."""
    item_run_steps: int = Field(50, ge=1)
    """Steps of a map item whose parent has no budget."""
    tools_per_request: int = Field(128, ge=1)
    """Tools offered in one model call."""
    load_tools_names: int = Field(16, ge=1)
    """Tools one call of `load_tools` may name."""
    deferred_catalogue_entries: int = Field(60, ge=0)
    """Deferred tools that are listed to a model, and the characters their list may have."""
    deferred_catalogue_chars: int = Field(4_000, ge=100)
    skill_catalogue_entries: int = Field(40, ge=0)
    """Documents that are listed to a model, and the characters their list may have."""
    skill_catalogue_chars: int = Field(4_000, ge=100)
    agent_turns: int = Field(10, ge=1)
    """Model calls of a team agent before the closing one."""
    task_deadline_s: float = Field(600, gt=0)
    """Seconds of running time a task may take."""
    project_tasks: int = Field(5_000, ge=1)
    """Tasks a submitted plan may hold."""
    parallel_tasks: int = Field(32, ge=1)
    """Runs of one project that work at once, unless its file says otherwise."""
    owner_parallel: int | None = Field(None, ge=1)
    """Runs of one owner that work at once, over all projects; none: no limit."""
    task_requests: int = Field(40, ge=1)
    """GETs web skills of one task may make."""
    task_hosts: int = Field(20, ge=1)
    """Hosts web skills of one task may ask."""
    attachment_bytes: int = Field(20 * 1024 * 1024, ge=1)
    """Bytes the files may have together that come with one message."""
    events_per_run: int = Field(5_000, ge=100)
    """Events of one run before only states and signals are kept."""

    @model_validator(mode="after")
    def _renewed_in_time(self) -> "Limits":
        if self.renew_s > self.lease_s / 2:
            facts = f"renew_s is {self.renew_s:g} and lease_s {self.lease_s:g}"
            raise ValueError(f"{facts}: a lease has to hold for two renewals at least")
        return self
