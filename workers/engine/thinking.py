"""One model call of a run, whoever makes it: its money reserved before, its tokens counted after, told in the trace."""

from dataclasses import replace

from orchestrator import crashpoints
from orchestrator.records import Park
from registry.base import Json
from registry.errors import RunFailure
from registry.graph.model import Generate, ModelRef
from workers.engine import hooks, money
from workers.engine.session import Session
from workers.engine.speech import Nobody, Speaker, Speech, hearing
from workers.models.model import Reply, Request
from workers.models.streaming import Hear


class Held(Exception):
    """Control flow: the call waits for money, or for a person who has to allow more."""

    def __init__(self, park: Park) -> None:
        super().__init__(park.waiting_on)
        self.park = park


def ask(session: Session, request: Request, *, aside: str | None = None) -> Reply:
    """The answer to a request; what it took counts whatever comes of it.

    Args:
        aside: what the call is for when it is no turn of the agent: such calls use up no turn.

    Raises:
        Held: the run has to wait before it may spend that.
        ModelFault: the model gave no answer.
        RunFailure: `model_call_blocked` by a hook, `budget_exceeded`.
    """
    named = request.model or request.tier
    facts: dict[str, Json] = {"turn": session.turns, "aside": aside}
    blocked = hooks.fire(session, "PreModelCall", named, model=named, tools=[t.name for t in request.tools], **facts)
    if blocked.block is not None:
        raise RunFailure("model_call_blocked", f"a hook refused the model call: {blocked.block}")
    client = session.services.model(session.record)
    # The same call after a crash has the same key, and finds what it had reserved.
    call_key = f"{session.steps}:{session.turns}" + (f":{aside}" if aside else "")
    park = money.reserve(session, call_key, client.worst_micro(request))
    if park is not None:
        raise Held(park)
    crashpoints.reached("asking")
    hear, speech = speech_of(session, aside)
    request = replace(request, ticket=session.record.id, lane=session.record.project_id or "", hear=hear)
    with session.within(session.services.model_timeout_s):
        reply = client.generate(request)
    speech.end()
    crashpoints.reached("heard")
    if aside is None:
        session.turns += 1
        hooks.heard(session)
    session.tokens += reply.usage.total
    money.book(session, call_key, reply.cost_micro)
    tell(session, request, reply)
    if "PostModelCall" in session.hooks:
        calls = [{"id": c.id, "name": c.name, "args": c.arguments} for c in reply.calls]
        hooks.fire(session, "PostModelCall", reply.model, **facts, **_said(reply), toolCalls=calls)
    return reply


def speech_of(session: Session, aside: str | None) -> tuple[Hear | None, Speech]:
    """Who hears what the run says; what it says aside is for nobody."""
    record = session.record
    speaker = Speaker(record.project_id or "", record.id, record.task.id if record.task else None, session.agent.id)
    return hearing(session.services.listeners if aside is None else Nobody(), speaker)


def models(session: Session, node: Generate) -> tuple[str | None, tuple[str, ...]]:
    """The model a node calls, and those tried when it fails; None is the tier's."""
    chosen = node.model if node.model is not None else session.agent.model
    return named(session, chosen), tuple(n for ref in session.agent.fallback if (n := named(session, ref)))


def named(session: Session, ref: str | ModelRef | None) -> str | None:
    """A model's name behind an alias of the definition."""
    if isinstance(ref, str) and ref in session.agent.models:
        ref = session.agent.models[ref]
    return ref.model if isinstance(ref, ModelRef) else ref


def generation(session: Session, node: Generate) -> dict[str, Json]:
    """The settings of a node's call: the agent's, and over them those of its model ref."""
    chosen = node.model if node.model is not None else session.agent.model
    if isinstance(chosen, str):
        chosen = session.agent.models.get(chosen)
    merged = session.agent.generation.to_json()
    if isinstance(chosen, ModelRef):
        merged |= chosen.generation.to_json() if chosen.generation else {}
        merged |= {"effort": chosen.effort} if chosen.effort else {}
    return merged


def tell(session: Session, request: Request, reply: Reply, *, aside: str | None = None) -> None:
    """Writes a model call into the trace."""
    session.emit(
        "think",
        aside=aside,
        model=reply.model,
        text=(reply.reasoning or "")[:16_000],
        toolCount=len(request.tools),
        finishReason=reply.finish_reason,
        usage=reply.usage.to_json(),
        costUsd=None if reply.cost_micro is None else reply.cost_micro / 1_000_000,
        costIncomplete=True if reply.cost_micro is None else None,
        durationMs=reply.duration_ms,
        closing=True if request.situation.closing else None,
        standIn=True if reply.stand_in else None,
    )


def _said(reply: Reply) -> dict[str, Json]:
    return {
        "model": reply.model,
        "text": reply.text,
        "finishReason": reply.finish_reason,
        "usage": reply.usage.to_json(),
        "costUsd": None if reply.cost_micro is None else reply.cost_micro / 1_000_000,
    }
