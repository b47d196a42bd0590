"""Names that every agent's tools share: each is given once (spec: engine 10)."""

from collections.abc import Iterable, Mapping
from typing import Final

from registry.errors import WrongUse
from registry.packs import PACKS, services
from registry.packs.pack import Pack
from registry.skills.skill import Skill

_REMEDY: Final = "rename one of them, or take its package away"


def taken(catalogue: Iterable[Skill], packs: Mapping[str, Pack] = PACKS) -> frozenset[str]:
    """The names, as a model sees them, that no tool of a server may take.

    Raises:
        WrongUse: `name_twice`: the catalogue and the packs do not agree, and no worker starts.
    """
    owners = dict.fromkeys(services.NAMES, f"the pack {services.PACK}")
    mine = [("the catalogue", skill) for skill in catalogue]
    mine += [(f"the pack {pack.name}", tool) for pack in packs.values() for tool in pack.tools]
    for owner, skill in mine:
        for name in (skill.wire_name, *skill.aliases):
            if name in owners:
                words = f"the tool name {skill.name!r} is given twice, by {owners[name]} and {owner}: {_REMEDY}"
                raise WrongUse(words, code="name_twice")
            owners[name] = owner
    return frozenset(owners)
