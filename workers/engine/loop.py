"""The loop: execute a node, choose an edge, look at the budget, go on; until the run parks or ends (spec: engine 5.3).

`drive` never raises for what a run does: a failure ends the run, a lost lease ends only this worker's part in it.
"""

import logging
from collections.abc import Callable
from typing import Any

from orchestrator.records import Park, RunRecord
from registry.agents import AgentDefinition
from registry.errors import LeaseStale, OfficinaError, Refused, RunFailure, Unavailable
from registry.graph.edges import choose
from registry.graph.expressions import ExpressionError, Slots, evaluate_value
from registry.graph.model import (
    Assign,
    End,
    Generate,
    Goto,
    Handoff,
    Interrupt,
    Map,
    Spawn,
    Start,
    ToolCall,
    Wait,
    Yield,
)
from workers.engine import budget, closing, documents, ending, hooks
from workers.engine.nodes import generate, handoff, interrupt, mapping, plain, spawn, start, tools, wait
from workers.engine.outcome import Done, Outcome, Parked, Yielded
from workers.engine.services import Services
from workers.engine.session import Session

log = logging.getLogger(__name__)

#: Definitions this process keeps as they are read, by digest.
REMEMBERED = 256
_agents: dict[str, AgentDefinition] = {}

HANDLERS: dict[type, Callable[[Session, Any], Outcome]] = {
    Start: start.begin,
    Generate: generate.generate,
    ToolCall: tools.call_tools,
    Assign: plain.assign,
    Goto: plain.goto,
    Interrupt: interrupt.interrupt,
    Wait: wait.wait,
    Spawn: spawn.spawn,
    Map: mapping.map_items,
    Yield: mapping.yield_item,
    Handoff: handoff.hand_off,
}


def open_session(record: RunRecord, services: Services) -> Session | None:
    """The session of a claimed run; None when its definition cannot even be read, and the run has failed with that."""
    try:
        return Session(record, _agent(record), services)
    except ValueError as error:
        ending.refuse(record, services, f"definition_shape: {error}")
        return None


def _agent(record: RunRecord) -> AgentDefinition:
    """The definition as it is read; one that was read before is the same for every run that has it.

    Raises:
        ValueError: it is none.
    """
    found = _agents.get(record.definition_digest)
    if found is None:
        found = AgentDefinition.model_validate(record.definition)
        if record.definition_digest:
            if len(_agents) >= REMEMBERED:
                _agents.clear()
            _agents[record.definition_digest] = found
    return found


def drive(session: Session) -> None:
    """Carries a run on until it parks, ends, or is lost."""
    session.status = "running"
    with session.leg.carried(session):
        _carry(session)


def _carry(session: Session) -> None:
    try:
        _walk(session)
    except LeaseStale as error:
        log.info("run %s lost: %s", session.record.id, error.message)
    except Unavailable as error:  # not the run's fault: its lease runs out, and it goes on from its last checkpoint
        log.warning("run %s left: %s", session.record.id, error.message)
    except Refused as error:
        log.warning("run %s stopped: %s", session.record.id, error.message)


def _walk(session: Session) -> None:
    try:
        if session.record.checkpoint == 0 and not session.begun:
            _begin(session)
        else:
            hooks.session_start(session, "resume")
        question = budget.answered(session)
        if question is not None and not _continue(session, question):
            return
        if session.record.kind == "compact":
            _compact(session)
            return
        while _step(session):
            if session.stopped.is_set():
                return
            if session.leave.is_set():
                if session.moved:
                    session.save()
                return
    except RunFailure as failure:
        closing.end(session, failure)
    except OfficinaError:
        raise
    except Exception as error:
        log.exception("run %s failed on our side", session.record.id)
        ending.fail(session, RunFailure("internal", f"a fault on our side: {type(error).__name__}"))


def _begin(session: Session) -> None:
    """The state at the start, and the definition's last check before anything is spent."""
    faults = session.services.check(session.record)
    if faults:
        raise RunFailure("agent_invalid", "; ".join(faults)[:4000])
    session.begun = True
    documents.begin(session)
    hooks.session_start(session, "startup")
    if session.record.thread_id is not None and not session.is_child:
        # What an earlier run of the thread had queued and not begun was its own plan.
        for key in mapping.QUEUES:
            session.remove(key)
    carried = dict(session.state)
    try:
        only_input = Slots(input=session.input)
        # An item begins with its map's state as that stands; what the map used up does not come back.
        begins = {} if session.record.kind in ("item", "compact") else session.agent.state.initial
        initial = {key: evaluate_value(value, only_input) for key, value in begins.items()}
    except ExpressionError as error:
        raise RunFailure(error.code, error.message) from None
    for key, value in (initial | carried).items():
        session.write(key, value)
    start.take_briefing(session)
    if session.record.kind == "item":
        # The map made its first message; `$input` is the parent's.
        given = session.input
        session.input = session.pending.input = given["parent"]
        hooks.prompt(session, given["text"], "parent")
        session.append({"role": "user", "content": given["text"], "origin": "parent"}, history="messages")
    else:
        session.node_id = session.graph.start_id


def _continue(session: Session, question: Any) -> bool:
    """Acts on a budget answer; False when the run ended with it or still waits."""
    if question.status == "open":
        _park(session, Parked(Park("needs_input", "signals", [question.id])))
        return False
    if question.status == "expired":
        raise RunFailure("signal_expired", "nobody answered the budget question in time")
    if budget.renew(session, question):
        return True
    ending.cancel(session, "a person stopped the run at its budget", code="budget_exceeded")
    return False


def _step(session: Session) -> bool:
    """Executes one node; False when the run parked or ended."""
    node_id = str(session.node_id)
    node = session.graph.nodes[node_id]
    if isinstance(node, End):
        ending.complete(session, start.final_output(session, node))
        return False
    handler = HANDLERS.get(type(node))
    if handler is None:
        raise RunFailure("agent_invalid", f"node {node_id!r}: {node.type} cannot be executed by this release")
    hooks.node_start(session, node.type)
    outcome = handler(session, node)
    if session.lost is not None:
        raise session.lost
    if isinstance(outcome, Parked):
        _park(session, outcome)
        return False
    if isinstance(outcome, Yielded):
        _complete(session, node)
        ending.complete(session, outcome.output)
        return False
    return _leave(session, node_id, node, outcome)


def _compact(session: Session) -> None:
    """A run that only sums its thread up, with the first model node of whoever speaks there."""
    node_id = next((key for key, node in session.graph.nodes.items() if isinstance(node, Generate)), None)
    if node_id is None:
        raise RunFailure("agent_invalid", f"{session.agent.id} asks no model, so that nobody can sum its thread up")
    with session.node(node_id):
        node = session.graph.nodes[node_id]
        assert isinstance(node, Generate)
        outcome = generate.compact(session, node)
    if isinstance(outcome, Parked):
        _park(session, outcome)
    else:
        ending.complete(session, session.output)


def _complete(session: Session, node: Any) -> None:
    hooks.node_end(session, node.type)
    session.steps += 1
    session.emit("node.completed", type=node.type, step=session.steps)


def _leave(session: Session, node_id: str, node: Any, done: Done) -> bool:
    _complete(session, node)
    session.calls = {}
    session.record.resumed_by = None
    if not done.resumed and not isinstance(node, Goto):
        session.resume = None
    target = done.target or choose(session.graph, node_id, session.slots())
    if target is None:
        raise RunFailure("no_matching_edge", f"no edge out of node {node_id!r} matches")
    session.node_id = target
    if not isinstance(session.graph.nodes[target], End):
        with session.node(node_id):
            park = budget.check(session, target)
        if park is not None:
            _park(session, Parked(park))
            return False
        if done.durable:
            session.save()
    return True


def _park(session: Session, parked: Parked) -> None:
    park = parked.park
    until = None if park.due_in_ms is None else session.services.now_ms() + park.due_in_ms
    hooks.session_end(session, park.status)
    session.emit("run.parked", status=park.status, on=park.waiting_on, until=until, reason=park.reason)
    session.save(park=park, fanout=parked.fanout)
    session.status, session.parked = park.status, park
