"""The nodes' types and the edges between them."""

from registry.graph.checks.draft import NO_EXIT, Draft
from registry.graph.checks.fields import NODE_TYPES
from registry.graph.findings import Findings, quoted, shown


def counts(draft: Draft, found: Findings) -> None:
    if not draft.has_nodes:
        return
    starts, ends = (sum(1 for _ in draft.of(kind)) for kind in ("core:start", "core:end"))
    if starts != 1:
        found.add("start_count", "graph.nodes", f"a graph has exactly one core:start, found {starts}")
    if not ends:
        found.add("end_count", "graph.nodes", "a graph has at least one core:end, found none")
    nodes, edges = found.limits.graph_nodes, found.limits.graph_edges
    if len(draft.ids) > nodes or len(draft.edges) > edges:
        most = f"a graph has at most {nodes} nodes and {edges} edges"
        found.add("graph_size", "graph", f"{most}, found {len(draft.ids)} and {len(draft.edges)}")


def types(draft: Draft, found: Findings) -> None:
    for node_id, node in draft.nodes.items():
        kind = node.get("type")
        if not (isinstance(kind, str) and kind in NODE_TYPES):
            close = found.nearest(kind, NODE_TYPES) if isinstance(kind, str) else ""
            message = f"{shown(kind)} is no node type{close}" if "type" in node else "a node needs a type"
            found.add("unsupported_node", f"graph.nodes.{node_id}.type", message)


def endpoints(draft: Draft, found: Findings) -> None:
    if not draft.has_nodes:
        return
    for edge in draft.edges:
        for end, node_id in (("from", edge.source), ("to", edge.target)):
            if node_id is not None and node_id not in draft.ids:
                message = f"no node has the id {quoted(node_id)}{found.nearest(node_id, draft.ids)}"
                found.add("edge_endpoint", f"graph.edges[{edge.index}].{end}", message)


def outgoing(draft: Draft, found: Findings) -> None:
    if not draft.has_edges:
        return
    for node_id, node in draft.nodes.items():
        kind = draft.kind(node_id)
        unreadable = kind is None and "type" in node
        if kind not in NO_EXIT and not unreadable and not draft.edges_from(node_id):
            message = (
                f"no edge leads out of {quoted(node_id)}: a run would stop here; add one, to a core:end if it is done"
            )
            found.add("outgoing_required", f"graph.nodes.{node_id}", message)


def ignored(draft: Draft, found: Findings) -> None:
    for edge in draft.edges:
        kind = draft.kind(edge.source) if edge.source is not None else None
        if kind in NO_EXIT:
            message = f"never followed: {quoted(edge.source or '')} is a {kind}"
            found.add("edge_ignored", f"graph.edges[{edge.index}]", message)


def defaults(draft: Draft, found: Findings) -> None:
    """One default edge a node, and the last of its edges: those after it could never be taken."""
    for node_id in draft.ids:
        edges = draft.edges_from(node_id)
        if draft.kind(node_id) in NO_EXIT or not edges or not all(edge.readable for edge in edges):
            continue
        path, conditions = f"graph.edges.from:{node_id}", [edge.when is not None for edge in edges]
        if all(conditions):
            message = f"all edges out of {quoted(node_id)} have a condition: add a last one without when"
            found.add("missing_default", path, message)
        elif conditions.count(False) > 1:
            message = f"{conditions.count(False)} edges out of {quoted(node_id)} have no when: keep one, as the last"
            found.add("default_edge", path, message)
        elif conditions[-1]:
            message = (
                f"the edge without when is not the last one out of {quoted(node_id)}: those after it are never taken"
            )
            found.add("default_edge", path, message)
