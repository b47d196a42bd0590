"""The plugins of whoever runs a command in this process: looked up when an agent names one, run behind the wall."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from orchestrator.settings import Settings
from registry.base import Json
from registry.skills.skill import Skill
from workers.engine.services import LeftOut

if TYPE_CHECKING:
    from workers.plugins.tools import PluginTools


class Mine:
    """See `Services.plugins`; whoever's the run is, the plugins are those of the settings' owner."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def skills(self, _owner_id: str, ids: Sequence[str], left_out: LeftOut) -> Sequence[Skill]:
        return self._tools.skills(self._settings.owner, ids, left_out) if ids else ()

    def hook(
        self, _owner_id: str, name: str, payload: dict[str, Json], *, timeout_s: float, cancelled: Callable[[], bool]
    ) -> Json:
        return self._tools.hook(self._settings.owner, name, payload, timeout_s=timeout_s, cancelled=cancelled)

    @cached_property
    def _tools(self) -> "PluginTools":
        from registry.skills import catalogue
        from workers.plugins.tools import PluginTools
        from workers.sandbox.process import find_sandbox

        return PluginTools(self._settings, catalogue.build(), find_sandbox)
