"""A layered drawing of any directed graph: boxes with sizes and links go in, coordinates and curves come out.

    drawn = arrange([Box("a", 120, 40), Box("b", 120, 40)], [Link("a", "b", label=(80, 20))])
    drawn.boxes["a"], drawn.routes[0].curve

The way of Sugiyama, Tagawa and Toda: links that would close a cycle are turned round, boxes go into layers, a link
that passes a layer gets a lane in it, lanes and boxes are ordered so that few links cross, then moved so that links
run straight. A label is a lane of its own size, so it never lies on a box. Time is bounded: see `layers.MAX_LANES`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from registry.graph.drawing import coordinates, crossings, layers, routes
from registry.graph.drawing.shapes import Box, Link, Point, Route


@dataclass(frozen=True)
class Layout:
    """Where everything goes, in the units of the sizes that were given; y grows downwards."""

    width: float
    height: float
    #: Box id -> its upper left corner.
    boxes: dict[str, Point]
    #: In the order of the links that were given.
    routes: tuple[Route, ...]


def arrange(boxes: Sequence[Box], links: Sequence[Link]) -> Layout:
    """Lays a graph out from top to bottom.

    Args:
        boxes: ids must differ; the order is kept where nothing speaks against it.
        links: both ends must be boxes; parallel links and links of a box to itself are fine.

    Returns:
        The same layout for the same input, always.
    """
    if not boxes:
        return Layout(0, 0, {}, ())
    net = layers.build(boxes, links)
    crossings.order(net)
    coordinates.place(net)
    return Layout(net.width, net.height, net.corners(), tuple(routes.all_of(net, links)))


__all__ = ["Box", "Layout", "Link", "Point", "Route", "arrange"]
