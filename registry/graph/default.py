"""The graphs that ship: the default tool loop, and the shapes of the presets (spec: engine 16)."""

from functools import cache

from registry.graph.model import Edge, End, Generate, Graph, Handoff, Map, Node, Spawn, Start, ToolCall, Wait, Yield

_CALLS = '$output.finishReason = "tool-calls"'
_SPAWNS = "exists($state.spawns) && length($state.spawns) > 0"
_HANDOFF = "exists($state.handoffAgentId)"
_ITEMS = "exists($state.mapItems) && length($state.mapItems) > 0"
_UNTIL = "exists($state.waitUntilMs)"

#: Milliseconds a map of the shape `full` may take, queue time included.
_MAP_TIMEOUT_MS = 600_000


@cache
def default_graph() -> Graph:
    """What an agent without a graph runs: think, act on the calls, spawn and hand off when tools asked for it."""
    return Graph(nodes=_loop_nodes() | _delegating_nodes(), edges=_edges(spawn=_SPAWNS, handoff=_HANDOFF))


@cache
def full_graph() -> Graph:
    """Shape `full`: the default graph that can also map over items and wait."""
    nodes = _loop_nodes() | _delegating_nodes() | _fanning_nodes()
    edges = _edges(spawn=_SPAWNS, handoff=_HANDOFF, map=_ITEMS, wait=_UNTIL)
    return Graph(nodes=nodes, edges=[*edges, Edge(source="map_item", target="map_done")])


@cache
def loop_graph() -> Graph:
    """Shape `loop`: think and act, nothing that leaves the run."""
    return Graph(nodes=_loop_nodes(), edges=_edges())


def _loop_nodes() -> dict[str, Node]:
    return {
        "start": Start(),
        "think": Generate(prompt="main"),
        "act": ToolCall(calls="$output.toolCalls", concurrency="parallel"),
        "end": End(),
    }


def _delegating_nodes() -> dict[str, Node]:
    return {
        "spawn": Spawn(calls="$state.spawns", concurrency="parallel"),
        "handoff": Handoff(agent_id="$state.handoffAgentId", input="$input"),
    }


def _fanning_nodes() -> dict[str, Node]:
    return {
        "map": Map(
            items="$state.mapItems",
            enter="map_item",
            body=["map_item", "map_done"],
            concurrency="parallel",
            timeout_ms=_MAP_TIMEOUT_MS,
            on_timeout="partial",
        ),
        "map_item": Generate(prompt="main", tools=[]),
        "map_done": Yield(value="$output.text"),
        "wait": Wait(until_ms="$state.waitUntilMs"),
    }


def _edges(**queues: str) -> list[Edge]:
    """The loop's edges. `queues` are the control nodes in the order in which their state keys are looked at.

    Each control node looks at the queues after its own, so that none is served twice in a row and all are served
    before the next model call.
    """
    edges = [
        Edge(source="start", target="think"),
        Edge(source="think", target="act", when=_CALLS),
        Edge(source="think", target="end"),
    ]
    names = list(queues)
    for place, source in enumerate(["act", *names]):
        if source == "handoff":
            edges.append(Edge(source="handoff", target="end"))
            continue
        edges += [Edge(source=source, target=name, when=queues[name]) for name in names[place:]]
        edges.append(Edge(source=source, target="think"))
    return edges
