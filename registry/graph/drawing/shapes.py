"""What goes into a layout and what comes out: boxes, links, and the curves of links."""

from dataclasses import dataclass
from typing import NamedTuple


class Point(NamedTuple):
    x: float
    y: float


@dataclass(frozen=True)
class Box:
    """Something with an id and a size."""

    id: str
    width: float
    height: float


@dataclass(frozen=True)
class Link:
    """From one box to another; `label` is the size of what is written on it."""

    source: str
    target: str
    label: tuple[float, float] | None = None


@dataclass(frozen=True)
class Route:
    """The way of one link."""

    #: A starting point, then three points for each cubic Bezier piece: two controls and its end.
    curve: tuple[Point, ...]
    #: Centre of the label; None where the link has none.
    label: Point | None
    #: Whether it leads against the flow: it closes a cycle.
    back: bool
