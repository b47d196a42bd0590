"""Operations, gates and run modes: what a call may do, and who has to be asked (spec: engine 8).

A gate is worst-wins over the call's operations. No map and no mode can make `world` quieter than ask, and a deny stays
a deny in every mode.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

Gate = Literal["allow", "ask", "deny"]
Mode = Literal["ask", "plan", "auto", "dont_ask", "bypass"]
Operation = str

OPERATIONS: Final = ("fs.read", "fs.write", "process", "network", "mcp", "agents", "world")
MODES: Final[tuple[Mode, ...]] = ("ask", "plan", "auto", "dont_ask", "bypass")

_RANK: Final[dict[Gate, int]] = {"allow": 0, "ask": 1, "deny": 2}


def worst(gates: Iterable[Gate]) -> Gate:
    return max(gates, key=_RANK.__getitem__, default="allow")


@dataclass(frozen=True)
class Verdict:
    """The gate of one call, the operation that decided it, and why in words."""

    gate: Gate
    operation: Operation | None
    reason: str


@dataclass(frozen=True)
class Policy:
    """The maps and the mode of one run; `ancestors` are the policies of the runs above it, nearest first."""

    agent: Mapping[Operation, Gate]
    run: Mapping[Operation, Gate]
    mode: Mode | None = None
    ancestors: tuple["Policy", ...] = ()

    def judge(self, operations: Iterable[Operation]) -> Verdict:
        """The gate of a call with these operations: deny, ask or allow."""
        verdicts = [self._operation(operation) for operation in operations]
        return max(verdicts, key=lambda v: _RANK[v.gate], default=Verdict("allow", None, "it has no operations"))

    def _operation(self, operation: Operation) -> Verdict:
        own = self._own(operation)
        if not self.ancestors:
            return own
        above = [parent._own(operation) for parent in self.ancestors]
        strictest = max([own, *above], key=lambda v: _RANK[v.gate])
        if strictest.gate == "ask":  # a child cannot ask: nobody would know whom it speaks for
            return Verdict("deny", operation, f"a child run cannot ask, and {strictest.reason}")
        return strictest

    def _own(self, operation: Operation) -> Verdict:
        gate, reason = self._mapped(operation)
        named = operation in self.agent or operation in self.run
        if operation == "world" and gate == "allow":
            gate, reason = "ask", "acting outside Officina always asks"
        gate, reason = _moded(self.mode, operation, gate, reason, named=named)
        return Verdict(gate, operation, reason)

    def _mapped(self, operation: Operation) -> tuple[Gate, str]:
        if operation in self.run:
            return self.run[operation], f"the run's permissions say {self.run[operation]} for {operation}"
        if operation in self.agent:
            return self.agent[operation], f"the agent's permissions say {self.agent[operation]} for {operation}"
        gate: Gate = "allow" if operation == "fs.read" else "ask"
        return gate, f"{operation} is {gate} by default"


def _moded(mode: Mode | None, operation: Operation, gate: Gate, reason: str, *, named: bool) -> tuple[Gate, str]:
    if mode is None or gate == "deny":
        return gate, reason
    if mode == "plan":
        denied = operation in ("fs.write", "process", "agents")
        return ("deny", f"mode plan denies {operation}") if denied else (gate, reason)
    if mode == "dont_ask":
        return ("deny", f"mode dont_ask denies what would ask: {reason}") if gate == "ask" else (gate, reason)
    if mode == "bypass":
        return ("ask", reason) if operation == "world" else ("allow", f"mode bypass allows {operation}")
    if mode == "auto" and operation == "fs.write" and not named:
        return "allow", "mode auto allows fs.write"
    if operation != "fs.read" and gate == "allow" and not (mode == "auto" and operation == "fs.write"):
        return "ask", f"mode {mode} asks for {operation}"
    return gate, reason
