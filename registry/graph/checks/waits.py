"""Waits: a sleep of a fixed or computed length, or a gate that a person opens."""

from registry.base import Json
from registry.graph.checks.draft import Draft, is_integer
from registry.graph.findings import Findings, listed, shown


def waits(draft: Draft, found: Findings) -> None:
    for node_id, node in draft.of("control:wait"):
        path = f"graph.nodes.{node_id}"
        reason = _mixed(node)
        if reason:
            found.add("wait_mode", path, reason)
        if "delayMs" in node and not is_integer(node["delayMs"], 1, found.limits.wait_delay_ms):
            wanted = f"must be a whole number of milliseconds from 1 to {_span(found.limits.wait_delay_ms)}"
            found.add("wait_delay", f"{path}.delayMs", f"{wanted}, found {shown(node['delayMs'])}")
        if not _sleeps(node):
            _gate(node, path, found)


def _sleeps(node: dict[str, Json]) -> bool:
    return "delayMs" in node or "untilMs" in node


def _mixed(node: dict[str, Json]) -> str | None:
    if "delayMs" in node and "untilMs" in node:
        return "a sleep has either delayMs or untilMs, found both"
    gate_only = [key for key in ("timeoutMs", "onTimeout", "resumeSchema") if key in node]
    if _sleeps(node) and gate_only:
        return f"{listed(gate_only)} belongs to a gate: a wait with delayMs or untilMs is a sleep"
    until = node.get("untilMs", "$")
    if not (isinstance(until, str) and until.startswith("$")):
        return f"untilMs must be an expression starting with $ that gives milliseconds since 1970, found {shown(until)}"
    return None


def _gate(node: dict[str, Json], path: str, found: Findings) -> None:
    if "timeoutMs" in node and not is_integer(node["timeoutMs"], 1, found.limits.gate_timeout_ms):
        wanted = f"must be a whole number of milliseconds from 1 to {_span(found.limits.gate_timeout_ms)}"
        found.add("wait_timeout", f"{path}.timeoutMs", f"{wanted}, found {shown(node['timeoutMs'])}")
    if "onTimeout" in node and node["onTimeout"] not in ("fail", "continue", "interrupt"):
        message = f"must be fail, continue or interrupt, found {shown(node['onTimeout'])}"
        found.add("wait_timeout", f"{path}.onTimeout", message)
    elif "onTimeout" in node and "timeoutMs" not in node:
        found.add("wait_timeout", f"{path}.onTimeout", "means nothing without timeoutMs")


def _span(milliseconds: int) -> str:
    days, rest = divmod(milliseconds, 86_400_000)
    return str(milliseconds) if rest or not days else f"{milliseconds} ({days} days)"
