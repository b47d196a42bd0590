"""What goes into a server's tool: its own schema, shown to the model as it is, checked here in bounded time."""

from typing import Final

from registry.base import Json
from registry.errors import Detail, SkillError
from registry.skills import structured

#: What some generators write though it changes nothing for what is checked here.
_DROPPED: Final = ("$schema", "$id")
_ROOT: Final = "value"


class ServedContract:
    """A schema that a server wrote. Patterns run on the linear engine and nothing is fetched for a reference.

    Raises:
        ValueError: the schema cannot be used; the message says why.
    """

    def __init__(self, schema: dict[str, Json]) -> None:
        self._schema = schema
        self._checked = {"type": "object"} | {key: value for key, value in schema.items() if key not in _DROPPED}
        faults = structured.schema_faults(self._checked)
        if faults:
            raise ValueError(f"{faults[0].path}: {faults[0].message}")

    @property
    def schema(self) -> dict[str, Json]:
        return self._schema

    def check(self, value: Json) -> Json:
        faults = [Detail(d.path.removeprefix(_ROOT).lstrip("."), d.message) for d in self._faults(value)]
        if faults:
            first = faults[0]
            more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
            raise SkillError("invalid_input", f"{first.path or 'the input'}: {first.message}{more}", details=faults)
        return value

    def canonical(self, checked: Json) -> Json:
        return checked

    def _faults(self, value: Json) -> list[Detail]:
        return structured.answer_faults(self._checked, value)
