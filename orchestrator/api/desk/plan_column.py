"""The tasks of a project as one column from top to bottom, for screens on which the picture from left to right is too
wide: a card each in the order the work can take, and lines beside them.

Each task that has others after it gets a lane of its own left of the cards, as long as it is needed; short lanes lie
inside, so that lines seldom cross. What comes right below is joined by an arrow and needs no lane.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Final

from orchestrator.api.desk.plan_picture import MOST, Picture, Placed, Tie
from orchestrator.terminal.outline import depths
from orchestrator.terminal.scene import Scene
from orchestrator.terminal.wording import visible
from registry.graph.drawing import texts
from registry.graph.drawing.shapes import Point

#: The whole picture, a card, the blank below a card, and a lane.
WIDTH, HEIGHT, GAP, LANE = 340.0, 66.0, 20.0, 9.0
#: Lanes that are drawn beside each other; what goes further out shares the outermost.
LANES: Final = 10
MARGIN: Final = 4.0
#: Where lines leave and reach a card, from its top; and how long the head of an arrow is.
_OUT, _IN, _TIP = 48.0, 20.0, 7.0
_SIZE: Final = 13.0

Plan = tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True)
class _Column:
    corners: Mapping[str, Point]
    ties: Sequence[Tie]
    card: float
    height: float


def column(scene: Scene) -> Picture | None:
    """The plan drawn; None where `plan_picture.picture` gives none."""
    if not 0 < len(scene.tasks) <= MOST:
        return None
    drawn = _drawn(tuple((key, tuple(before)) for key, before in scene.plan.depends_on.items()))
    room = drawn.card - 52
    cards = [Placed(task, *drawn.corners[key], _lines(task.title, room), room) for key, task in scene.tasks.items()]
    cards.sort(key=lambda placed: placed.y)
    return Picture(WIDTH, drawn.height, cards, list(drawn.ties), drawn.card, HEIGHT)


@lru_cache(maxsize=128)
def _drawn(plan: Plan) -> _Column:
    depth = depths(dict(plan))
    order = sorted((key for key, _ in plan), key=lambda key: depth.get(key, len(plan)))
    row = {key: place for place, key in enumerate(order)}
    after: dict[str, list[str]] = {}
    for key, befores in plan:
        for before in befores:
            after.setdefault(before, []).append(key)
    far = {key: [k for k in keys if row[k] != row[key] + 1] for key, keys in after.items()}
    lanes = _lanes({key: (row[key], max(row[k] for k in keys)) for key, keys in far.items() if keys})
    used = min(LANES, 1 + max(lanes.values(), default=-1))
    left = MARGIN + (used * LANE + 10 if used else 0)
    ties = []
    for source, keys in after.items():
        for target in keys:
            if row[target] == row[source] + 1:
                ties.append(_down(source, target, row, left))
            else:
                ties.append(_aside(source, target, row, left, min(lanes[source], LANES - 1)))
    corners = {key: Point(left, _top(place)) for key, place in row.items()}
    return _Column(corners, ties, WIDTH - left - MARGIN, _top(len(row)) - GAP + MARGIN)


def _lanes(spans: Mapping[str, tuple[int, int]]) -> dict[str, int]:
    """A lane for each span of rows, so that no two that overlap share one; the short ones first."""
    taken: dict[int, list[tuple[int, int]]] = {}
    found = {}
    for key, (first, last) in sorted(spans.items(), key=lambda item: (item[1][1] - item[1][0], item[1])):
        fits = (lane for lane in count() if all(last <= a or b <= first for a, b in taken.get(lane, [])))
        found[key] = next(fits)
        taken.setdefault(found[key], []).append((first, last))
    return found


def _top(place: int) -> float:
    return MARGIN + place * (HEIGHT + GAP)


def _down(source: str, target: str, row: Mapping[str, int], left: float) -> Tie:
    x, start, end = left + 30, _top(row[source]) + HEIGHT, _top(row[target])
    return Tie(source, target, f"M{x:g} {start:g}V{end - _TIP + 1:g}", f"M{x:g} {end:g}l-4 {-_TIP:g}h8Z")


def _aside(source: str, target: str, row: Mapping[str, int], left: float, lane: int) -> Tie:
    """Out of the left side of one card, down its lane, and into the left side of the other."""
    x, start, end = left - 10 - lane * LANE, _top(row[source]) + _OUT, _top(row[target]) + _IN
    line = f"M{left:g} {start:g}H{x + 5:g}q-5 0 -5 5V{end - 5:g}q0 5 5 5H{left - _TIP + 1:g}"
    return Tie(source, target, line, f"M{left:g} {end:g}l{-_TIP:g} -4v8Z")


def _lines(title: str, room: float) -> list[str]:
    return texts.wrap(" ".join(visible(title).split()), room, _SIZE, most=2)
