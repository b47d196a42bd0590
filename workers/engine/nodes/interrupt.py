"""`control:interrupt`: the graph itself asks a person, and goes on with the answer in `$resume`."""

from orchestrator.records import Park, SignalRecord
from registry.errors import RunFailure
from registry.graph.model import Interrupt
from registry.ids import new_id
from workers.engine.outcome import Done, Outcome, Parked
from workers.engine.session import Session


def interrupt(session: Session, node: Interrupt) -> Outcome:
    """Raises its signal and parks; executed again with the answer, it takes it."""
    if session.is_child:
        raise RunFailure("sandbox_blocked", "a child run cannot ask a person")
    raised = next((s for s in session.signals.values() if s.kind == "interrupt" and s.node_id == session.node_id), None)
    if raised is None:
        raised = SignalRecord(
            id=new_id(),
            kind="interrupt",
            title=node.reason[:120],
            node_id=session.node_id,
            reason=node.reason,
            schema=node.resume_schema,
        )
        session.raise_signal(raised)
        return Parked(Park("needs_input", "signals", [raised.id]))
    if raised.status == "open":
        return Parked(Park("needs_input", "signals", [raised.id]))
    if raised.status == "expired":
        raise RunFailure("signal_expired", "nobody answered in time", signalId=raised.id)
    session.use(raised)
    del session.signals[raised.id]  # a later pass over this node asks anew
    session.resume = None if raised.rejected else raised.answer
    return Done(resumed=True)
