"""A definition as it was written, read so that no wrong JSON type makes a check fail.

A field of the wrong type reads as absent here; `shape` reports it, and the checks that need it pass it by.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from registry.base import Json
from registry.graph import expressions
from registry.graph.expressions import Expression, ExpressionError

#: Nodes whose outgoing edges are never followed.
NO_EXIT: Final = frozenset({"core:end", "control:goto", "control:yield"})

#: State keys the engine writes itself (spec: engine 5.4).
ENGINE_KEYS: Final = (
    "messages",
    "spawns",
    "handoffAgentId",
    "mapItems",
    "mapInstruction",
    "mapMaxTokensPerItem",
    "waitUntilMs",
    "loadedTools",
)


@dataclass(frozen=True)
class DraftEdge:
    """An edge of the definition; an end that is no text is None."""

    index: int
    source: str | None
    target: str | None
    when: str | None
    #: False when `when` is neither a text nor null: whether the edge is a default cannot be said.
    readable: bool


class Draft:
    """Reads a definition. `nodes` holds the nodes that are objects, `ids` every key of `graph.nodes`."""

    def __init__(self, definition: dict[str, Json]) -> None:
        self.json = definition
        self.has_graph = "graph" in definition
        graph = record(definition, "graph")
        written = graph.get("nodes")
        self.has_nodes = isinstance(written, dict)
        self.ids: dict[str, Any] = written if isinstance(written, dict) else {}
        self.nodes: dict[str, dict[str, Json]] = {k: v for k, v in self.ids.items() if isinstance(v, dict)}
        edges = graph.get("edges")
        self.has_edges = self.has_nodes and isinstance(edges, list)
        self.edges = list(_edges(edges)) if isinstance(edges, list) else []

    def kind(self, node_id: str) -> str | None:
        """The node's type; None when there is no such node or its type is no text."""
        found = self.nodes.get(node_id, {}).get("type")
        return found if isinstance(found, str) else None

    def of(self, *kinds: str) -> Iterator[tuple[str, dict[str, Json]]]:
        """The nodes of these types with their ids, in the order written."""
        return ((node_id, node) for node_id, node in self.nodes.items() if self.kind(node_id) in kinds)

    def edges_from(self, node_id: str) -> list[DraftEdge]:
        return self._by_source.get(node_id, [])

    @cached_property
    def _by_source(self) -> dict[str, list[DraftEdge]]:
        found: dict[str, list[DraftEdge]] = {}
        for edge in self.edges:
            if edge.source is not None:
                found.setdefault(edge.source, []).append(edge)
        return found

    @cached_property
    def flow(self) -> dict[str, list[str]]:
        """Node -> the nodes a run may go to next: over edges that count and literal goto targets."""
        return {node_id: [to for to in self._next(node_id) if to in self.ids] for node_id in self.ids}

    def _next(self, node_id: str) -> Iterator[str]:
        if self.kind(node_id) == "control:goto":
            literal = self.literals[node_id]
            if literal is not None:
                yield literal
        elif self.kind(node_id) not in NO_EXIT:
            yield from (edge.target for edge in self.edges_from(node_id) if edge.target is not None)

    @cached_property
    def literals(self) -> dict[str, str | None]:
        """Goto -> the node id it names outright; None when its target is computed or missing."""
        expressions = ((node_id, compiled(node.get("target"))) for node_id, node in self.of("control:goto"))
        return {node_id: expression.literal if expression else None for node_id, expression in expressions}

    def is_computed(self, node_id: str) -> bool:
        """Whether the node is a goto whose target is not a literal."""
        return (
            node_id in self.literals and self.literals[node_id] is None and is_filled(self.nodes[node_id].get("target"))
        )

    @cached_property
    def bodies(self) -> dict[str, list[str]]:
        """Map -> its body as written, of every map whose body is a list of texts."""
        return {node_id: node["body"] for node_id, node in self.of("control:map") if is_texts(node.get("body"))}

    @cached_property
    def prompts(self) -> set[str] | None:
        """The keys a model node may name; None when `prompts` cannot be read."""
        written = self.json.get("prompts", {})
        short = {"main"} if {"instructions", "systemPrompt"} & self.json.keys() else set()
        return set(written) | short if isinstance(written, dict) else None

    @cached_property
    def message_keys(self) -> set[str]:
        """The state keys that hold histories."""
        found = {"messages"}
        for _, node in self.of("llm:generate"):
            expression = compiled(node.get("messages"))
            if expression is not None and expression.state_key is not None:
                found.add(expression.state_key)
        return found


def record(value: Json, key: str) -> dict[str, Json]:
    """The object under a key; an empty one when there is none."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def compiled(text: Json) -> Expression | None:
    """The expression, or None when the value is no text or does not parse."""
    if not isinstance(text, str):
        return None
    try:
        return expressions.compile(text)
    except ExpressionError:
        return None


def is_filled(value: Json) -> bool:
    """Whether the value is a text that is not blank."""
    return isinstance(value, str) and bool(value.strip())


def is_texts(value: Json) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def is_integer(value: Json, low: int, high: int | None = None) -> bool:
    if not isinstance(value, int) or isinstance(value, bool):
        return False
    return value >= low and (high is None or value <= high)


def is_positive(value: Json) -> bool:
    """Whether the value is a number above 0."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0


def _edges(written: list[Json]) -> Iterator[DraftEdge]:
    for index, edge in enumerate(written):
        if isinstance(edge, dict):
            when = edge.get("when")
            readable = when is None or isinstance(when, str)
            yield DraftEdge(index, _text(edge.get("from")), _text(edge.get("to")), when if readable else None, readable)


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None
