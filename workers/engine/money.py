"""Money: the worst case of a call is reserved before it, in every window it draws on, and settled after it.

Windows: the caps of project and task, the agent's own `maxCostUsd`, and those shared by runs above. A price nobody
knows counts as 0 and is flagged; it is never taken for free.
"""

from decimal import Decimal

from orchestrator.records import Limit, Park
from registry.errors import SkillError
from workers.engine import budget
from workers.engine.budget import Exhausted
from workers.engine.session import Session

#: Milliseconds a run waits when only others' open reservations are in the way.
BUSY_MS = 1_000
MICRO = 1_000_000


def reserve(session: Session, call_key: str, worst_micro: int | None) -> Park | None:
    """Reserves a call's worst case; a park when it has to wait, for others or for a person.

    Raises:
        RunFailure: `budget_exceeded`, kind `cost`, where the policy is to end.
    """
    limits = _limits(session)
    if not worst_micro or not limits:
        return None
    refusal = session.services.journal.reserve(session.record.id, call_key, limits, worst_micro)
    if refusal is None:
        session.pending.settled[call_key] = 0  # given back with the next write, unless the call books its cost
        return None
    if refusal.busy:
        return Park("waiting", "backoff", due_in_ms=BUSY_MS)
    reached = Exhausted("cost", refusal.limit_micro, refusal.spent_micro, refusal.window_id, wanted=worst_micro)
    return budget.refuse(session, reached, str(session.node_id))


def book(session: Session, call_key: str, cost_micro: int | None) -> None:
    """Settles a call with what it cost, in the checkpoint that stores its answer."""
    session.spend(cost_micro)
    if call_key in session.pending.settled:
        session.pending.settled[call_key] = cost_micro or 0


def hold(session: Session, call_key: str, worst_micro: int | None) -> None:
    """Reserves the worst case of a model call that a skill makes; it is given back when the call is settled.

    Raises:
        SkillError: `budget_exceeded`; the run itself goes on.
    """
    limits = _limits(session)
    if not worst_micro or not limits:
        return
    refusal = session.services.journal.reserve(session.record.id, call_key, limits, worst_micro)
    if refusal is None:
        return
    if refusal.busy:
        words = "the rest of the budget is held by calls that are under way; try again when they are done"
        raise SkillError("budget_exceeded", words, retryable=True)
    limit, spent = (Decimal(micro) / MICRO for micro in (refusal.limit_micro, refusal.spent_micro))
    words = f"the call may cost {Decimal(worst_micro) / MICRO} USD, and {spent} of {limit} USD are spent"
    raise SkillError("budget_exceeded", words)


def settle(session: Session, call_key: str, cost_micro: int | None) -> None:
    """Books such a call with the next write."""
    session.spend(cost_micro)
    session.pending.settled[call_key] = cost_micro or 0


def let_go(session: Session, call_key: str) -> None:
    """Gives back what such a call had reserved: it brought no answer."""
    with session.lock:
        session.pending.settled[call_key] = 0


def _limits(session: Session) -> list[Limit]:
    record = session.record
    found = []
    if record.project_id is not None and record.max_cost_micro is not None:
        found.append(Limit(f"project:{record.project_id}", record.max_cost_micro))
    if record.task is not None and session.services.task_cost_micro is not None:
        found.append(Limit(f"task:{record.task.id}", session.services.task_cost_micro))
    own = session.agent.budget
    if own is not None and own.max_cost_usd is not None:
        found.append(Limit(f"run:{record.id}", _micro(own.max_cost_usd)))
    for run_id, body in record.shared:
        if body.get("maxCostUsd") is not None:
            found.append(Limit(f"run:{run_id}", _micro(body["maxCostUsd"])))
    return found


def _micro(usd: float) -> int:
    return int(Decimal(str(usd)) * MICRO)
