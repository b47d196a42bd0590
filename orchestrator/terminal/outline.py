"""A DAG drawn as an outline: every task once, below the last of the tasks it depends on.

A chain stays in its column and only a fork indents, so that a chain of 200 is a list and not a staircase. Nothing here
recurses: 5,000 tasks in a row are as good as five.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

#: Columns the guides may take; deeper forks share the last ones.
WIDEST = 24

_TEE, _CORNER, _BAR, _GAP = "├─ ", "└─ ", "│  ", "   "


@dataclass(frozen=True)
class Line:
    """Where a task stands in the outline."""

    key: str
    #: What is drawn before it.
    guides: str
    #: The tasks it depends on besides the one it stands below.
    also_after: tuple[str, ...]


def outline(depends_on: Mapping[str, Sequence[str]]) -> list[Line]:
    """Lines of a DAG given as key -> keys it depends on, in plan order; unknown keys are left out."""
    known = {key: [k for k in keys if k in depends_on and k != key] for key, keys in depends_on.items()}
    depth = depths(known)
    order = {key: number for number, key in enumerate(known)}
    above = {key: max(keys, key=lambda k: (depth[k], order[k])) for key, keys in known.items() if keys and key in depth}
    below: dict[str | None, list[str]] = {}
    for key in known:
        below.setdefault(above.get(key), []).append(key)
    return _walk(known, above, below)


def _walk(
    known: Mapping[str, Sequence[str]], above: Mapping[str, str], below: Mapping[str | None, Sequence[str]]
) -> list[Line]:
    lines = []
    stack = [(key, first, rest) for key, first, rest in reversed(_placed(below.get(None, []), ""))]
    while stack:
        key, guides, indent = stack.pop()
        also = tuple(k for k in known[key] if k != above.get(key))
        lines.append(Line(key, _narrow(guides), also))
        stack.extend(reversed(_placed(below.get(key, []), indent)))
    return lines


def _placed(keys: Sequence[str], indent: str) -> list[tuple[str, str, str]]:
    """Each key with the guides of its own line and the indent of what comes below it."""
    if len(keys) <= 1:
        return [(key, indent, indent) for key in keys]
    return [(key, indent + _TEE, indent + _BAR) for key in keys[:-1]] + [(keys[-1], indent + _CORNER, indent + _GAP)]


def under(guides: str) -> str:
    """What is drawn before a line that belongs to the one with these guides."""
    return guides.replace("├─", "│ ").replace("└─", "  ")


def depths(known: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Longest way from a root to each task; tasks of a cycle (no accepted plan has one) get none and stand as roots."""
    open_before = {key: len(keys) for key, keys in known.items()}
    after: dict[str, list[str]] = {key: [] for key in known}
    for key, keys in known.items():
        for k in keys:
            after[k].append(key)
    depth = {key: 0 for key, count in open_before.items() if count == 0}
    ready = list(depth)
    while ready:
        key = ready.pop()
        for later in after[key]:
            open_before[later] -= 1
            if open_before[later] == 0:
                depth[later] = 1 + max(depth[k] for k in known[later])
                ready.append(later)
    return depth


def _narrow(guides: str) -> str:
    return guides if len(guides) <= WIDEST else "⋯  " + guides[-(WIDEST - 3) :]


def fold(weights: Sequence[tuple[int, int]], room: int) -> list[range | int]:
    """Which lines to draw when only `room` fit: the heaviest, and one line for each stretch left out.

    Returns line numbers in order, and ranges for the stretches.
    """
    if len(weights) <= room:
        return list(range(len(weights)))
    heaviest = sorted(range(len(weights)), key=weights.__getitem__, reverse=True)
    for count in range(max(1, room), 0, -1):
        drawn = _with_gaps(sorted(heaviest[:count]), len(weights))
        if len(drawn) <= room:
            return drawn
    return [range(len(weights))]


def _with_gaps(kept: Iterable[int], total: int) -> list[range | int]:
    drawn: list[range | int] = []
    at = 0
    for number in [*kept, total]:
        if number - at == 1:
            drawn.append(at)  # a stretch of one is as long as the line that would stand for it
        elif number > at:
            drawn.append(range(at, number))
        if number < total:
            drawn.append(number)
        at = number + 1
    return drawn
