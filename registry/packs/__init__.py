"""Packs: named sources of tools. A pack's tool and a catalogue skill are the same type."""

from registry.packs import agents, core, fetch
from registry.skills.skill import Skill

#: Pack name -> its tools.
PACKS: dict[str, tuple[Skill, ...]] = {"core": core.SKILLS, "agents": agents.SKILLS, "fetch": fetch.SKILLS}
