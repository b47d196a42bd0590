"""What a run hands to work that begins later, out of its sight: its mode, and never more rights than it has itself.

A spawned child is held by its parents' policies while it runs. A schedule outlives its maker, so what the maker may do
is written down with it: `{agentId, mode, permissions, gates}`, where `permissions` is the map of the maker's run and
`gates` the outcome of every operation for it.
"""

from collections.abc import Mapping
from typing import Any, Final

from registry.base import Json
from registry.permissions import OPERATIONS, Gate, Mode, Policy, worst
from registry.skills.context import Caller

#: Own mode -> those it may give: in none of them anything runs unasked that would not in its own.
_GIVES: Final[Mapping[Mode | None, tuple[Mode | None, ...]]] = {
    None: (None, "ask", "dont_ask"),
    "ask": ("ask",),
    "plan": ("plan",),
    "auto": ("auto", "ask"),
    "dont_ask": ("dont_ask", "ask"),
    "bypass": (None, "ask", "auto", "dont_ask", "bypass"),
}
_DEFAULT: Final[Mapping[str, Gate]] = {"fs.read": "allow"}


def of(caller: Caller, policy: Policy | None) -> dict[str, Json] | None:
    """The maker of a schedule; None: a person, who holds nothing back."""
    if policy is None:
        return None
    gates = {operation: _gate(policy.run, policy.agent, operation) for operation in OPERATIONS}
    return {"agentId": caller.agent_id, "mode": policy.mode, "permissions": dict(policy.run), "gates": gates}


def permissions(maker: Mapping[str, Any] | None, agent_id: str | None, agent: Mapping[str, Gate]) -> dict[str, Gate]:
    """The run map of what a schedule starts.

    For the maker's own agent it is the map of the maker's run. Another agent gets no allow from it, and wherever the
    maker had to ask or was denied, so has or is that agent: nobody gains by letting somebody else do it later.

    Args:
        agent_id: who acts.
        agent: the map of that agent.
    """
    if maker is None:
        return {}
    if agent_id is not None and agent_id == maker.get("agentId"):
        return dict(maker["permissions"])
    gates: Mapping[str, Gate] = maker["gates"]
    return {
        operation: gate
        for operation, gate in gates.items()
        if worst((gate, _gate(agent, {}, operation))) != _gate(agent, {}, operation)
    }


def may_give(mode: str | None, policy: Policy | None) -> bool:
    """Whether a caller may let something run in a mode: one that allows nothing its own does not."""
    return policy is None or mode in _GIVES[policy.mode]


def _gate(first: Mapping[str, Gate], second: Mapping[str, Gate], operation: str) -> Gate:
    return first.get(operation) or second.get(operation) or _DEFAULT.get(operation, "ask")


__all__ = ["may_give", "of", "permissions"]
