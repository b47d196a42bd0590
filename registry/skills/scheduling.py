"""`schedule.create`: work that is to begin later, once or again and again (spec: skills 7.22).

Creating is not approving: whatever a schedule runs goes through the one invoke when it is due, and asks then.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from registry.base import Json, Model
from registry.errors import Detail, SkillError
from registry.schedules import MINUTE_MS, Schedule, check_cron, is_zone, least_gap, local
from registry.skills.context import SkillContext
from registry.skills.moments import Moment
from registry.skills.skill import Skill, skill
from registry.text import not_blank, one_line, storable
from registry.times import epoch_ms

NOT_WIRED: Final = "no schedules are wired to this call: nothing was created"
#: Minutes between two firings, at least, and times that are looked at to tell.
LEAST_MINUTES: Final = 5
LOOKED_AT: Final = 20
#: How far from now a single moment, or the first of many, may lie.
SOONEST_MS: Final = 30_000
LATEST_MS: Final = 2 * 366 * 24 * 60 * MINUTE_MS

Title = Annotated[str, StringConstraints(min_length=1, max_length=120), AfterValidator(one_line)]


def _zone(name: str) -> str:
    if not is_zone(name):
        raise ValueError("is no time zone; use an IANA name such as Europe/Warsaw")
    return name


def _cron(spec: str) -> str:
    if fault := check_cron(spec):
        raise ValueError(fault)
    return spec


class PromptAction(Model):
    """An agent is given a text to act on."""

    kind: Literal["prompt"]
    text: Annotated[
        str, StringConstraints(min_length=1, max_length=2000), AfterValidator(not_blank), AfterValidator(storable)
    ]


class SkillAction(Model):
    """A skill is called; one that acts on the world asks a person each time."""

    kind: Literal["skill"]
    skill: Annotated[str, StringConstraints(min_length=1, max_length=60)]
    input: dict[str, Json] = Field(default_factory=dict)


class GeneratorAction(Model):
    """A saved generator is run."""

    kind: Literal["generator"]
    generator_id: Annotated[str, StringConstraints(min_length=1, max_length=100)]
    inputs: dict[str, Json] = Field(default_factory=dict)


Action = Annotated[PromptAction | SkillAction | GeneratorAction, Field(discriminator="kind")]


class CreateSchedule(Model):
    title: Title
    at: Moment | None = Field(default=None, description="once, at this moment: ISO 8601 with an offset")
    every_minutes: int | None = Field(default=None, ge=LEAST_MINUTES, le=43_200)
    cron: Annotated[str, StringConstraints(max_length=200), AfterValidator(_cron)] | None = Field(
        default=None, description="five fields: minute, hour, day of month, month, day of week"
    )
    timezone: Annotated[str, StringConstraints(max_length=60), AfterValidator(_zone)] | None = Field(
        default=None, description="IANA name, for cron; the owner's when left out"
    )
    action: Action
    start_at: Moment | None = None
    end_at: Moment | None = None
    max_runs: int | None = Field(default=None, ge=1, le=1000)

    @model_validator(mode="after")
    def _one_time(self) -> "CreateSchedule":
        given = [name for name in ("at", "every_minutes", "cron") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError("exactly one of at, everyMinutes and cron says when it runs")
        if self.start_at is not None and self.end_at is not None and self.end_at <= self.start_at:
            raise ValueError("endAt has to be later than startAt")
        return self


class CreatedSchedule(Model):
    schedule_id: str | None = None
    kind: Literal["at", "every", "cron"] | None = None
    #: Up to three, each with its offset.
    next_runs: list[str] = Field(default_factory=list)
    timezone: str | None = None
    #: When it runs, in words.
    description: str | None = None
    wired: bool = True
    note: str | None = None


@skill("schedule.create", title="Create a schedule", timeout_s=5, effect="idempotent", needs=("schedules",))
def create(given: CreateSchedule, context: SkillContext) -> CreatedSchedule:
    """Lets something begin later: once (`at`), every so many minutes (5 to 43,200), or by five cron fields in a time
    zone. `action` gives an agent a prompt, calls a skill, or runs a generator. Creating approves nothing: a skill that
    acts on the world asks a person each time it is due. Two runs are at least 5 minutes apart; `startAt`, `endAt` and
    `maxRuns` bound it; an owner has at most 50 active ones. A time missed by more than 15 minutes is left out, and
    one that comes while the last run still works is skipped. Schedules cannot be changed or deleted from here."""
    if context.schedules is None:
        return CreatedSchedule(wired=False, note=NOT_WIRED)
    now = context.now_ms()
    if (before := context.schedules.made(context.caller)) is not None:
        return _told(*before, now)
    schedule = schedule_of(given, given.timezone or context.schedules.timezone, now)
    for field, words in faults(schedule, now):
        raise SkillError("invalid_input", f"{field}: {words}", details=[Detail(field, words)])
    allowed, policy = context.allowed, context.policy
    return _told(context.schedules.create(context.caller, schedule, allowed=allowed, policy=policy), schedule, now)


def _told(schedule_id: str, schedule: Schedule, now: int) -> CreatedSchedule:
    moments = islice(schedule.times(now), min(3, schedule.max_runs or 3))
    return CreatedSchedule(
        schedule_id=schedule_id,
        kind=schedule.kind,
        next_runs=[local(moment, schedule.timezone) for moment in moments],
        timezone=schedule.timezone,
        description=schedule.words,
    )


def schedule_of(given: CreateSchedule, timezone: str, now: int) -> Schedule:
    """The schedule that an input means.

    Args:
        timezone: IANA name, where the input names none.
        now: epoch milliseconds.
    """
    if given.at is not None:
        kind, spec = "at", str(epoch_ms(given.at))
    elif given.every_minutes is not None:
        kind, spec = "every", str(given.every_minutes)
    else:
        kind, spec = "cron", str(given.cron)
    return Schedule(
        title=given.title.strip(),
        kind=kind,  # type: ignore[arg-type]
        spec=spec,
        timezone=timezone,
        action=given.action.to_json(),
        anchor=now,
        start_at=None if given.start_at is None else epoch_ms(given.start_at),
        end_at=None if given.end_at is None else epoch_ms(given.end_at),
        max_runs=given.max_runs,
    )


def faults(schedule: Schedule, now: int, least_minutes: int = LEAST_MINUTES) -> Iterator[tuple[str, str]]:
    """(field, what is wrong with it)"""
    if schedule.kind == "at":
        if int(schedule.spec) < now + SOONEST_MS:
            yield "at", f"has to be {SOONEST_MS // 1000} seconds from now at least"
        elif int(schedule.spec) > now + LATEST_MS:
            yield "at", "lies more than 2 years ahead"
    if schedule.end_at is not None and schedule.end_at <= now:
        yield "endAt", "is past"
    if schedule.start_at is not None and schedule.start_at > now + LATEST_MS:
        yield "startAt", "lies more than 2 years ahead"
    field = {"at": "at", "every": "everyMinutes", "cron": "cron"}[schedule.kind]
    if schedule.next_time(now) is None:
        yield field, "never comes due between startAt and endAt"
    gap = least_gap(schedule, now, LOOKED_AT)
    if gap is not None and gap < least_minutes * MINUTE_MS:
        yield field, f"comes due twice within {least_minutes} minute{'s' if least_minutes > 1 else ''}"


SKILLS: tuple[Skill, ...] = (create,)

__all__ = ["SKILLS", "CreateSchedule", "create", "faults", "schedule_of"]
