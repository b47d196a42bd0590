"""`core:start` and `core:end`: the input becomes the first message, and something becomes the output."""

from registry.base import Json
from registry.graph.expressions import evaluate_value
from registry.graph.model import End, Start
from registry.jsontext import compact
from workers.engine.outcome import Done
from workers.engine.session import Session


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
    if isinstance(given, dict) and isinstance(given.get("messages"), list):
        if not session.history("messages"):
            for message in given["messages"]:
                session.append(message, history="messages")
        return
    body: dict[str, Json] = {"role": "user", "content": compact(given)}
    if isinstance(given, str):
        body["content"] = given
    elif isinstance(given, dict) and isinstance(given.get("text"), str):
        body["content"] = given["text"]
        body |= {key: given[key] for key in ("attachments", "origin") if key in given}
    session.append(body, history="messages")


def final_output(session: Session, node: End) -> Json:
    """The end's own `output`, else the last message that is neither a tool's nor a call's, else `$output`."""
    if node.has_output:
        return evaluate_value(node.output, session.slots(), literal_on_error=True)
    history = session.state.get(session.last_history) or []
    said = (m for m in reversed(history) if m["role"] != "tool" and m.get("kind") != "call")
    return next(said, session.output)
