"""Deferred tools of a run: which it has loaded, and the port by which `load_tools` loads more (spec: engine 10)."""

from collections.abc import Sequence
from typing import Final

from registry.errors import SkillError
from registry.graph.model import Generate
from registry.skills.skill import Skill
from workers.engine import toolset
from workers.engine.session import Session
from workers.engine.toolset import LOADED

#: Where the run remembers how many tools had been loaded when its model was asked last: what it was offered then.
MEMO: Final = "loaded"
#: Characters of a description in the list.
_ABOUT: Final = 120
_BEGIN: Final = "Tools that load_tools shows you, by name:"


class RunShelf:
    """The `Shelf` port of one call of a run; it knows the tools that the answering node may see."""

    def __init__(self, session: Session, answering: Generate | None) -> None:
        """
        Args:
            answering: the node whose model asks; None: the graph itself does, and sees the whole run set.
        """
        self._session = session
        self._answering = answering

    def load(self, names: Sequence[str]) -> tuple[list[Skill], list[str]]:
        """See `Shelf`."""
        tools, most = self._session.tools, self._session.limits.load_tools_names
        if len(names) > most:
            raise SkillError("invalid_input", f"names: {len(names)} are given, and {most} is the most")
        offer = tools.offer(self._answering, loaded(self._session))
        found: dict[str, Skill] = {}
        unknown = []
        for name in dict.fromkeys(names):
            skill = tools.registry.find(name)
            if skill is None or skill.name not in offer.names | offer.deferred:
                unknown.append(name)
            else:
                found[skill.name] = skill
        self._note([name for name in found if name in offer.deferred])
        return list(found.values()), unknown

    def _note(self, names: list[str]) -> None:
        with self._session.lock:
            before = toolset.loaded_names(self._session.state)
            fresh = [name for name in names if name not in before]
            if fresh:
                self._session.write(LOADED, [*before, *fresh])


def loaded(session: Session) -> list[str]:
    """The deferred tools it has loaded, oldest first."""
    return toolset.loaded_names(session.state)


def remember(session: Session) -> None:
    """Notes what is loaded as its model is asked: a call in the answer can use no more than that."""
    count = len(loaded(session))
    if count:
        session.memo[MEMO] = count
    else:
        session.memo.pop(MEMO, None)


def loaded_when_asked(session: Session) -> list[str]:
    """What was loaded when the model was asked last."""
    count = session.memo.get(MEMO, 0)
    return loaded(session)[: count if isinstance(count, int) else 0]


def catalogue(session: Session, deferred: frozenset[str]) -> str:
    """The list of tools that can be loaded, within its caps; empty when there are none."""
    if not deferred:
        return ""
    limits = session.limits
    skills = sorted((s for s in session.tools.registry if s.name in deferred), key=lambda s: s.name)
    lines = [_line(skill) for skill in skills[: limits.deferred_catalogue_entries]]
    # Names come first: where there is no room for what all of them do, they stand alone.
    if len(_BEGIN) + sum(len(line) + 1 for line in lines) > limits.deferred_catalogue_chars:
        lines = [line.partition(": ")[0] for line in lines]
    return listed(_BEGIN, lines, len(skills), limits.deferred_catalogue_chars)


def _line(skill: Skill) -> str:
    return f"- {skill.wire_name}: {' '.join(skill.description.split())[:_ABOUT]}"


def listed(head: str, lines: Sequence[str], count: int, most: int) -> str:
    """A head and as many of the lines as fit into so many characters; the last one counts those left out."""
    room = most - len(head) - len(f"\n- and {count} more")
    kept: list[str] = []
    for line in lines:
        if len(line) + 1 > room:
            break
        kept.append(line)
        room -= len(line) + 1
    left = count - len(kept)
    return "\n".join([head, *kept, *([f"- and {left} more"] if left else [])])
