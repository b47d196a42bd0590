"""`core:start` and `core:end`: the input becomes the first message, and something becomes the output."""

from registry.base import Json
from registry.graph.expressions import evaluate_value
from registry.graph.model import End, Start
from registry.jsontext import compact
from workers.engine import hooks
from workers.engine.outcome import Done
from workers.engine.session import Session

ROLES = ("user", "assistant", "tool")


def begin(session: Session, _node: Start) -> Done:
    """A second pass of the same agent appends nothing."""
    if not session.started:
        session.started = True
        take_input(session, session.input)
    session.output, session.output_ref = {"input": session.input}, None
    return Done()


def take_input(session: Session, given: Json) -> None:
    """Appends what an input says: a text, `{text, attachments?, origin?}`, `{messages}`, or any other value as JSON."""
    if given is None:
        return
    if (messages := _conversation(given)) is not None:
        if all(known.get("kind") == "note" for known in session.history("messages")):
            for message in messages:
                _enter(session, message)
        return
    body: dict[str, Json] = {"role": "user", "content": compact(given)}
    if isinstance(given, str):
        body["content"] = given
    elif isinstance(given, dict) and isinstance(given.get("text"), str):
        body["content"] = given["text"]
        body |= {key: given[key] for key in ("attachments", "origin") if key in given}
    _enter(session, body)


def take_briefing(session: Session) -> None:
    """What hooks of the parent tell a child, before its first message."""
    if session.is_child and isinstance(session.state.get(hooks.BRIEFING), str):
        words = session.state[hooks.BRIEFING]
        session.append({"role": "assistant", "kind": "note", "content": words}, history="messages")
        session.remove(hooks.BRIEFING)


def _conversation(given: Json) -> list[dict[str, Json]] | None:
    """The messages of `{messages}`; None for a value that only looks like it."""
    messages = given.get("messages") if isinstance(given, dict) else None
    if not isinstance(messages, list):
        return None
    good = all(isinstance(m, dict) and m.get("role") in ROLES and isinstance(m.get("content"), str) for m in messages)
    return messages if good else None


def _enter(session: Session, body: dict[str, Json]) -> None:
    if body["role"] == "user":
        hooks.prompt(session, body["content"], body.get("origin") or ("parent" if session.is_child else "person"))
    session.append(body, history="messages")


def final_output(session: Session, node: End) -> Json:
    """The end's own `output`, else the last message that is neither a tool's nor a call's, else `$output`."""
    if node.has_output:
        return evaluate_value(node.output, session.slots(), literal_on_error=True)
    history = session.history(session.last_history)
    said = (m for m in reversed(history) if m["role"] != "tool" and m.get("kind") not in ("call", "compaction"))
    return next(said, session.output)
