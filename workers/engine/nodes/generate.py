"""`llm:generate`: one model call, one assistant message."""

from orchestrator import planner, unknown
from orchestrator.records import UNSET, Park
from registry import schemas
from registry.base import Json
from registry.errors import Fault, RunFailure
from registry.graph import expressions
from registry.graph.model import Generate
from registry.ids import new_id
from workers.engine import compaction, prompts, restore, shelf, thinking
from workers.engine.compaction import View
from workers.engine.history import are_messages, open_calls
from workers.engine.outcome import Done, Outcome, Parked
from workers.engine.session import Session
from workers.engine.thinking import Held
from workers.engine.toolset import NOTHING
from workers.models.model import ModelFault, Reply, Request, Situation, ToolCall
from workers.models.scrub import scrub

#: Milliseconds a run waits after a model that keeps failing: the quick retries are the client's.
BACKOFFS_MS = (30_000, 120_000, 600_000)
#: Answers in a row that the length limit may cut before the run fails, and what the model is told of one.
CUTS = 2
CUT = (
    "Your last answer was cut off by the length limit; what it was about to call was not called. Do not repeat it "
    "whole: go on in smaller steps, write long texts to files in several parts, and keep your answer short."
)
#: Keys of `$output` a structured answer cannot take.
RESERVED = ("finishReason", "text", "toolCalls")


def generate(session: Session, node: Generate) -> Outcome:
    """Asks the model with the node's history and appends what it says.

    Raises:
        RunFailure: `missing_tool_results`, `messages_path`, `model_failed`, `output_invalid`, `budget_exceeded`.
    """
    key = expressions.compile(node.messages).state_key or "messages"
    session.memo["generate"] = session.node_id
    shelf.remember(session)
    history = _history(session, key)
    _refuse_open_calls(session, history)
    _tell_repairs(session, key)
    closing = session.is_team_run and session.turns >= session.limits.agent_turns
    try:
        reply = _ask(session, node, key, closing=closing)
        structured = _structured(session, node, key, reply)
    except Held as held:
        return Parked(held.park)
    except ModelFault as fault:
        return _failed(session, fault)
    session.backoffs = 0
    if structured is not None:
        reply, value = structured
        body = _say(session, key, reply, closing=closing)
        session.output_ref = None
        session.output = restore.answer(body) | {
            "structured": value,
            **{k: v for k, v in value.items() if k not in RESERVED},
        }
        return Done(durable=True)
    body = _say(session, key, reply, closing=closing)
    session.output, session.output_ref = restore.answer(body), {"message": session.messages, "node": session.node_id}
    if closing and (reply.calls or not reply.text.strip()):
        limit = session.limits.agent_turns
        raise RunFailure(
            "budget_exceeded",
            f"the agent used its {limit} turns and did not end with an answer",
            kind="turns",
            limit=limit,
            used=session.turns,
        )
    if _is_cut(session, reply, closing=closing):
        return _go_on(session, key)
    session.memo.pop("cuts", None)
    return Done(durable=True)


def close(session: Session, node: Generate) -> dict[str, Json] | None:
    """One more call of a child that is over its budget, with no tools; None when it does not answer in words."""
    key = expressions.compile(node.messages).state_key or "messages"
    reply = _ask(session, node, key, closing=True)
    body = _say(session, key, reply, closing=True)
    return body if not reply.calls and reply.text.strip() else None


def compact(session: Session, node: Generate) -> Outcome:
    """Sums up all that a node would send, because a person wants it; the run does nothing else."""
    key = expressions.compile(node.messages).state_key or "messages"
    history = _history(session, key)
    _refuse_open_calls(session, history)
    seen, request = _request(session, node, key, closing=False)
    try:
        done = compaction.sum_up(session, node, key, seen, request, reason="manual")
    except Held as held:
        return Parked(held.park)
    session.output, session.output_ref = {"summedUp": done, "messages": len(seen.messages)}, None
    return Done()


def _history(session: Session, key: str) -> list[dict[str, Json]]:
    found: list[dict[str, Json]] = session.state.get(key, [])
    if not are_messages(found):
        raise RunFailure("messages_path", f"$state.{key} is no list of messages")
    return found


def _refuse_open_calls(session: Session, history: list[dict[str, Json]]) -> None:
    missing = open_calls(history)
    if missing:
        names = ", ".join(f"{c['id']} ({c['name']})" for c in missing)
        words = f"node {session.node_id!r} would call the model while these calls have no result: {names}"
        raise RunFailure("missing_tool_results", words)


def _tell_repairs(session: Session, key: str) -> None:
    """What a person found out about calls of unknown outcome, as notes in the history."""
    for repair in session.read_repairs():
        words = unknown.told(repair.name, repair.call_id, repair.how, repair.result)
        session.append({"role": "assistant", "kind": "note", "content": words}, history=key)


def _ask(session: Session, node: Generate, key: str, *, closing: bool) -> Reply:
    """One call with what the node says, the history and the notes; a history that is too long is summed up first."""
    seen, request = _request(session, node, key, closing=closing)
    if compaction.due(session, seen, request) and compaction.sum_up(session, node, key, seen, request):
        _, request = _request(session, node, key, closing=closing)
    return thinking.ask(session, request)


def _is_cut(session: Session, reply: Reply, *, closing: bool) -> bool:
    """Whether the length limit cut an answer of a task's default loop: it is no final message, and calls it was about
    to make were never made (spec: skills 13.1). A graph of its own looks at `finishReason` by itself."""
    at_work = session.record.task is not None and session.agent.graph is None and not closing
    return at_work and reply.finish_reason == "length" and not reply.calls


def _go_on(session: Session, key: str) -> Done:
    """The same node once more, after an answer that was cut.

    Raises:
        RunFailure: `model_failed` when answers keep being cut; another attempt may get past it.
    """
    cuts = session.memo["cuts"] = session.memo.get("cuts", 0) + 1
    if cuts > CUTS:
        raise RunFailure("model_failed", f"the length limit cut off {cuts} answers in a row; raise maxTokens")
    session.append({"role": "assistant", "kind": "note", "content": CUT}, history=key)
    return Done(target=session.node_id, durable=True)


def _request(session: Session, node: Generate, key: str, *, closing: bool) -> tuple[View, Request]:
    seen = compaction.view(_history(session, key))
    model, fallback = thinking.models(session, node)
    offer = NOTHING if closing else session.tools.offer(node, shelf.loaded(session))
    return seen, Request(
        tier=session.agent.tier,
        model=model,
        fallback=fallback,
        generation=thinking.generation(session, node),
        system=prompts.system(session, node, offer.names, seen.summary),
        messages=[*seen.messages, *prompts.notes(session, offer, closing=closing)],
        tools=session.tools.described(offer.names),
        output=node.output,
        timeout_s=session.services.model_timeout_s,
        cancelled=session.stopped.is_set,
        situation=_situation(session, closing=closing),
    )


def _say(session: Session, key: str, reply: Reply, *, closing: bool) -> dict[str, Json]:
    body: dict[str, Json] = {"role": "assistant", "content": reply.text, "finishReason": reply.finish_reason}
    if reply.calls and not closing:
        body["toolCalls"] = [_call(session, call) for call in reply.calls]
        body["finishReason"] = "tool-calls"
    if reply.reasoning:
        body["reasoning"] = reply.reasoning
    body["usage"] = reply.usage.to_json()
    session.append(body, history=key)
    return body


def _call(session: Session, call: ToolCall) -> dict[str, Json]:
    """A call as it is stored: under its dotted name, with an id no other call of the run has."""
    known = session.tools.registry.find(call.name)
    call_id = call.id if call.id and call.id not in session.call_ids else f"call_{new_id()}"
    session.call_ids.add(call_id)
    return {"id": call_id, "name": known.name if known else call.name, "args": call.arguments}


def _structured(session: Session, node: Generate, key: str, reply: Reply) -> tuple[Reply, dict[str, Json]] | None:
    """The checked answer of a structured node; what does not fit is told to the model, which answers again."""
    if node.output is None or reply.calls:
        return None
    planning = session.record.kind == "plan"
    rounds = planner.ROUNDS if planning else 1
    while True:
        value, faults = _value(reply)
        if not faults:
            faults = planner.faults(value) if planning else _fits(node.output, value)
        if not faults:
            session.memo.pop("repairs", None)
            return reply, value if isinstance(value, dict) else {"value": value}
        _say(session, key, reply, closing=False)
        # Kept with the run: a round in which the model is busy is not asked for once more.
        done = session.memo.get("repairs", 0)
        if done >= rounds:
            words = f"{faults[0]}" + (f" (and {len(faults) - 1} more)" if len(faults) > 1 else "")
            raise RunFailure("output_invalid", f"the model's answer does not fit the schema: {words}")
        session.memo["repairs"] = done + 1
        words = f"That does not fit the schema: {faults[0].message}. Answer again with only the JSON."
        note = planner.repair(faults) if planning else words
        session.append({"role": "assistant", "kind": "note", "content": note}, history=key)
        reply = _ask(session, node, key, closing=False)


def _value(reply: Reply) -> tuple[Json, list[Fault]]:
    """The JSON of an answer. Text was made fit to be stored as it came; what it escapes comes out only here."""
    from registry.skills.structured import read_answer  # with the schema library, which most runs never load

    value, fault = read_answer(reply.text)
    if fault is None:
        return scrub(value), []
    cut = reply.finish_reason == "length"
    words = "it was cut off by the length limit: say it shorter" if cut else fault
    return None, [Fault("", "no_json", words)]


def _fits(schema: dict[str, Json], value: Json) -> list[Fault]:
    """The first thing that does not fit."""
    for flaw in schemas.flaws(schema, value):
        return [Fault("", "invalid", f"{schemas.at(flaw.path) or 'it'}: {flaw.message}")]
    return []


def _failed(session: Session, fault: ModelFault) -> Parked:
    """A fault that may pass parks the run on a back-off; it holds no worker meanwhile."""
    if fault.held and fault.retry_after is not None:  # it waits for its turn, and nothing has gone wrong
        wait = max(1_000, round(fault.retry_after * 1000))
        return Parked(Park("waiting", "backoff", due_in_ms=wait, reason=fault.message))
    if not fault.passing or session.backoffs >= len(BACKOFFS_MS):
        raise RunFailure(fault.code, fault.message)
    wait = BACKOFFS_MS[session.backoffs]
    if fault.retry_after is not None:
        wait = max(1_000, round(fault.retry_after * 1000))
    session.backoffs += 1
    return Parked(Park("waiting", "backoff", due_in_ms=wait, reason=f"{fault.code}: {fault.message}"))


def _situation(session: Session, *, closing: bool) -> Situation:
    record, task = session.record, session.record.task
    facts = None
    if task is not None:
        facts = {
            "key": task.key,
            "title": task.title,
            "role": task.role,
            "instruction": task.instruction,
            "expectedOutput": task.expected_output,
            "deliverables": task.deliverables,
            "skills": task.skills,
        }
    return Situation(
        project_id=record.project_id,
        script=record.script,
        task=facts,
        agent_id=session.agent.id,
        agent_name=session.agent.name,
        kind=record.kind,
        input=session.input,
        item=None if record.item is UNSET else record.item,
        index=None if record.index is UNSET else record.index,
        turn=session.turns,
        results=session.results,
        closing=closing,
    )
