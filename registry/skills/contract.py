"""What goes into a skill and comes out of it: a JSON Schema, and a check that gives one canonical value.

Two kinds satisfy the same contract: a pydantic model (the catalogue, the packs) and a bare JSON Schema (MCP servers,
plugins, stub tools).
"""

from functools import cached_property
from typing import Any, Protocol

from pydantic import BaseModel, ValidationError

from registry import schemas
from registry.base import Json
from registry.errors import Detail, SkillError
from registry.jsontext import compact

MAX_DETAILS = 10
#: What pydantic writes before the words of a validator of ours.
_OURS = "Value error, "
#: Types of `PydanticCustomError` that keep their name as the code of the refusal.
OWN_CODES = frozenset({"path_escape", "unknown_skill"})


class Contract(Protocol):
    @property
    def schema(self) -> dict[str, Json]: ...

    def check(self, value: Json) -> Any:
        """The value as the skill receives it.

        Raises:
            SkillError: `invalid_input`, with a detail for each of the first ten faults.
        """
        ...

    def canonical(self, checked: Any) -> Json:
        """The checked value as JSON with defaults filled in: what a digest is made of."""
        ...


class ModelContract:
    """A pydantic model, strict and closed."""

    def __init__(self, model: type[BaseModel]) -> None:
        self.model = model

    @cached_property
    def schema(self) -> dict[str, Json]:
        return self.model.model_json_schema(by_alias=True)

    def check(self, value: Json) -> BaseModel:
        try:
            # As JSON text: strict mode then reads a list as a tuple and a text as a date, and coerces nothing else.
            return self.model.model_validate_json(compact(value), strict=True, by_alias=True, by_name=False)
        except ValidationError as error:
            faults = error.errors(include_url=False, include_input=False)
            # Judgements with a code of their own (`path_escape`) are raised as custom errors of that type.
            code = next((e["type"] for e in faults if e["type"] in OWN_CODES), "invalid_input")
            raise _invalid([Detail(schemas.at(e["loc"]), e["msg"].removeprefix(_OURS)) for e in faults], code) from None

    def canonical(self, checked: Any) -> Json:
        return checked.model_dump(mode="json", by_alias=True)


class SchemaContract:
    """A JSON Schema of someone else's; remote references are never fetched."""

    def __init__(self, schema: dict[str, Json]) -> None:
        self._schema = schema

    @property
    def schema(self) -> dict[str, Json]:
        return self._schema

    def check(self, value: Json) -> Json:
        faults = [Detail(schemas.at(f.path), f.message) for f in schemas.flaws(self._schema, value, most=MAX_DETAILS)]
        if faults:
            raise _invalid(faults)
        return value

    def canonical(self, checked: Any) -> Json:
        return checked


def _invalid(details: list[Detail], code: str = "invalid_input") -> SkillError:
    first = details[0]
    where = first.path or "the input"
    more = f" (and {len(details) - 1} more)" if len(details) > 1 else ""
    return SkillError(code, f"{where}: {first.message}{more}", details=details[:MAX_DETAILS])
