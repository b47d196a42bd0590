"""`signal.raise`: telling or asking the person, without waiting and without any power over a call."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from registry.base import Model
from registry.skills.context import SkillContext
from registry.skills.skill import skill
from registry.text import one_line, storable

Title = Annotated[str, StringConstraints(min_length=1, max_length=120), AfterValidator(one_line)]
Choice = Annotated[str, StringConstraints(min_length=1, max_length=40), AfterValidator(one_line)]


class RaiseSignal(Model):
    title: Title
    body: Annotated[str, StringConstraints(max_length=4000), AfterValidator(storable)] = ""
    kind: Literal["notice", "question", "alert", "result"] = "notice"
    #: A question's answers to choose from.
    options: list[Choice] = Field(default_factory=list, max_length=5)
    priority: Literal["low", "normal", "high"] = "normal"
    expires_in_hours: Annotated[int, Field(ge=1, le=720)] = 168

    @model_validator(mode="after")
    def _options_fit(self) -> "RaiseSignal":
        if self.kind == "question" and len(self.options) < 2:
            raise ValueError("a question needs 2 to 5 options")
        if self.kind != "question" and self.options:
            raise ValueError(f"a {self.kind} takes no options")
        trimmed = [option.strip() for option in self.options]
        if len(set(trimmed)) != len(trimmed):
            raise ValueError("two options are the same")
        return self


class Raised(Model):
    signal_id: str | None = None
    status: str
    deduplicated: bool = False
    wired: bool = True
    note: str | None = None


@skill("signal.raise", title="Raise a signal", timeout_s=5, effect="idempotent", needs=("signals",))
def raise_signal(wanted: RaiseSignal, context: SkillContext) -> Raised:
    """Puts a notice, question, alert or result on the desk of the person you work for and goes on at once. It does not
    wait for an answer (ask_user does) and cannot approve anything."""
    if context.signals is None:
        return Raised(status="none", wired=False, note="no desk is wired here: nothing was raised")
    raised = context.signals.raise_signal(
        context.caller,
        kind=wanted.kind,
        title=wanted.title,
        body=wanted.body,
        options=[option.strip() for option in wanted.options],
        priority=wanted.priority,
        expires_in_hours=wanted.expires_in_hours,
    )
    return Raised(signal_id=raised.signal_id, status=raised.status, deduplicated=raised.deduplicated)


SKILLS = (raise_signal,)
