"""The loop guard of team agents: the same again and again is first said, then stopped (spec: skills 12).

A model is stopped only for what it does after it was told: equal calls of one answer all count, but the run fails no
sooner than at the answer after the warning. Counts are kept by agent, and a handoff between two equal calls does not
make them different, so that agents who hand over to each other in circles are seen, too. They live in the memo, with
every checkpoint: a park or a crash forgets nothing.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from registry.base import Json
from registry.errors import RunFailure, SkillError
from registry.graph.model import ToolCall
from registry.jsontext import digest
from registry.skills.context import Caller, SkillContext
from workers.engine import contexts
from workers.engine.calls import Call
from workers.engine.session import Session

#: Times running at which the model is warned, and at which the run is stopped.
WARN_AT: Final = 3
STOP_AT: Final = 5
#: Calls of tools that are not there, in the whole run.
STRANGERS: Final = 3
#: Where the memo keeps the counts: {strangers, agents: {id: {calls: {mark: n}, errors: {mark: n}}}}.
MEMO: Final = "guard"
#: Hexadecimal digits of a mark; a checkpoint should stay small.
_MARK: Final = 16

_NOT_THERE: Final = ("unknown_skill", "tool_not_offered")
_HANDOFF: Final = "agents_handoff"


@dataclass(frozen=True)
class _Streaks:
    """How often marks came running, before a batch and with it."""

    before: dict[str, int]
    after: dict[str, int]

    def warns(self, mark: str) -> int:
        """How often, when that has to be said; else 0."""
        return self.after[mark] if self.after[mark] >= WARN_AT else 0

    def over(self, mark: str) -> bool:
        return self.before.get(mark, 0) >= WARN_AT and self.after[mark] >= STOP_AT


def applies(session: Session, node: ToolCall) -> bool:
    """Whether the batch is guarded: calls of a model that works at a task, and whoever it handed the run to."""
    if session.record.task is None or session.is_child or not node.answers_model:
        return False
    return session.agent.graph is None or bool(session.memo.get("handoffs"))


class Guard:
    """What one batch adds to the counts."""

    def __init__(self, session: Session, node: ToolCall, calls: Sequence[Call]) -> None:
        self._session = session
        memo = session.memo.get(MEMO) or {}
        self._known: int = memo.get("strangers", 0)
        self._agents: dict[str, dict[str, dict[str, int]]] = memo.get("agents", {})
        self._mine = self._agents.get(session.agent.id, {})
        self._handoff_only = all(call.name == _HANDOFF for call in calls)
        #: Why calls of tools that are not there were refused.
        self._strangers: list[str] = []
        context = SkillContext(Caller("run"), allowed=contexts.allowed(session, node))
        self._marks = {call.id: self._mark(call, context) for call in calls}
        self._calls = self._streaks("calls", self._marks.values())
        self._errors = self._streaks("errors", ())

    def look(self) -> None:
        """Before anything of the batch runs.

        Raises:
            RunFailure: `loop_detected`, at the fifth same call running or the third of a tool that is not there.
        """
        if self._strangers and self._known and self._known + len(self._strangers) >= STRANGERS:
            raise RunFailure("loop_detected", f"the model keeps calling what it does not have: {self._strangers[-1]}")
        if any(map(self._calls.over, self._marks.values())):
            raise RunFailure("loop_detected", f"the model made the same call {STOP_AT} times running")

    def record(self, entries: Iterable[dict[str, Json]]) -> dict[str, str]:
        """Counts the batch, which has ended; returns the warnings for its results, by call id."""
        errors = {e["id"]: _short([e["name"], e["result"]]) for e in entries if e["isError"]}
        self._errors = self._streaks("errors", errors.values())
        mine = {"calls": self._calls.after, "errors": self._errors.after}
        agents = self._agents | {self._session.agent.id: mine}
        self._session.memo[MEMO] = {"strangers": self._known + len(self._strangers), "agents": agents}
        warnings = {i: _words("got this very error", n) for i, m in errors.items() if (n := self._errors.warns(m))}
        return warnings | {
            i: _words("made this very call", n) for i, m in self._marks.items() if (n := self._calls.warns(m))
        }

    def stop(self) -> None:
        """After the results stand in the history.

        Raises:
            RunFailure: `loop_detected`, at the fifth same error running.
        """
        if any(map(self._errors.over, self._errors.after)):
            raise RunFailure("loop_detected", f"the model got the same error {STOP_AT} times running")

    def _streaks(self, kind: str, marks: Iterable[str]) -> _Streaks:
        before = self._mine.get(kind, {})
        grown = {mark: before.get(mark, 0) + count for mark, count in Counter(marks).items()}
        return _Streaks(before, before | grown if self._handoff_only else grown)

    def _mark(self, call: Call, context: SkillContext) -> str:
        """Equal for calls of the same skill with the same canonical input."""
        try:
            return self._session.tools.registry.check(call.name, call.args, context).digest[:_MARK]
        except SkillError as error:
            if error.code in _NOT_THERE:
                self._strangers.append(error.message)
            return _short([call.name, call.args])


def _short(value: Json) -> str:
    try:
        return digest(value)[:_MARK]
    except (ValueError, RecursionError):  # what a model writes may be no JSON at all
        return digest(repr(value)[:10_000])[:_MARK]


def _words(what: str, times: int) -> str:
    return (
        f"You {what} {times} times running, and it will not come out otherwise. Do something else, or answer with what "
        f"you have: at {STOP_AT} times the run is stopped."
    )
