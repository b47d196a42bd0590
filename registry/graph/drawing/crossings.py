"""The order of each layer, so that few links cross: sweeps by the mean place of neighbours, then swaps."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence

from registry.graph.drawing.layers import Net

#: Vertex visits the sweeps may cost together, and the most sweeps.
_WORK, _SWEEPS = 200_000, 24
#: A graph up to this size is improved by swaps as well.
_SWAPS_UP_TO = 2_500


def order(net: Net) -> None:
    """Reorders the layers of a net in place; keeps the best order seen."""
    size = len(net.vertices) + sum(map(len, net.below))
    sweeps = max(2, min(_SWEEPS, _WORK // max(1, size)))
    best, fewest = [list(layer) for layer in net.layers], count(net)
    for sweep in range(sweeps):
        if fewest == 0:
            break
        _sweep(net, downward=sweep % 2 == 0)
        if size <= _SWAPS_UP_TO:
            _swap(net)
        crossed = count(net)
        if crossed < fewest:
            best, fewest = [list(layer) for layer in net.layers], crossed
    net.layers = best


def count(net: Net) -> int:
    """How many segments cross."""
    place = _places(net)
    total = 0
    for layer in net.layers:
        ends: list[int] = []
        for vertex in layer:
            found = sorted(place[below] for below in net.below[vertex])
            total += sum(len(ends) - bisect_right(ends, end) for end in found)
            for end in found:
                insort(ends, end)
    return total


def _places(net: Net) -> list[int]:
    place = [0] * len(net.vertices)
    for layer in net.layers:
        for number, vertex in enumerate(layer):
            place[vertex] = number
    return place


def _sweep(net: Net, *, downward: bool) -> None:
    place = _places(net)
    for layer in net.layers if downward else reversed(net.layers):
        neighbours = net.above if downward else net.below
        layer[:] = _by_mean(layer, neighbours, place)
        for number, vertex in enumerate(layer):
            place[vertex] = number


def _by_mean(layer: Sequence[int], neighbours: Sequence[Sequence[int]], place: Sequence[int]) -> list[int]:
    """The layer by the mean place of neighbours; who has none stays where it is."""
    means = {v: sum(place[n] for n in neighbours[v]) / len(neighbours[v]) for v in layer if neighbours[v]}
    movable = iter(sorted(means, key=lambda v: means[v]))
    return [next(movable) if v in means else v for v in layer]


def _swap(net: Net) -> None:
    """Swaps neighbours of a layer while that removes crossings."""
    place = _places(net)
    for layer in net.layers:
        better = True
        rounds = 0
        while better and rounds < 8:
            better, rounds = False, rounds + 1
            for i in range(len(layer) - 1):
                a, b = layer[i], layer[i + 1]
                if _crossed(net, place, a, b) > _crossed(net, place, b, a):
                    layer[i], layer[i + 1] = b, a
                    place[a], place[b] = i + 1, i
                    better = True


def _crossed(net: Net, place: Sequence[int], left: int, right: int) -> int:
    """Crossings between the segments of two neighbours, standing in this order."""
    total = 0
    for neighbours in (net.above, net.below):
        ends = sorted(place[n] for n in neighbours[right])
        total += sum(bisect_left(ends, place[n]) for n in neighbours[left])
    return total
