"""From boxes and links to a net in layers: cycles are cut, each box gets a layer, long links get lanes."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import fsum

from registry.graph.drawing.shapes import Box, Link, Point

#: Lanes a drawing may have. Beyond, the longest links cross boxes instead of passing them: a graph of that many is
#: read by searching it, and time stays bounded.
MAX_LANES = 6_000
#: Between two boxes of a layer, and beside a lane.
BOX_GAP, LANE_GAP = 34.0, 16.0
#: How far the first loop of a box on itself reaches out, and each further one beyond the label before it.
LOOP_REACH = 26.0
#: How far links go straight above and below boxes.
STUB = 12.0


@dataclass(slots=True)
class Vertex:
    """A box, or a lane of a link in one layer it passes."""

    layer: int
    #: From its x to its left and right edge: unequal where loops hang on the right.
    left: float
    right: float
    height: float
    #: Index of its box; None for a lane.
    box: int | None = None
    #: How hard its link pulls at boxes.
    pull: float = 1.0
    x: float = 0.0


@dataclass
class Chain:
    """The vertices of a link from top to bottom."""

    link: int
    vertices: list[int]
    back: bool
    #: The vertex that carries the label.
    label: int | None


@dataclass
class Net:
    """A layered graph: vertices, and segments that join vertices of different layers."""

    boxes: Sequence[Box]
    vertices: list[Vertex]
    chains: list[Chain]
    #: Layers from top to bottom: vertices from left to right.
    layers: list[list[int]]
    #: Per vertex the vertices above and below it, one entry for each segment.
    above: list[list[int]]
    below: list[list[int]]
    #: Box index -> links that begin and end there.
    loops: dict[int, list[int]]
    tops: list[float] = field(default_factory=list)
    heights: list[float] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0

    def is_lane(self, vertex: int) -> bool:
        return self.vertices[vertex].box is None

    def corners(self) -> dict[str, Point]:
        """Upper left corner of each box; in its layer a box stands in the middle."""
        found = {}
        for vertex in self.vertices:
            if vertex.box is not None:
                box = self.boxes[vertex.box]
                found[box.id] = Point(vertex.x - box.width / 2, self.middle(vertex.layer) - box.height / 2)
        return found

    def middle(self, layer: int) -> float:
        return self.tops[layer] + self.heights[layer] / 2

    def span(self, layer: int) -> tuple[float, float]:
        """From where to where links go straight: past the layer, and at boxes as far as an arrow is long."""
        stub = STUB if self.has_boxes(layer) else 0.0
        return self.tops[layer] - stub, self.tops[layer] + self.heights[layer] + stub

    def has_boxes(self, layer: int) -> bool:
        return any(not self.is_lane(vertex) for vertex in self.layers[layer])


def build(boxes: Sequence[Box], links: Sequence[Link]) -> Net:
    """The net of a graph, vertices of a layer in the order of a walk from the top."""
    index = {box.id: place for place, box in enumerate(boxes)}
    ends = [(index[link.source], index[link.target]) for link in links]
    back = _closing(len(boxes), ends)
    # A label needs a layer of its own between its boxes.
    length = 2 if any(link.label for link in links) else 1
    downward = [(b, a) if place in back else (a, b) for place, (a, b) in enumerate(ends)]
    levels = _levels(len(boxes), [pair for pair in downward if pair[0] != pair[1]], length)
    loops: dict[int, list[int]] = {}
    for place, (a, b) in enumerate(ends):
        if a == b:
            loops.setdefault(a, []).append(place)
    vertices = [
        Vertex(levels[i], box.width / 2, box.width / 2 + _reach(links, loops.get(i, ())), box.height, box=i)
        for i, box in enumerate(boxes)
    ]
    chains = _chains(vertices, links, downward, back)
    return _net(boxes, vertices, chains, loops)


def _reach(links: Sequence[Link], loops: Sequence[int]) -> float:
    return fsum(LOOP_REACH + (label[0] if (label := links[place].label) else 0) for place in loops)


def _closing(count: int, ends: Sequence[tuple[int, int]]) -> set[int]:
    """Links that lead back to a box on the way to them, found by walking from the sources in the given order."""
    out: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    entered = [False] * count
    for place, (a, b) in enumerate(ends):
        if a != b:
            out[a].append((place, b))
            entered[b] = True
    closing: set[int] = set()
    state = [0] * count  # 0 not seen, 1 on the way, 2 done
    for root in sorted(range(count), key=lambda i: entered[i]):
        if state[root]:
            continue
        state[root] = 1
        way = [(root, iter(out[root]))]
        while way:
            here, rest = way[-1]
            step = next(rest, None)
            if step is None:
                state[here] = 2
                way.pop()
            elif state[step[1]] == 1:
                closing.add(step[0])
            elif state[step[1]] == 0:
                state[step[1]] = 1
                way.append((step[1], iter(out[step[1]])))
    return closing


def _levels(count: int, pairs: Sequence[tuple[int, int]], length: int) -> list[int]:
    """The layer of each box: below all that lead to it, and no further from them than it has to be."""
    above: list[list[int]] = [[] for _ in range(count)]
    below: list[list[int]] = [[] for _ in range(count)]
    for a, b in pairs:
        below[a].append(b)
        above[b].append(a)
    order, level = _topological(above, below), [0] * count
    for i in order:
        level[i] = max((level[a] + length for a in above[i]), default=0)
    # Moved down where more links get shorter by it than longer.
    for i in reversed(order):
        if len(below[i]) > len(above[i]):
            level[i] = min(level[b] for b in below[i]) - length
    return level


def _topological(above: Sequence[Sequence[int]], below: Sequence[Sequence[int]]) -> list[int]:
    waits = [len(found) for found in above]
    order = [i for i, count in enumerate(waits) if count == 0]
    for i in order:
        for b in below[i]:
            waits[b] -= 1
            if waits[b] == 0:
                order.append(b)
    return order


def _chains(
    vertices: list[Vertex], links: Sequence[Link], downward: Sequence[tuple[int, int]], back: set[int]
) -> list[Chain]:
    """A chain for each link between two boxes, with a lane in each layer it passes, the shortest links first."""
    chains = []
    spans = {place: (vertices[a].layer, vertices[b].layer) for place, (a, b) in enumerate(downward) if a != b}
    # Conditions are read where they are decided: next to the box the link comes from.
    labelled = {
        place: bottom - 1 if place in back else top + 1
        for place, (top, bottom) in spans.items()
        if links[place].label and bottom - top > 1
    }
    used = sorted({vertex.layer for vertex in vertices} | {*labelled.values()})
    left = MAX_LANES
    for place in sorted(spans, key=lambda place: spans[place][1] - spans[place][0]):
        passed = used[bisect_right(used, spans[place][0]) : bisect_left(used, spans[place][1])]
        if len(passed) > left:
            passed = [labelled[place]] if place in labelled else []
        left -= len(passed)
        a, b = downward[place]
        chain = Chain(place, [a], place in back, None)
        # What goes on to the next box should be straight before what jumps ahead, and that before what goes back.
        pull = 0.3 if chain.back else 2.0 if len(passed) <= 1 else 0.8
        for layer in passed:
            width, height = 0.0, 0.0
            if layer == labelled.get(place):
                width, height = links[place].label or (0.0, 0.0)
                chain.label = len(vertices)
            chain.vertices.append(len(vertices))
            vertices.append(Vertex(layer, width / 2, width / 2, height, pull=pull))
        chain.vertices.append(b)
        chains.append(chain)
    chains.sort(key=lambda chain: chain.link)
    return chains


def _net(boxes: Sequence[Box], vertices: list[Vertex], chains: list[Chain], loops: dict[int, list[int]]) -> Net:
    above: list[list[int]] = [[] for _ in vertices]
    below: list[list[int]] = [[] for _ in vertices]
    for chain in chains:
        for upper, lower in pairwise(chain.vertices):
            below[upper].append(lower)
            above[lower].append(upper)
    used = sorted({vertex.layer for vertex in vertices})
    place = {layer: number for number, layer in enumerate(used)}
    for vertex in vertices:
        vertex.layer = place[vertex.layer]
    layers: list[list[int]] = [[] for _ in used]
    for i in _walk(below, sorted(range(len(boxes)), key=lambda i: (vertices[i].layer, i))):
        layers[vertices[i].layer].append(i)
    return Net(boxes, vertices, chains, layers, above, below, loops)


def _walk(below: Sequence[Sequence[int]], roots: Sequence[int]) -> list[int]:
    """Every vertex once, what hangs on one following it: a first order that keeps together what belongs together."""
    seen = [False] * len(below)
    found = []
    for root in roots:
        todo = [root]
        while todo:
            here = todo.pop()
            if not seen[here]:
                seen[here] = True
                found.append(here)
                todo += reversed(below[here])
    return found
