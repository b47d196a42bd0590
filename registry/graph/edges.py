"""Which edge a run takes out of a node (spec: engine 2, 3.3)."""

from collections.abc import Iterable

from registry.graph import expressions
from registry.graph.expressions import ExpressionError, Slots
from registry.graph.model import Graph


def choose(graph: Graph, node_id: str, slots: Slots) -> str | None:
    """The target of the first edge, in list order, whose `when` holds; None when none does."""
    return first_match(((edge.when, edge.target) for edge in graph.edges_from(node_id)), slots)


def first_match(edges: Iterable[tuple[str | None, str]], slots: Slots) -> str | None:
    """`choose` over pairs of condition and target. No condition always holds; one that fails never does."""
    return next((target for when, target in edges if when is None or _holds(when, slots)), None)


def _holds(when: str, slots: Slots) -> bool:
    try:
        return expressions.compile(when).holds(slots)
    except ExpressionError:
        return False
