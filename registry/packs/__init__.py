"""Packs: named sources of tools, one module each. A pack's tool and a catalogue skill are the same type."""

from collections.abc import Mapping

from registry.packs import (
    agents,
    core,
    episodic_memory,
    fetch,
    files,
    pin_memory,
    plan,
    scheduler,
    semantic_memory,
    threads,
)
from registry.packs.pack import NoSpec, Pack

#: Pack name -> the pack.
PACKS: Mapping[str, Pack] = {
    module.PACK.name: module.PACK
    for module in (
        *(core, agents, threads, scheduler, fetch, files),
        *(plan, episodic_memory, semantic_memory, pin_memory),
    )
}

__all__ = ["PACKS", "NoSpec", "Pack"]
