"""The stand-in script: what the model says and calls, turn by turn, when nobody pays for a model (spec: project 2).

Its texts are Jinja templates over real data of the run. Here they are only parsed, so that a script with a mistake is
refused at submit; what they may do is the business of whoever fills them.
"""

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from registry.base import Json, Model
from registry.errors import Fault, WrongUse
from registry.graph.findings import quoted
from registry.graph.values import kind
from registry.projects.faults import Names, check, ordered

if TYPE_CHECKING:
    pass

#: Skills that call a model themselves.
MODEL_SKILLS: Final = ("llm.generate", "llm.structured", "web.research", "scene3d.create")
MAX_TURNS: Final = 1_000
MAX_DELAY_MS: Final = 60_000


class ScriptedCall(Model):
    """A tool call of a turn; texts inside `args` are templates."""

    name: Annotated[str, Field(min_length=1, max_length=120)]
    args: dict[str, Json] = Field(default_factory=dict)
    #: What templates call it by in `byId`.
    id: Annotated[str, Field(min_length=1, max_length=120)] | None = None


class Turn(Model):
    """One answer of the model: words, calls, or an object where a structured answer is wanted."""

    say: str | None = None
    calls: list[ScriptedCall] = Field(default_factory=list)
    output: dict[str, Json] | None = None

    @model_validator(mode="after")
    def _says_something(self) -> "Turn":
        if self.say is None and self.output is None and not self.calls:
            raise PydanticCustomError("required", "a turn needs say, calls or output")
        return self


def _spoken(value: Any) -> Any:
    return {"say": value} if isinstance(value, str) else value


#: Of a skill's own model call: a text is short for a turn that says it.
Answer = Annotated[Turn, BeforeValidator(_spoken)]
Turns = Annotated[list[Turn], Field(max_length=MAX_TURNS)]
Answers = Annotated[list[Answer], Field(max_length=MAX_TURNS)]


class Script(Model):
    """Whose turns are whose."""

    #: Task key -> turns of its root run.
    tasks: dict[str, Turns] = Field(default_factory=dict)
    #: Agent id or name -> turns of each child run of it.
    agents: dict[str, Turns] = Field(default_factory=dict)
    #: Task key -> turns of each of its map items.
    items: dict[str, Turns] = Field(default_factory=dict)
    #: Skill -> answers to the model calls it makes itself.
    skills: dict[str, Answers] = Field(default_factory=dict)
    #: Milliseconds each turn takes.
    delay_ms: Annotated[int, Field(ge=0, le=MAX_DELAY_MS)] = 0
    #: For runs the script says nothing about: work by rule, or fail.
    otherwise: Literal["rule", "fail"] = "rule"


def read_script(document: Json, *, tasks: Collection[str] | None = None) -> Script:
    """The script of a document as read.

    Args:
        document: JSON.
        tasks: keys of the plan it is for; None when they are not known.

    Raises:
        WrongUse: with every fault.
    """
    script, faults = check_script(document, tasks=tasks)
    if script is None:
        raise WrongUse(str(faults[0]), code="script_invalid", faults=faults)
    return script


def check_script(
    document: Json, *, tasks: Collection[str] | None = None, at: str = ""
) -> tuple[Script | None, list[Fault]]:
    """The script, or None and every fault of it, sorted by path; `at` goes before each path."""
    if not isinstance(document, dict):
        return None, [Fault(at, "wrong_type", f"a stand-in script is an object, found {kind(document)}")]
    script, faults = check(Script, document, at=at)
    faults += _unknown_keys(document, tasks, at)
    faults += _templates(document, at)
    return (None if faults else script), ordered(faults)


def _unknown_keys(document: dict[str, Json], tasks: Collection[str] | None, at: str) -> Iterator[Fault]:
    registries: list[tuple[str, Collection[str], str]] = [("skills", MODEL_SKILLS, "skill that calls a model is named")]
    if tasks is not None:
        registries += [(section, tuple(tasks), "task has the key") for section in ("tasks", "items")]
    for section, known, what in registries:
        names = Names(known)
        written = document.get(section)
        for name in written if isinstance(written, dict) else ():
            if name not in known:
                code = "unknown_skill" if section == "skills" else "unknown_task"
                message = f"no {what} {quoted(name)}{names.suggestion(name)}"
                yield Fault(f"{at}.{section}.{name}" if at else f"{section}.{name}", code, message)


def _templates(document: dict[str, Json], at: str) -> Iterator[Fault]:
    """Texts that are no templates, at their places; keys are never templates."""
    for section in ("tasks", "agents", "items", "skills"):
        for path, text in _texts(document.get(section), f"{at}.{section}" if at else section):
            reason = _mistake(text)
            if reason:
                yield Fault(path, "template", reason)


def _texts(value: Json, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(item, f"{path}[{index}]")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(item, f"{path}.{key}")


def _mistake(source: str) -> str | None:
    """Why a text cannot be read as a template; None when it can. What the stand-in would refuse is refused here."""
    if not any(mark in source for mark in ("{{", "{%", "{#")):
        return None
    from registry.templates import mistake

    return mistake(source)


__all__ = ["MODEL_SKILLS", "Answer", "Script", "ScriptedCall", "Turn", "check_script", "read_script"]
