"""The pack `scheduler`: what is said in a thread again and again, at times an agent sets (spec: engine 15, 20).

Setting a schedule asks nobody, because nothing it starts may do more than its maker: every run of it goes through the
gates of its agent, in the maker's mode or a stricter one.
"""

from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from registry.base import Json, Model
from registry.errors import SkillError
from registry.packs.agents import top_level
from registry.packs.pack import Pack
from registry.schedules import check_cron, is_zone
from registry.skills.context import SkillContext
from registry.skills.skill import Effect, tool
from registry.skills.triggers import Hand, Planned, Scheduler
from registry.text import one_line, storable

NOT_WIRED: Final = "no schedules are kept here: nothing was done"

Id = Annotated[str, StringConstraints(min_length=1, max_length=100)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=120, strip_whitespace=True), AfterValidator(one_line)]
Detail = Annotated[str, StringConstraints(max_length=4000), AfterValidator(storable)]


def _cron(spec: str) -> str:
    if fault := check_cron(spec):
        raise ValueError(fault)
    return spec


def _zone(name: str) -> str:
    if not is_zone(name):
        raise ValueError("is no time zone; use an IANA name such as Europe/Warsaw")
    return name


class ListSchedules(Model):
    pass


class Peek(Model):
    id: Id
    last: int = Field(default=1, ge=1, le=99)


class SetSchedule(Model):
    id: Id | None = Field(default=None, description="of the schedule to change; a new one when left out")
    name: Name | None = None
    cron: Annotated[str, StringConstraints(max_length=200), AfterValidator(_cron)] | None = Field(
        default=None, description="five fields: minute, hour, day of month, month, day of week"
    )
    timezone: Annotated[str, StringConstraints(max_length=60), AfterValidator(_zone)] | None = Field(
        default=None, description="IANA name; UTC when left out"
    )
    detail: Detail | None = Field(default=None, description="what is said in the thread each time")
    agent_id: Id | None = Field(default=None, description="who it is said to; you when left out")
    mode: Literal["ask", "auto", "dont_ask", "bypass"] | None = Field(
        default=None, description="of its runs; yours when left out, and never beyond it"
    )
    history: Literal["none", "last", "all"] | None = Field(
        default=None, description="what a run knows of the thread's earlier ones; none when left out"
    )
    history_last: int | None = Field(default=None, ge=1, le=99)
    thread_id: Id | None = Field(default=None, description="self, or an id; a thread of its own when left out")

    @model_validator(mode="after")
    def _fits(self) -> "SetSchedule":
        if self.history_last is not None and self.history not in (None, "last"):
            raise ValueError("historyLast goes with history last")
        if self.id is None:
            missing = [word for word in ("name", "cron") if getattr(self, word) is None]
            if missing:
                raise ValueError(f"a new schedule needs {' and '.join(missing)}; to change one, give its id")
        return self


class Pause(Model):
    id: Id
    paused: bool


class Delete(Model):
    id: Id


class ScheduleSet(Model):
    schedule: dict[str, Json]
    thread: dict[str, Json]


class Deleted(Model):
    id: str


def _effect(given: SetSchedule) -> Effect:
    return "once" if given.id is None else "idempotent"


@tool("schedule_list", title="List schedules", timeout_s=5, needs=("scheduler",))
def list_schedules(_asked: ListSchedules, context: SkillContext) -> list[dict[str, Json]]:
    """Lists your schedules: those you made, and those that speak to you. Times are epoch milliseconds."""
    return _scheduler(context).rows(context.caller)


@tool(
    "schedule_peek",
    title="Look at firings",
    timeout_s=5,
    needs=("scheduler",),
    fails=("not_found",),
)
def peek(asked: Peek, context: SkillContext) -> list[dict[str, Json]]:
    """Shows what became of the last due times of a schedule, the latest first: what was said, which tools were called,
    errors."""
    return _scheduler(context).peek(context.caller, asked.id, asked.last)


@tool(
    "schedule_set",
    title="Set a schedule",
    timeout_s=10,
    effect=_effect,
    needs=("scheduler",),
    fails=("conflict", "denied", "not_found", "quota"),
)
def set_schedule(wanted: SetSchedule, context: SkillContext) -> ScheduleSet:
    """Makes a schedule, or changes the one whose id you give. Each time it is due its detail is said in its thread to
    its agent, who then works as in any conversation and asks a person where it always does. Two times lie at least a
    minute apart. A busy thread takes it later, once; a time found more than 15 minutes late is left out. Five failed
    runs in a row pause it. It never fires at the moment it is set."""
    scheduler = _scheduler(context)
    given = wanted.to_json()
    agent_id = top_level(wanted.agent_id, context.roster).card.id if wanted.agent_id is not None else None
    planned = Planned(
        id=wanted.id,
        name=wanted.name,
        cron=wanted.cron,
        timezone=wanted.timezone,
        detail=wanted.detail,
        agent_id=agent_id,
        mode=wanted.mode,
        history=wanted.history if wanted.history is not None or wanted.history_last is None else "last",
        history_last=wanted.history_last,
        thread_id=wanted.thread_id,
    )
    if wanted.id is not None and not given.keys() - {"id"}:
        raise SkillError("invalid_input", "there is nothing to change: give what should be different")
    return ScheduleSet.model_validate(scheduler.save(Hand(context.caller, context.agent, context.policy), planned))


@tool(
    "schedule_pause",
    title="Pause a schedule",
    timeout_s=5,
    effect="idempotent",
    needs=("scheduler",),
    fails=("conflict", "denied", "not_found", "quota"),
)
def pause(wanted: Pause, context: SkillContext) -> dict[str, Json]:
    """Pauses a schedule, or lets it go on from its next time; what was due meanwhile is not made up for."""
    return _scheduler(context).pause(context.caller, wanted.id, paused=wanted.paused)


@tool(
    "schedule_delete",
    title="Delete a schedule",
    timeout_s=5,
    effect="idempotent",
    needs=("scheduler",),
    fails=("denied", "not_found"),
)
def delete(wanted: Delete, context: SkillContext) -> Deleted:
    """Deletes a schedule and what it has waiting. Its thread and runs stay."""
    _scheduler(context).delete(context.caller, wanted.id)
    return Deleted(id=wanted.id)


def _scheduler(context: SkillContext) -> Scheduler:
    if context.scheduler is None:
        raise SkillError("not_wired", NOT_WIRED)
    return context.scheduler


PACK = Pack(
    "scheduler",
    "have things said in threads at set times",
    (list_schedules, peek, set_schedule, pause, delete),
)
