"""The children of a fan-out as lines below their task: how many are done, and what each at work does."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from orchestrator.terminal.wording import one_line, several, word
from orchestrator.trees import Child, Fanout, walk

#: Lines one task may take, unless there is less room.
MOST: Final = 12
_INDENT: Final = "   "


@dataclass(frozen=True)
class ChildLine:
    """A child at work, or the line that stands for those there was no room for."""

    #: Blanks by depth, and a hook.
    guides: str
    name: str
    #: None for the line that stands for others.
    status: str | None
    now: str


def summary(fanout: Fanout) -> str:
    """12 of 64 children done, 1 failed."""
    children = "child" if fanout.total == 1 else "children"
    failed = f", {fanout.counts['failed']} failed" if fanout.counts["failed"] else ""
    return f"{fanout.ended} of {fanout.total} {children} done{failed}"


def below(fanout: Fanout, doing: Callable[[Child], str], room: int = MOST) -> list[ChildLine]:
    """Lines for what is at work in a fan-out, in order; what does not fit is counted in the last one."""
    found = list(walk(fanout))
    shown = found if len(found) <= room else found[: max(0, room - 1)]
    lines = [_line(depth, child, doing) for depth, child in shown]
    rest = Counter(word(child.status) for _, child in found[len(shown) :])
    if rest and room > 0:
        told = ", ".join(f"{count} {name}" for name, count in rest.most_common())
        lines.append(ChildLine(f"{_INDENT}⋯ ", f"{several(rest.total(), 'run')} more", None, told))
    return lines


def _line(depth: int, child: Child, doing: Callable[[Child], str]) -> ChildLine:
    if child.fanout is not None:
        now = summary(child.fanout)
    elif child.status == "running":
        now = doing(child)
    else:
        now = "before it tries again" if child.waiting_on == "backoff" else ""
    return ChildLine(f"{_INDENT * (depth + 1)}↳ ", _name(child), child.status, now)


def _name(child: Child) -> str:
    """By its place among the calls or items, as the trace counts them: from 0; an item by how it begins, too."""
    if child.kind != "item":
        return f"{child.position}: {one_line(child.agent, 40)}"
    begins = (child.item or "").strip('"{[')
    return f"item {child.position}: {one_line(begins, 32)}" if begins else f"item {child.position}"
