"""Packs: named sources of tools, one module each. A pack's tool and a catalogue skill are the same type."""

from collections.abc import Mapping

from registry.packs import agents, core, fetch, files
from registry.packs.pack import NoSpec, Pack

#: Pack name -> the pack.
PACKS: Mapping[str, Pack] = {pack.name: pack for pack in (core.PACK, agents.PACK, fetch.PACK, files.PACK)}

__all__ = ["PACKS", "NoSpec", "Pack"]
