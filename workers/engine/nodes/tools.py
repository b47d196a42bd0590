"""`tool:call`: a fixed call or a batch, every one of them through the one `invoke`."""

from orchestrator.records import Park
from registry.graph.model import ToolCall
from workers.engine import calls, guard, results
from workers.engine.batch import Batch
from workers.engine.outcome import Done, Outcome, Parked
from workers.engine.session import Session


def call_tools(session: Session, node: ToolCall) -> Outcome:
    """Runs the node's calls; parks when some of them wait for a person. Tool messages follow in call order."""
    todo = calls.read(session, node)
    watch = guard.Guard(session, node, todo) if guard.applies(session, node) else None
    if watch is not None:
        watch.look()
    batch = Batch(session, node, todo, calls.concurrency(session, node))
    batch.run()
    if batch.asked:
        return Parked(Park("needs_input", "signals", batch.asked))
    entries = batch.entries()
    unheld = [{"id": c.id, "name": c.name, "args": c.args} for c in batch.calls if not c.held]
    if unheld:
        session.append({"role": "assistant", "content": "", "toolCalls": unheld, "kind": "call"})
    warnings = watch.record(entries) if watch is not None else {}
    for entry in entries:
        session.append(results.message(session, entry, warning=warnings.get(entry["id"])))
    session.output, session.output_ref = {"results": entries}, {"calls": session.steps}
    if watch is not None:
        watch.stop()
    return Done(durable=True)
