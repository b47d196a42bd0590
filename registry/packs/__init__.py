"""Packs: named sources of tools, one module each. A pack's tool and a catalogue skill are the same type."""

from collections.abc import Mapping

from registry.packs import (
    agents,
    core,
    episodic_memory,
    fetch,
    files,
    knowledge_memory,
    pin_memory,
    plan,
    process_kill,
    process_poll,
    scheduler,
    semantic_memory,
    shell,
    threads,
    webhook,
)
from registry.packs.pack import NoSpec, Pack

#: Pack name -> the pack.
PACKS: Mapping[str, Pack] = {
    module.PACK.name: module.PACK
    for module in (
        *(core, files, shell, process_poll, process_kill, fetch),
        *(plan, agents, threads, scheduler, webhook),
        *(episodic_memory, semantic_memory, knowledge_memory, pin_memory),
    )
}

__all__ = ["PACKS", "NoSpec", "Pack"]
