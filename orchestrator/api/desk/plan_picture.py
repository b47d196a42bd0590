"""The tasks of a project as a picture: a card each, from left to right in the order the work can take.

The layout is that of agents' graphs (`registry.graph.drawing`), laid on its side. It depends on the plan alone, so it
stays where it is while the work moves; what moves is drawn into the cards by the template.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from orchestrator.terminal.scene import Scene, TaskView
from orchestrator.terminal.wording import visible
from registry.graph.drawing import texts
from registry.graph.drawing.layout import Box, Link, arrange
from registry.graph.drawing.shapes import Point, Route

#: A card, and what is kept free around all of them.
WIDTH, HEIGHT, MARGIN = 216.0, 72.0, 10.0
#: Room for a title, and its size.
_ROOM, _SIZE = WIDTH - 52, 13.0
#: Size of the line below it (`.task .meta`).
META: Final = 11.5
#: How long the head of an arrow is.
_TIP: Final = 7.0
#: Tasks a picture may have: more are read as a list.
MOST: Final = 300


@dataclass(frozen=True)
class Placed:
    task: TaskView
    x: float
    y: float
    #: The title in lines that fit.
    lines: list[str]
    #: How wide a line in the card may get.
    room: float

    def meta(self, words: str, beside: str) -> str:
        """As much of the words as fits beside the word of state."""
        room = self.room - texts.width(f"{beside} · ", META, bold=True)
        return texts.cut(" ".join(visible(words).split()), room, META)


@dataclass(frozen=True)
class Tie:
    source: str
    target: str
    #: Of an SVG path.
    line: str
    head: str


@dataclass(frozen=True)
class Picture:
    width: float
    height: float
    cards: list[Placed]
    ties: list[Tie]
    #: Width and height of a card.
    card: float = WIDTH
    tall: float = HEIGHT


def picture(scene: Scene) -> Picture | None:
    """The plan drawn; None when it has no tasks, or more than anybody reads as a picture."""
    if not 0 < len(scene.tasks) <= MOST:
        return None
    plan = tuple((key, tuple(before)) for key, before in scene.plan.depends_on.items())
    width, height, corners, ties = _laid_out(plan)
    cards = [Placed(task, *corners[key], _lines(task.title), _ROOM) for key, task in scene.tasks.items()]
    return Picture(width, height, cards, list(ties))


@lru_cache(maxsize=128)
def _laid_out(
    plan: tuple[tuple[str, tuple[str, ...]], ...],
) -> tuple[float, float, Mapping[str, Point], Sequence[Tie]]:
    # On its side: what the layout calls width is our height.
    pairs = [(before, key) for key, befores in plan for before in befores]
    laid = arrange([Box(key, HEIGHT, WIDTH) for key, _ in plan], [Link(*pair) for pair in pairs])
    corners = {key: _turned(at) for key, at in laid.boxes.items()}
    ties = [_tie(*pair, route) for pair, route in zip(pairs, laid.routes, strict=True)]
    return laid.height + 2 * MARGIN, laid.width + 2 * MARGIN, corners, ties


def _turned(point: Point) -> Point:
    return Point(round(point.y + MARGIN, 1), round(point.x + MARGIN, 1))


def _tie(source: str, target: str, route: Route) -> Tie:
    first, *rest = (_turned(point) for point in route.curve)
    end = rest[-1]
    # The line ends where the head of the arrow begins.
    rest[-1] = Point(end.x - _TIP + 1, end.y)
    pieces = [rest[i : i + 3] for i in range(0, len(rest), 3)]
    curve = "".join("C" + " ".join(f"{p.x:g} {p.y:g}" for p in piece) for piece in pieces)
    head = f"M{end.x:g} {end.y:g}l{-_TIP:g} -4v8Z"
    return Tie(source, target, f"M{first.x:g} {first.y:g}{curve}", head)


def _lines(title: str) -> list[str]:
    return texts.wrap(" ".join(visible(title).split()), _ROOM, _SIZE, most=2)
