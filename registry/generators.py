"""Generators: saved plans with blanks in them (spec: skills 7.28, 16). Filled with inputs they make a project's plan.

A blank is `{{key}}`, and nothing else than a key can stand in it. Blanks are filled once: what a value says is never
read again.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Final, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from registry.base import Json, Model
from registry.errors import Fault
from registry.text import not_blank, one_line, storable

if TYPE_CHECKING:  # whoever only writes a generator need not load what plans are checked by
    from registry.plans import PlannedTask

InputType = Literal["text", "longtext", "number", "boolean", "choice", "url"]

#: The folder of the generators that ship, one a file whose name is the id.
SHIPPED: Final = Path(__file__).with_suffix("")
MAX_STEPS: Final = 12
MAX_INPUTS: Final = 12
#: Characters a value may have, by type.
TEXT_CHARS: Final[Mapping[str, int]] = {"text": 500, "longtext": 4_000, "url": 2_048, "choice": 100}
MAX_INSTRUCTION: Final = 4_000
#: Anything that looks like a blank, so that one that is none can be told.
_BLANK: Final = re.compile(r"\{\{([^{}]*)\}\}")

#: As in a plan.
Slug = Annotated[str, StringConstraints(min_length=1, max_length=40, pattern=r"^[a-z0-9][a-z0-9_-]*$")]
Label = Annotated[str, StringConstraints(min_length=1, max_length=100), AfterValidator(one_line)]


class GeneratorInput(Model):
    """One thing to be filled in."""

    key: Slug
    label: Label
    type: InputType
    required: bool = False
    default: str | int | float | bool | None = None
    #: What a choice may be.
    options: list[Label] = Field(default_factory=list, max_length=20)

    @model_validator(mode="after")
    def _fits(self) -> "GeneratorInput":
        if (self.type == "choice") != bool(self.options):
            raise ValueError("a choice needs options, and nothing else takes any")
        if len(set(self.options)) != len(self.options):
            raise ValueError("two options are the same")
        if self.default is not None and (fault := value_fault(self, self.default)):
            raise ValueError(f"the default {fault}")
        return self


class GeneratorStep(Model):
    """One task of the plan."""

    key: Slug
    title: Annotated[str, StringConstraints(min_length=1, max_length=120), AfterValidator(one_line)]
    role: Annotated[str, StringConstraints(min_length=1, max_length=40), AfterValidator(one_line)]
    instruction: Annotated[
        str,
        StringConstraints(min_length=1, max_length=MAX_INSTRUCTION),
        AfterValidator(not_blank),
        AfterValidator(storable),
    ]
    skills: list[str] = Field(default_factory=list, max_length=30)
    depends_on: list[str] = Field(default_factory=list, max_length=MAX_STEPS)
    tier: Literal["fast", "standard", "deep"] = "standard"


class Generator(Model):
    """A generator as it is written and saved."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=60), AfterValidator(one_line)]
    description: Annotated[str, StringConstraints(max_length=500), AfterValidator(storable)] = ""
    inputs: list[GeneratorInput] = Field(default_factory=list, max_length=MAX_INPUTS)
    steps: list[GeneratorStep] = Field(min_length=1, max_length=MAX_STEPS)


class Unusable(Exception):
    """Inputs a generator cannot run with."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("; ".join(map(str, faults)))
        self.faults = faults


@lru_cache(maxsize=1)
def built_in() -> Mapping[str, Generator]:
    """The generators that ship, by id; everybody can run them, and nobody changes or deletes them."""
    found = {path.stem: path.read_text(encoding="utf-8") for path in SHIPPED.glob("*.json")}
    return MappingProxyType({id_: Generator.model_validate_json(text) for id_, text in sorted(found.items())})


def faults(generator: Generator, catalogued: frozenset[str]) -> list[Fault]:
    """What is wrong between the parts of a generator.

    Args:
        catalogued: skills a step may name.
    """
    from registry.graph.checks.known import Registries
    from registry.plans import PlanLimits, check_plan

    keys = [one.key for one in generator.inputs]
    found = [
        Fault(f"inputs[{place}].key", "duplicate_key", f"inputs[{keys.index(key)}] has the key {key!r} too")
        for place, key in enumerate(keys)
        if keys.index(key) < place
    ]
    raw = [step.to_json() for step in generator.steps]
    known = Registries(skills=catalogued, documents=frozenset())
    limits = PlanLimits(tasks=MAX_STEPS)
    found += [
        Fault(f.path.replace("tasks", "steps", 1), f.code, f.message) for f in check_plan(raw, known, limits=limits)
    ]
    for path, blank in _blanks(generator):
        if blank not in keys:
            words = f"{{{{{blank[:60]}}}}} is no input of this generator: a blank holds the key of an input"
            found.append(Fault(path, "unknown_input", words))
    return found


def unused(generator: Generator) -> list[str]:
    """Keys of inputs that no step uses."""
    used = {blank for _, blank in _blanks(generator)}
    return [one.key for one in generator.inputs if one.key not in used]


def plan(generator: Generator, inputs: Mapping[str, Json]) -> "list[PlannedTask]":
    """The tasks of a run with these inputs.

    Raises:
        Unusable: with every fault of the inputs.
    """
    from registry.plans import PlannedTask

    values, found = _values(generator, inputs)
    tasks: list[dict[str, Json]] = []
    for place, step in enumerate(generator.steps):
        instruction = _filled(step.instruction, values)
        if len(instruction) > MAX_INSTRUCTION:
            words = (
                f"with these inputs the instruction has {len(instruction)} characters; {MAX_INSTRUCTION} is the most"
            )
            found.append(Fault(f"steps[{place}].instruction", "too_long", words))
        title = " ".join(_filled(step.title, values).split())[:120]
        tasks.append(step.to_json() | {"title": title or step.key, "instruction": instruction})
    if found:
        raise Unusable(found)
    return [PlannedTask.model_validate(task) for task in tasks]


def value_fault(one: GeneratorInput, value: Json) -> str | None:
    """Why a value does not fit an input; None: it does."""
    if one.type == "boolean":
        return None if isinstance(value, bool) else "has to be true or false"
    if one.type == "number":
        plain = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
        return None if plain else "has to be a number that a double holds"
    if not isinstance(value, str):
        return "has to be a text"
    if len(value) > TEXT_CHARS[one.type]:
        return f"has {len(value)} characters; {TEXT_CHARS[one.type]} is the most"
    if "\0" in value:  # it becomes part of an instruction, and those are rows
        return "holds a NUL character"
    if one.type == "choice":
        return None if value in one.options else f"has to be one of {', '.join(one.options)}"
    if one.type == "url":
        return None if _is_url(value) else "has to be an http or https address"
    return "has to be one line" if one.type == "text" and len(value.splitlines()) > 1 else None


def _values(generator: Generator, inputs: Mapping[str, Json]) -> tuple[dict[str, str], list[Fault]]:
    known = {one.key: one for one in generator.inputs}
    found = [
        Fault(f"inputs.{key[:60]}", "unknown_input", "is no input of this generator")
        for key in inputs
        if key not in known
    ]
    values: dict[str, str] = {}
    for key, one in known.items():
        value = inputs.get(key, one.default)
        if value is None or value == "":
            if one.required:
                found.append(Fault(f"inputs.{key}", "missing", f"{one.label} has to be filled in"))
            values[key] = ""
        elif fault := value_fault(one, value):
            found.append(Fault(f"inputs.{key}", "unfit", fault))
        else:
            values[key] = str(value).lower() if isinstance(value, bool) else str(value)
    return values, found


def _blanks(generator: Generator) -> Iterator[tuple[str, str]]:
    for place, step in enumerate(generator.steps):
        for field, text in (("title", step.title), ("instruction", step.instruction)):
            for match in _BLANK.finditer(text):
                yield f"steps[{place}].{field}", match[1]


def _filled(text: str, values: Mapping[str, str]) -> str:
    return _BLANK.sub(lambda match: values.get(match[1], match[0]), text)


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and not any(map(str.isspace, text))
    except ValueError:
        return False


__all__ = [
    "Generator",
    "GeneratorInput",
    "GeneratorStep",
    "Unusable",
    "built_in",
    "faults",
    "plan",
    "unused",
    "value_fault",
]
