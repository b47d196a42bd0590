"""What keeps a call that runs again after a crash from writing a second row."""

import hashlib

from registry.skills.context import Caller


def call_key(caller: Caller) -> str | None:
    """The key of the row this call writes; None: it is made outside of a run and cannot run again."""
    if caller.run_id is None or caller.call_id is None:
        return None
    return hashlib.sha256(f"{caller.run_id}\n{caller.call_id}".encode()).hexdigest()
