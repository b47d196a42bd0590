"""The catalogue: every skill that ships, in one list."""

from registry.skills.registry import SkillRegistry
from registry.skills.skill import Skill


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
    return SkillRegistry(catalogue())
