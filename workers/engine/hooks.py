"""The events of a run that hooks listen to (spec: engine 11).

A hook can only tighten. It is asked once per fact; after a crash the same fact may be told again, with the same ids.
What a handler does wrong has no effect and a line in the trace. An agent without hooks pays one look-up per event.
"""

import logging
from typing import Final

from registry.base import Json
from registry.errors import RunFailure
from registry.hooks import Effects, MatcherFault, cut, take
from workers.engine import handlers
from workers.engine.session import Session

log = logging.getLogger(__name__)

#: Where the memo keeps what handlers have to say to the model: {event: text}.
MEMO: Final = "hookContext"
#: Said at every model call, until the event comes again; all others once, at the next one.
STANDING: Final = ("SessionStart", "UserPromptSubmit")
#: Those whose context reaches the model of this run; that of SubagentStart is the child's.
HEARD: Final = (*STANDING, "PostToolUse", "PostModelCall")
#: Where a child's first state holds what it is told before its first message.
BRIEFING: Final = "subagentContext"
#: Whose step a NodeStart was told of last: a parked node begins once.
_BEGUN: Final = "hookNode"
#: Shared by every event that nobody listens to; only read.
_NOTHING: Final = Effects()


def fire(session: Session, event: str, subject: str, /, **fields: Json) -> Effects:
    """Tells an event to every hook bound to it, in order; the first block stops the rest.

    Args:
        subject: what matchers look at.
        fields: what the payload says beside the ids.
    """
    bindings = session.hooks.get(event)
    if not bindings:
        return _NOTHING
    effects = Effects()
    payload = _payload(session, event, fields)
    for binding in bindings:
        try:
            if not binding.meets(subject, agent_id=session.agent.id, mode=session.policy.mode):
                continue
            answer = handlers.ask(session, binding.hook.handler, payload)
        except (MatcherFault, handlers.HandlerFault) as fault:
            session.emit("hook.failed", event=event, message=cut(str(fault)))
            continue
        for words in take(effects, event, answer):
            log.warning("hook on %s of run %s: %s", event, session.record.id, words)
        if effects.block is not None:
            session.emit("hook.blocked", event=event, reason=effects.block)
            break
    if event in HEARD and effects.contexts:
        _hear(session, event, effects.contexts)
    return effects


def session_start(session: Session, source: str) -> None:
    """A worker has taken the run up: `startup` or `resume`."""
    fire(session, "SessionStart", source, source=source)


def session_end(session: Session, reason: str) -> None:
    """The run is parked, or has ended: its status is the reason."""
    fire(session, "SessionEnd", reason, reason=reason)


def ended(session: Session, status: str, *, code: str | None = None) -> None:
    """The run is about to end."""
    fire(session, "Stop", status, status=status, **({"code": code} if code else {}))
    session_end(session, status)


def prompt(session: Session, text: str, origin: str) -> None:
    """Words for the agent are about to enter its history.

    Raises:
        RunFailure: `user_prompt_blocked`.
    """
    effects = fire(session, "UserPromptSubmit", origin, prompt=text, origin=origin)
    if effects.block is not None:
        raise RunFailure("user_prompt_blocked", f"a hook refused the input: {effects.block}")


def node_start(session: Session, node_type: str) -> None:
    if "NodeStart" in session.hooks and session.memo.get(_BEGUN) != session.steps:
        session.memo[_BEGUN] = session.steps
        fire(session, "NodeStart", node_type, type=node_type)


def node_end(session: Session, node_type: str) -> None:
    fire(session, "NodeEnd", node_type, type=node_type)


def subagent_start(session: Session, agent_id: str, **fields: Json) -> str | None:
    """A child is about to be made; returns what it is told before its first message."""
    effects = fire(session, "SubagentStart", agent_id, subagentId=agent_id, **fields)
    return "\n\n".join(effects.contexts) or None


def subagent_stop(session: Session, agent_id: str, **fields: Json) -> None:
    """What a child brought has come in."""
    fire(session, "SubagentStop", agent_id, subagentId=agent_id, **fields)


def told(session: Session) -> list[str]:
    """What handlers have to say at the next model call."""
    return list(session.memo.get(MEMO, {}).values())


def heard(session: Session) -> None:
    """The model has answered: what is said once has been said."""
    if MEMO in session.memo:
        session.memo[MEMO] = {event: text for event, text in session.memo[MEMO].items() if event in STANDING}


def _hear(session: Session, event: str, contexts: list[str]) -> None:
    with session.lock:
        known = session.memo.get(MEMO, {})
        before = [known[event]] if event in known and event not in STANDING else []
        session.memo[MEMO] = known | {event: "\n\n".join([*before, *contexts])}


def _payload(session: Session, event: str, fields: dict[str, Json]) -> dict[str, Json]:
    ids: dict[str, Json] = {
        "event": event,
        "projectId": session.record.project_id,
        "runId": session.record.id,
        "agentId": session.agent.id,
        "mode": session.policy.mode,
        "step": session.steps,
    }
    if session.record.thread_id is not None:
        ids["threadId"] = session.record.thread_id
    if session.node_id is not None:
        ids["nodeId"] = session.node_id
    return ids | fields
