"""What goes into a plugin's skill: the schema its manifest declares, checked here in bounded time."""

from registry.base import Json
from registry.errors import Detail, SkillError
from registry.plugins import closed_form
from registry.skills import structured

_ROOT = "value"


class PluginContract:
    """A schema that was found good when the plugin was installed."""

    def __init__(self, schema: dict[str, Json]) -> None:
        self._schema = schema
        self._checked = closed_form(schema)

    @property
    def schema(self) -> dict[str, Json]:
        return self._checked

    def check(self, value: Json) -> Json:
        found = structured.answer_faults(self._checked, value)
        faults = [Detail(d.path.removeprefix(_ROOT).lstrip("."), d.message) for d in found]
        if faults:
            first = faults[0]
            more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
            raise SkillError("invalid_input", f"{first.path or 'the input'}: {first.message}{more}", details=faults)
        return value

    def canonical(self, checked: Json) -> Json:
        return checked
