"""What the graph as a whole does: whether a run must end, and which nodes it can reach."""

from graphlib import CycleError, TopologicalSorter

from registry.graph.checks.draft import Draft
from registry.graph.findings import Findings, listed


def cycles(draft: Draft, found: Findings) -> None:
    written = draft.json.get("budget", {})
    if not isinstance(written, dict) or {"maxSteps", "deadlineMs"} & written.keys():
        return
    reason = _endless(draft)
    if reason:
        found.add("cycle_budget", "budget", f"{reason}: give maxSteps or deadlineMs, so that every run ends")


def _endless(draft: Draft) -> str | None:
    if not draft.has_graph:
        # Without a graph and without a budget the defaults of both apply, and they bound the loop.
        return "the default graph is a loop" if "budget" in draft.json else None
    computed = [node_id for node_id in draft.literals if draft.is_computed(node_id)]
    if computed:
        return f"where the goto {listed(computed)} leads is computed"
    try:
        TopologicalSorter(draft.flow).prepare()
    except CycleError as error:
        circle = error.args[1][::-1]
        return "the graph has a cycle: " + " -> ".join(circle[:8]) + (" ..." if len(circle) > 8 else "")
    return None


def unreachable(draft: Draft, found: Findings) -> None:
    starts = [node_id for node_id, _ in draft.of("core:start")]
    if len(starts) != 1 or not draft.has_edges:
        return
    seen, todo = set(starts), starts
    while todo:
        node_id = todo.pop()
        if draft.is_computed(node_id):
            return
        new = [
            to for to in (*draft.flow[node_id], *draft.bodies.get(node_id, ())) if to in draft.ids and to not in seen
        ]
        seen.update(new)
        todo += new
    for node_id in draft.nodes:
        if node_id not in seen:
            found.add("unreachable", f"graph.nodes.{node_id}", "no way leads here from the start")
