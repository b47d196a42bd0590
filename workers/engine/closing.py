"""The closing step: a child at the end of its budget is asked once more, without tools, to report (spec: engine 7)."""

from registry.base import Json
from registry.errors import RunFailure
from registry.graph.model import Generate
from workers.engine import ending
from workers.engine.history import close_open_calls
from workers.engine.nodes import generate
from workers.engine.session import Session
from workers.engine.thinking import Held
from workers.models.model import ModelFault


def end(session: Session, failure: RunFailure) -> None:
    """Ends a run that failed: a child over its limit by the closing step, everybody else as failed."""
    node_id = _last_model_node(session)
    kind = failure.data.get("kind")
    if not session.is_child or failure.code != "budget_exceeded" or kind == "turns" or node_id is None:
        ending.fail(session, failure)
        return
    try:
        said = _report(session, node_id)
    except (RunFailure, ModelFault) as error:
        ending.fail(session, RunFailure("budget_exceeded", f"{failure.message}; {error.message}", **failure.data))
        return
    except Held:  # money is short or taken: no report
        ending.fail(session, failure)
        return
    if said is None:
        ending.fail(session, failure)
        return
    used = int(failure.data.get("used", 0)) + (1 if kind == "steps" else 0)
    session.spent_budget = {"kind": kind, "limit": failure.data.get("limit"), "used": used, "closingStep": True}
    ending.complete(session, said)


def _report(session: Session, node_id: str) -> dict[str, Json] | None:
    """The last message, when the model gave one without calls."""
    node = session.graph.nodes[node_id]
    assert isinstance(node, Generate)
    close_open_calls(session)
    with session.node(node_id):
        body = generate.close(session, node)
        session.steps += 1
        session.emit("node.completed", type=node.type, step=session.steps)
    return body


def _last_model_node(session: Session) -> str | None:
    """The model node executed last; none yet: the first of the definition."""
    last = session.memo.get("generate")
    if isinstance(last, str) and isinstance(session.graph.nodes.get(last), Generate):
        return last
    return next((node_id for node_id, node in session.graph.nodes.items() if isinstance(node, Generate)), None)
