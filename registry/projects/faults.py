"""Every fault of a document against its model, in words for the person who wrote it.

Paths are those of the file (`tasks[2].dependsOn[0]`), names are camelCase as written, an unknown field is answered with
the nearest one there is.
"""

import re
from collections.abc import Iterable
from types import UnionType
from typing import Annotated, Any, Final, TypeVar, Union, get_args, get_origin

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from registry.base import Json, Model
from registry.errors import Fault
from registry.graph.findings import nearest, quoted, shown
from registry.graph.values import kind

M = TypeVar("M", bound=Model)

_WANTED: Final = {
    "string_type": "a text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "finite_number": "a finite number",
}
_BOUNDS: Final = {
    "greater_than": ("more than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}
_SIZES: Final = {
    "string_too_short": ("too_short", "at least {min_length} characters"),
    "string_too_long": ("too_long", "at most {max_length} characters"),
    "too_short": ("too_short", "at least {min_length} items"),
    "too_long": ("too_long", "at most {max_length} items"),
}
#: Names that get a suggestion: beyond, a file is wrong as a whole, and looking for the nearest takes time.
_SUGGESTIONS: Final = 20


def check(model: type[M], document: Json, *, at: str = "") -> tuple[M | None, list[Fault]]:
    """The document as the model, or None and every fault of it; `at` goes before each path."""
    try:
        return model.model_validate(document, strict=True, by_alias=True, by_name=False), []
    except ValidationError as error:
        details = error.errors(include_url=False)
    # A default made of a field that failed says nothing new.
    return None, [_fault(model, detail, at) for detail in details if detail["type"] != "default_factory_not_called"]


def ordered(faults: Iterable[Fault]) -> list[Fault]:
    """Sorted by path, `tasks[2]` before `tasks[10]`; each once."""
    return sorted(set(faults), key=lambda fault: (_natural(fault.path), fault))


def path_of(location: Iterable[int | str], at: str = "") -> str:
    """The path of a place in a document, as in `tasks[2].dependsOn[0]`."""
    path = at
    for step in location:
        path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else step
    return path


class Names:
    """Known names, and the nearest of them to one that is not."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = sorted(names)
        self._left = _SUGGESTIONS

    def suggestion(self, name: str) -> str:
        """The end of a message: `; did you mean "x"?`, or nothing."""
        self._left -= 1
        return nearest(name, self._names) if self._left >= 0 else ""


def _fault(model: type[Model], error: ErrorDetails, at: str) -> Fault:
    code, message = _judged(model, error)
    return Fault(path_of(error["loc"], at), code, message)


def _judged(model: type[Model], error: ErrorDetails) -> tuple[str, str]:
    found, context, reason = error["input"], error.get("ctx", {}), error["type"]
    if reason == "missing":
        return "required", "is required"
    if reason == "extra_forbidden":
        name = str(error["loc"][-1])
        close = nearest(name, _fields(model, error["loc"][:-1]))
        return "unknown_field", f"there is no field {quoted(name)} here{close}"
    if reason in _WANTED:
        return "wrong_type", f"must be {_WANTED[reason]}, found {_found(found)}"
    if reason in _BOUNDS:
        words, bound = _BOUNDS[reason]
        return "out_of_range", f"must be {words} {context[bound]}, found {shown(found)}"
    if reason in _SIZES:
        code, words = _SIZES[reason]
        return code, f"must have {words.format(**context)}, found {len(found)}"
    if reason == "literal_error":
        return "invalid_value", f"must be {context['expected']}, found {shown(found)}"
    if reason == "string_pattern_mismatch":
        return "invalid_value", f"must match {context['pattern']}, found {shown(found)}"
    return reason, error["msg"]


def _found(value: Json) -> str:
    return "null; leave the field out" if value is None else kind(value)


def _fields(model: type[Model], location: Iterable[int | str]) -> list[str]:
    """The fields there are at a place of the document."""
    annotation: Any = model
    for step in location:
        annotation = _inner(_plain(annotation), step)
    here = _plain(annotation)
    return [_alias(here, name) for name in here.model_fields] if _is_model(here) else []


def _inner(annotation: Any, step: int | str) -> Any:
    if _is_model(annotation):
        fields = {_alias(annotation, name): field.annotation for name, field in annotation.model_fields.items()}
        return fields.get(str(step))
    arguments = get_args(annotation)
    return arguments[-1] if arguments else None


def _plain(annotation: Any) -> Any:
    """The type inside `Annotated[X, ...]` and `X | None`."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _plain(get_args(annotation)[0])
    if origin in (Union, UnionType):
        return _plain(next(one for one in get_args(annotation) if one is not type(None)))
    return annotation


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Model)


def _alias(model: type[Model], name: str) -> str:
    return model.model_fields[name].alias or name


def _natural(path: str) -> list[tuple[bool, int, str]]:
    return [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in re.split(r"([0-9]+)", path)]


__all__ = ["Names", "check", "ordered", "path_of"]
