"""The script of `officina graph run`: model turns, stub tools and answers instead of the outside (spec: engine 22)."""

import time
from collections.abc import Callable
from typing import Any

from pydantic import Field, ValidationError

from registry.base import Json, Model
from registry.errors import Fault, SkillError, WrongUse
from registry.permissions import Gate, Mode
from registry.skills.context import SkillContext
from registry.skills.contract import SchemaContract
from registry.skills.skill import Effect, Skill


class StubTool(Model):
    """A tool that only answers."""

    returns: Json = None
    raises: str | None = None
    #: Milliseconds of real time it takes.
    delay_ms: float = Field(0, ge=0)
    schema_: dict[str, Json] = Field(default_factory=lambda: {"type": "object"}, alias="schema")
    operations: list[str] = Field(default_factory=list)
    effect: Effect = "once"


class Script(Model):
    """What stands in for the outside (spec: engine 22)."""

    input: Json = None
    start_state: dict[str, Json] = Field(default_factory=dict)
    model: list[dict[str, Json]] = Field(default_factory=list)
    tools: dict[str, StubTool] = Field(default_factory=dict)
    answers: list[Json] = Field(default_factory=list)
    agents: dict[str, dict[str, Json]] = Field(default_factory=dict)
    mode: Mode | None = None
    permissions: dict[str, Gate] = Field(default_factory=dict)


def read_script(raw: Json) -> Script:
    """A script file's content.

    Raises:
        WrongUse: with a fault for each field that is not as it should be.
    """
    try:
        return Script.model_validate(raw)
    except ValidationError as error:
        faults = [
            Fault(".".join(map(str, e["loc"])), "script_shape", e["msg"]) for e in error.errors(include_url=False)
        ]
        raise WrongUse("the script cannot be used", code="script_shape", faults=faults) from None


def stub(name: str, spec: StubTool) -> Skill:
    """A stub tool: what it returns or raises, after a real delay."""

    def answer(_arguments: Any, context: SkillContext) -> Json:
        _wait(spec.delay_ms / 1000, context.check)
        if spec.raises is not None:
            raise SkillError("tool_failed", spec.raises)
        return spec.returns

    return Skill(
        name=name,
        title=name,
        description=f"stub tool {name}",
        input=SchemaContract(spec.schema_),
        run=answer,
        operations=frozenset(spec.operations),
        effect=spec.effect,
    )


def _wait(seconds: float, check: Callable[[], None]) -> None:
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        check()
        time.sleep(min(left, 0.05))
