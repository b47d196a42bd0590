"""A pack: a named source of tools, with settings of its own and a word at each model call (spec: engine 15)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from registry.base import Json, Model
from registry.errors import SkillError
from registry.skills.context import SkillContext
from registry.skills.contract import ModelContract
from registry.skills.skill import Skill


class NoSpec(Model):
    """The settings of a pack that has none."""


@dataclass(frozen=True)
class Pack:
    """A pack as the host registers it."""

    name: str
    #: One line for people: what an agent can do with it.
    about: str
    tools: tuple[Skill, ...]
    #: What `packs.<name>.spec` of a definition may hold; every field has a default.
    spec: type[Model] = NoSpec
    #: What an agent that holds the pack reads at each model call, beside the history and never stored; None: nothing.
    note: Callable[[SkillContext], str | None] | None = None
    #: A tool as an agent's settings make it, where they change what a call asks for; None: the same for all.
    fit: Callable[[Skill, Model], Skill] | None = None

    @property
    def tool_names(self) -> frozenset[str]:
        return frozenset(tool.name for tool in self.tools)

    def settings(self, written: Mapping[str, Json]) -> Model:
        """The spec of a definition, with its defaults.

        Raises:
            SkillError: `invalid_input`, naming each field that does not fit.
        """
        checked = ModelContract(self.spec).check(dict(written))
        assert isinstance(checked, Model)
        return checked

    def fitted(self, tool: Skill, written: Mapping[str, Json]) -> Skill:
        """A tool under the spec of a definition; settings that do not fit change nothing: their run does not begin."""
        if self.fit is None:
            return tool
        try:
            return self.fit(tool, self.settings(written))
        except SkillError:
            return tool

    def spec_fault(self, written: Mapping[str, Json]) -> str | None:
        """Why a spec does not fit; None when it does."""
        try:
            self.settings(written)
        except SkillError as error:
            return "; ".join(f"{d.path}: {d.message}" if d.path else d.message for d in error.details) or error.message
        return None
