"""What spawn and map share: children as rows, a park on them, and results in the order of the calls.

Executed the first time, the node makes the children; executed again, it looks at their rows: some are open and it parks
again, or all have ended, or its time is over. Rows decide; a chord or a message only makes it sooner.
"""

import json

from orchestrator.records import ChildRecord, Fanout, Park, wall_ms
from orchestrator.states import RUN_ENDED
from registry.base import Json
from registry.errors import RunFailure
from registry.graph import expressions
from registry.graph.expressions import ExpressionError, evaluate_value
from workers.engine import hooks, spans
from workers.engine.outcome import Parked
from workers.engine.session import Session

#: Keys of a child's output that a note to the model leaves out.
UNTOLD = ("reasoning", "usage")
#: Errors of children that were never made.
NEVER_BEGAN = ("spawn_target_missing", "agent_invalid")


def listed(session: Session, mark: Json) -> Json:
    """The value of a list mark: a path, or a list written in the definition."""
    try:
        if isinstance(mark, str):
            return expressions.compile(mark).evaluate(session.slots())
        return evaluate_value(mark, session.slots())
    except ExpressionError as error:
        raise RunFailure(error.code, error.message) from None


def is_path(mark: Json, key: str) -> bool:
    """Whether a list mark is exactly the state key."""
    return isinstance(mark, str) and expressions.compile(mark).state_key == key


def check_depth(session: Session) -> int:
    """The depth of the children.

    Raises:
        RunFailure: `spawn_depth`.
    """
    depth = session.record.depth + 1
    if depth > session.limits.spawn_depth:
        raise RunFailure("spawn_depth", f"children at depth {depth}; {session.limits.spawn_depth} may be")
    return depth


def park(session: Session, children: list[ChildRecord], *, sequential: bool, timeout_ms: float | None) -> Parked:
    """Writes the children and parks on them."""
    fanout = Fanout(
        node_id=str(session.node_id),
        step=session.steps,
        depth=session.record.depth + 1,
        sequential=sequential,
        children=children,
        trace_parent=session.leg.context,
    )
    for child in children:
        if child.result is None:
            _brief(session, child)
    memo = session.memo["fanout"] = {"step": session.steps, "at": session.services.now_ms()}
    if session.leg.context is not None:
        memo |= {"span": session.leg.context, "wallMs": wall_ms()}
    session.children = children
    due = None if timeout_ms is None else max(1, round(timeout_ms))
    return Parked(Park("waiting", "children", due_in_ms=due), fanout)


def close(session: Session) -> None:
    """The results are taken: the fan-out is over."""
    for child in session.children:
        error = (child.result or {}).get("error") or {}
        if error.get("code") not in NEVER_BEGAN:
            facts = {"subagentRunId": child.id, "index": child.position, "status": child.status}
            hooks.subagent_stop(session, child.agent_id, **facts)
    spans.fanned_out(session, session.memo.pop("fanout", None))
    session.children = []


def open_children(session: Session) -> list[ChildRecord]:
    return [child for child in session.children if child.status not in RUN_ENDED]


def time_left(session: Session, timeout_ms: float | None) -> float | None:
    """Milliseconds until the fan-out's time is over; None when it has none."""
    if timeout_ms is None:
        return None
    memo = session.memo.get("fanout")
    since = int(memo["at"]) if isinstance(memo, dict) else session.services.now_ms()
    return since + timeout_ms - session.services.now_ms()


def tell(session: Session, words: str, results: list[dict[str, Json]]) -> None:
    """The note with which a model learns what its children brought."""
    told = json.dumps([_told(r) for r in results], ensure_ascii=False, separators=(",", ":"))
    session.append({"role": "assistant", "kind": "note", "content": f"{words}: {told}"})


def _brief(session: Session, child: ChildRecord) -> None:
    facts = {"subagentRunId": child.id, "index": child.position, "kind": child.kind, "input": child.input}
    words = hooks.subagent_start(session, child.agent_id, **facts)
    if words is not None:
        child.state[hooks.BRIEFING] = words


def _told(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _told(item) for key, item in value.items() if key not in UNTOLD}
    return value


def concurrency(session: Session, mark: str) -> bool:
    """Whether children run one after the other.

    Raises:
        RunFailure: `concurrency_invalid`, or the code of the expression.
    """
    value: Json = mark
    if mark.startswith("$"):
        value = listed(session, mark)
    if value not in ("parallel", "sequential"):
        raise RunFailure("concurrency_invalid", f"concurrency is {value!r}; use parallel or sequential")
    return bool(value == "sequential")
