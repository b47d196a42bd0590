"""`control:handoff`: the same run goes on as another agent, with its prompts, graph, tools and rights."""

from registry.agents import AgentDefinition
from registry.errors import RunFailure
from registry.graph import expressions
from registry.graph.expressions import ExpressionError, evaluate_value
from registry.graph.model import Handoff
from workers.engine import documents, targets
from workers.engine.nodes.start import take_input
from workers.engine.outcome import Done
from workers.engine.session import Session
from workers.engine.targets import Target


def hand_off(session: Session, node: Handoff) -> Done:
    """Changes the speaker of the run. State, history and counters stay; the limits become the target's."""
    if session.is_child:
        raise RunFailure("handoff_in_sandbox", "a child run cannot hand off")
    target = _target(session, node)
    count = int(session.memo.get("handoffs", 0)) + 1
    if count > session.limits.handoffs_per_run:
        raise RunFailure("handoff_limit", f"the run changed its speaker {count - 1} times already")
    given = _input(session, node)
    before = session.agent
    session.memo["handoffs"] = count
    session.remove("handoffAgentId")
    session.emit("agent.handoff", **{"from": before.id, "agentId": target.id})
    speaker = AgentDefinition.model_validate(target.definition)
    session.leg.hand_over(session, speaker)
    session.become(speaker)
    documents.begin(session)
    session.record.definition_digest = target.digest
    session.pending.speaker = (target.id, target.name, target.digest, target.definition)
    words = f"{before.name} handed over to {target.name}, who speaks from here on."
    session.append({"role": "assistant", "kind": "note", "content": words})
    if given is not None and given != session.input:
        session.input = session.pending.input = given
        take_input(session, given)
    session.output, session.output_ref = {"agentId": target.id}, None
    return Done(target=session.graph.start_id, durable=True)


def _target(session: Session, node: Handoff) -> Target:
    text: object = node.agent_id
    if node.agent_id.startswith("$"):
        try:
            text = expressions.compile(node.agent_id).evaluate(session.slots())
        except ExpressionError as error:
            raise RunFailure(error.code, error.message) from None
    if not isinstance(text, str) or not text:
        raise RunFailure("handoff_target", f"the target is {text!r}, and has to be the id or name of an agent")
    found = targets.find(text, session.services.targets(session.record))
    if found is None or found.level != "top":
        raise RunFailure("handoff_target", f"{text!r} is no agent this run can hand over to")
    if found.id == session.agent.id:
        raise RunFailure("handoff_self", f"{found.id} speaks already")
    faults = session.services.check_definition(found.definition, session.record)
    if faults:
        unresolved = all(fault.startswith("model_unresolved:") for fault in faults)
        raise RunFailure("handoff_model_unresolved" if unresolved else "agent_invalid", "; ".join(faults)[:4000])
    return found


def _input(session: Session, node: Handoff) -> object:
    if not node.has_input:
        return None
    try:
        return evaluate_value(node.input, session.slots())
    except ExpressionError as error:
        raise RunFailure(error.code, error.message) from None
