"""The catalogue: every skill that ships, in one list, and those of other packages."""

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from registry.errors import WrongUse
from registry.skills.registry import SkillRegistry
from registry.skills.skill import Skill

#: Where other packages name their skills.
GROUP: Final = "officina.skills"


def catalogue() -> list[Skill]:
    """The skills of this release. Modules are imported here, so that `officina --help` pays for none of them."""
    from registry.skills import (
        authoring,
        code,
        comms,
        data,
        desktop,
        docs,
        files,
        http,
        image,
        llm,
        memory,
        scaffold,
        scene3d,
        scheduling,
        web,
    )

    modules = (
        authoring,
        code,
        comms,
        data,
        desktop,
        docs,
        files,
        http,
        image,
        llm,
        memory,
        scaffold,
        scene3d,
        scheduling,
        web,
    )
    return [skill for module in modules for skill in module.SKILLS]


def build() -> SkillRegistry:
    """The skills of this release, and those of packages that are installed beside it."""
    own = catalogue()
    return SkillRegistry([*own, *installed(own)])


def installed(own: list[Skill]) -> list[Skill]:
    """Skills that other packages bring: an entry point of the group `officina.skills` names one, or several in a tuple.

    Raises:
        WrongUse: an entry point cannot be loaded, is no skill, or takes a name or a group of names that is ours. What
            is installed has to work: an agent would otherwise miss a tool that its owner believes to be there.
    """
    found: list[Skill] = []
    groups = {skill.name.partition(".")[0] for skill in own}
    for point in points():
        for one in _loaded(point):
            group = one.name.partition(".")[0]
            if "." not in one.name or group in groups:
                words = (
                    "needs two parts with a dot" if "." not in one.name else f"has to leave the group {group!r} to us"
                )
                raise _unfit(point, f"the name {one.name!r} {words}")
            found.append(one)
    return found


@cache
def points() -> list[EntryPoint]:
    """What is installed does not change while a process lives, and looking costs a walk over every package."""
    return sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value))


def _loaded(point: EntryPoint) -> list[Skill]:
    try:
        value = point.load()
    except Exception as error:
        raise _unfit(point, f"{type(error).__name__}: {error}") from error
    skills = list(value) if isinstance(value, (list, tuple)) else [value]
    if not skills or not all(isinstance(one, Skill) for one in skills):
        raise _unfit(point, "it is neither a skill nor a tuple of skills")
    return skills


def _unfit(point: EntryPoint, words: str) -> WrongUse:
    where = f"the entry point {point.name} = {point.value} of {GROUP}"
    return WrongUse(f"{where} cannot be used: {words}; mend or uninstall its package", code="skill_package")
