"""The curves of links: out of a box at its edge, straight through each layer they pass, bending only between layers."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from registry.graph.drawing.coordinates import nearest
from registry.graph.drawing.layers import LOOP_REACH, Chain, Net
from registry.graph.drawing.shapes import Link, Point, Route

#: Between two links at the edge of a box, and from the box's corner to the first.
_PORT_GAP, _CORNER = 16.0, 20.0

#: (link, whether at its upper end) -> where it touches the box.
_Ports = dict[tuple[int, bool], float]


def all_of(net: Net, links: Sequence[Link]) -> Iterator[Route]:
    """The route of every link, in the order of the links."""
    ports = _ports(net)
    found = {chain.link: _route(net, chain, ports) for chain in net.chains}
    for box, places in net.loops.items():
        found.update(_loops(net, box, places, links))
    return (found[place] for place in range(len(links)))


def _ports(net: Net) -> _Ports:
    """Spreads the links at the upper and at the lower edge of each box, each as near as it can be to straight."""
    ports: _Ports = {}
    at: dict[tuple[int, bool], list[tuple[float, int]]] = {}
    for chain in net.chains:
        first, last = chain.vertices[0], chain.vertices[-1]
        down, up = net.vertices[chain.vertices[1]].x, net.vertices[chain.vertices[-2]].x
        if len(chain.vertices) == 2:  # no lane says where to go: both ends aim at one place
            down = up = _between(net, first, last)
        at.setdefault((first, True), []).append((down, chain.link))
        at.setdefault((last, False), []).append((up, chain.link))
    for (vertex, upper), found in at.items():
        found.sort()
        centre, half = net.vertices[vertex].x, _reach(net, vertex)
        gap = min(_PORT_GAP, 2 * half / max(1, len(found) - 1))
        wanted = [min(max(x, centre - half), centre + half) for x, _ in found]
        placed = nearest(wanted, [1.0] * len(found), [gap] * (len(found) - 1))
        for (_, link), x in zip(found, _within(placed, centre - half, centre + half, gap), strict=True):
            ports[link, upper] = x
    return ports


def _reach(net: Net, vertex: int) -> float:
    """How far from the middle of a box links may touch it."""
    return net.boxes[net.vertices[vertex].box or 0].width / 2 - _CORNER


def _between(net: Net, a: int, b: int) -> float:
    """Where a straight link from one box to another would run: in the middle of what they share."""
    low = max(net.vertices[v].x - _reach(net, v) for v in (a, b))
    high = min(net.vertices[v].x + _reach(net, v) for v in (a, b))
    middle = (net.vertices[a].x + net.vertices[b].x) / 2
    return min(max(middle, low), high) if low <= high else middle


def _within(placed: Sequence[float], low: float, high: float, gap: float) -> list[float]:
    """The places moved between two bounds, still in order and a gap apart; the bounds leave room for that."""
    last = len(placed) - 1
    return [min(max(x, low + i * gap), high - (last - i) * gap) for i, x in enumerate(placed)]


def _route(net: Net, chain: Chain, ports: _Ports) -> Route:
    upper, lower = (net.vertices[v] for v in (chain.vertices[0], chain.vertices[-1]))
    start, end = ports[chain.link, True], ports[chain.link, False]
    stops = [Point(start, net.middle(upper.layer) + upper.height / 2), Point(start, net.span(upper.layer)[1])]
    for vertex in chain.vertices[1:-1]:
        x, layer = net.vertices[vertex].x, net.vertices[vertex].layer
        stops += [Point(x, edge) for edge in net.span(layer)]
    stops += [Point(end, net.span(lower.layer)[0]), Point(end, net.middle(lower.layer) - lower.height / 2)]
    if chain.back:
        stops.reverse()
    label = None
    if chain.label is not None:
        label = Point(net.vertices[chain.label].x, net.middle(net.vertices[chain.label].layer))
    return Route(_smooth(_without_repeats(stops)), label, chain.back)


def _without_repeats(stops: Sequence[Point]) -> list[Point]:
    """Drops points that lie where the one before lies, or between two on the same vertical."""
    kept = [stops[0]]
    for stop in stops[1:]:
        if abs(stop.x - kept[-1].x) < 0.01 and abs(stop.y - kept[-1].y) < 0.01:
            continue
        if len(kept) > 1 and abs(kept[-2].x - kept[-1].x) < 0.01 and abs(kept[-1].x - stop.x) < 0.01:
            kept[-1] = stop
        else:
            kept.append(stop)
    return kept


def _smooth(stops: Sequence[Point]) -> tuple[Point, ...]:
    """A curve through the stops that is vertical at each of them."""
    curve = [stops[0]]
    for a, b in pairwise(stops):
        half = (a.y + b.y) / 2
        curve += [Point(a.x, half), Point(b.x, half), b]
    return tuple(curve)


def _loops(net: Net, box: int, places: Sequence[int], links: Sequence[Link]) -> Iterator[tuple[int, Route]]:
    """Links of a box to itself: arcs at its right edge, each round the one before."""
    vertex = net.vertices[box]
    edge, middle = vertex.x + net.boxes[box].width / 2, net.middle(vertex.layer)
    reach, lift = 0.0, min(9.0, net.boxes[box].height / 4)
    for number, place in enumerate(places):
        width = (links[place].label or (0.0, 0.0))[0]
        reach += LOOP_REACH
        rise = min(lift + 5.0 * number, net.boxes[box].height / 2 - 2)
        start, end = Point(edge, middle - rise), Point(edge, middle + rise)
        out = edge + reach * 1.3
        round_ = 8.0 + 26.0 * number  # far enough to go round the label before
        curve = (start, Point(out, start.y - round_), Point(out, end.y + round_), end)
        label = Point(edge + reach + width / 2, middle) if links[place].label else None
        yield place, Route(curve, label, back=True)
        reach += width


__all__ = ["all_of"]
