"""Where the vertices of each layer stand: as near to their neighbours as the order and the gaps allow."""

from collections.abc import Sequence
from itertools import pairwise

from registry.graph.drawing.layers import BOX_GAP, LANE_GAP, STUB, Net

_SWEEPS = 24
#: Vertex visits the sweeps may cost together.
_WORK = 300_000
#: Least and most room between two layers; it grows with the slope of what passes there.
_LEAST, _MOST, _SLOPE = 14.0, 80.0, 0.10
#: A room narrower than nothing by less than this is one that is just tight.
_TIGHT = 0.01


def place(net: Net) -> None:
    """Sets x of every vertex, top and height of every layer, and the size of the whole."""
    for layer in net.layers:
        _pack(net, layer)
    size = len(net.vertices) + sum(map(len, net.below))
    for sweep in range(max(4, min(_SWEEPS, _WORK // size))):
        downward = sweep % 2 == 0
        for layer in net.layers if downward else reversed(net.layers):
            _settle(net, layer, (net.above,) if downward else (net.below,))
    for layer in (*net.layers, *reversed(net.layers)):
        _settle(net, layer, (net.above, net.below))
    for _ in range(2):
        _straighten(net)
    _shift(net)
    _stack(net)


def nearest(wanted: Sequence[float], weights: Sequence[float], gaps: Sequence[float]) -> list[float]:
    """Positions in order, each at least its gap after the one before, with the least squared distance to `wanted`.

    Pools adjacent violators: neighbours that want the same room become a block that stands at its weighted mean.
    """
    offsets = [0.0]
    for gap in gaps:
        offsets.append(offsets[-1] + gap)
    blocks: list[list[float]] = []  # mean, weight, count
    for want, weight, offset in zip(wanted, weights, offsets, strict=True):
        blocks.append([want - offset, weight, 1])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            mean, heavy, count = blocks.pop()
            total = blocks[-1][1] + heavy
            blocks[-1][0] = (blocks[-1][0] * blocks[-1][1] + mean * heavy) / total
            blocks[-1][1] = total
            blocks[-1][2] += count
    means = [mean for mean, _, count in blocks for _ in range(int(count))]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]


def _gap(net: Net, a: int, b: int) -> float:
    """From the x of one vertex to that of the next in its layer, at least."""
    between = LANE_GAP if net.is_lane(a) or net.is_lane(b) else BOX_GAP
    return net.vertices[a].right + between + net.vertices[b].left


def _pack(net: Net, layer: Sequence[int]) -> None:
    x = 0.0
    for number, vertex in enumerate(layer):
        x += _gap(net, layer[number - 1], vertex) if number else 0.0
        net.vertices[vertex].x = x


def _settle(net: Net, layer: Sequence[int], sides: tuple[list[list[int]], ...]) -> None:
    """Moves a layer to where its neighbours on some sides pull it; long links pull hardest, so they get straight."""
    wanted, weights = [], []
    for vertex in layer:
        pull = where = 0.0
        for neighbours in sides:
            for other in neighbours[vertex]:
                strength = _strength(net, vertex, other)
                pull += strength
                where += strength * net.vertices[other].x
        wanted.append(where / pull if pull else net.vertices[vertex].x)
        weights.append(pull or 0.1)
    for vertex, x in zip(layer, nearest(wanted, weights, [_gap(net, a, b) for a, b in pairwise(layer)]), strict=True):
        net.vertices[vertex].x = x


def _straighten(net: Net) -> None:
    """Lets each link bend as seldom as what stands beside its lanes allows."""
    before = {b: a for layer in net.layers for a, b in pairwise(layer)}
    after = {a: b for b, a in before.items()}
    for chain in net.chains:
        rooms = []
        for vertex in chain.vertices[1:-1]:
            low, high = float("-inf"), float("inf")
            if vertex in before:
                low = net.vertices[before[vertex]].x + _gap(net, before[vertex], vertex)
            if vertex in after:
                high = net.vertices[after[vertex]].x - _gap(net, vertex, after[vertex])
            rooms.append((low, high))
        ends = net.vertices[chain.vertices[0]].x, net.vertices[chain.vertices[-1]].x
        for vertex, x in zip(chain.vertices[1:-1], _seldom_bent(rooms, *ends), strict=True):
            net.vertices[vertex].x = x


def _strength(net: Net, a: int, b: int) -> float:
    """How hard two neighbours pull at each other: within a link most, so that it runs straight."""
    if net.is_lane(a) and net.is_lane(b):
        return 8.0
    return net.vertices[a].pull * net.vertices[b].pull


def _seldom_bent(rooms: Sequence[tuple[float, float]], start: float, end: float) -> list[float]:
    """An x in each room, the same for as many rooms in a row as possible; near `start` first, near `end` last."""
    runs: list[list[float]] = []  # low, high, count
    for low, high in rooms:
        common = (max(runs[-1][0], low), min(runs[-1][1], high)) if runs else (0.0, 0.0)
        if runs and common[0] <= common[1] + _TIGHT:
            runs[-1] = [*common, runs[-1][2] + 1]
        else:
            runs.append([low, high, 1])
    found: list[float] = []
    for number, (low, high, count) in enumerate(runs):
        wish = end if number == len(runs) - 1 else found[-1] if found else start
        found += [min(max(wish, low), high)] * int(count)
    return found


def _shift(net: Net) -> None:
    """Makes the leftmost edge zero."""
    first = min(vertex.x - vertex.left for vertex in net.vertices)
    for vertex in net.vertices:
        vertex.x -= first
    net.width = max(vertex.x + vertex.right for vertex in net.vertices)


def _stack(net: Net) -> None:
    net.heights = [max(net.vertices[vertex].height for vertex in layer) for layer in net.layers]
    top = 0.0
    for number, (layer, height) in enumerate(zip(net.layers, net.heights, strict=True)):
        net.tops.append(top)
        steep = max((abs(net.vertices[v].x - net.vertices[b].x) for v in layer for b in net.below[v]), default=0.0)
        # Between the layers, each with its straight ends, and below the last.
        stubs = sum(STUB for n in (number, number + 1) if n < len(net.layers) and net.has_boxes(n))
        top += height + stubs + min(_MOST, max(_LEAST, _SLOPE * steep))
    net.height = net.tops[-1] + net.heights[-1]


__all__ = ["nearest", "place"]
