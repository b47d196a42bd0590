"""What routes ask of the installation, made once a process."""

from functools import lru_cache

from registry.skills import catalogue
from registry.skills.registry import SkillRegistry


@lru_cache(maxsize=1)
def skills() -> SkillRegistry:
    """The catalogue; it does not change while a process runs."""
    return catalogue.build()
