"""The calls of a `tool:call` node: read from the definition or the model's answer, given ids, kept in order."""

from dataclasses import dataclass

from registry.base import Json
from registry.errors import RunFailure
from registry.graph import expressions
from registry.graph.expressions import ExpressionError, evaluate_value
from registry.graph.model import ToolCall
from registry.graph.values import kind
from workers.engine.session import Session


@dataclass(frozen=True)
class Call:
    """One call of a batch."""

    id: str
    name: str
    args: Json
    position: int
    #: Held by an assistant message already; others are first written as one.
    held: bool


def read(session: Session, node: ToolCall) -> list[Call]:
    """The calls of this execution, the same ones however often it is begun.

    Raises:
        RunFailure: `tool_call_shape`, `tool_call_limit`, `output_not_ready`, or the code of an expression.
    """
    held = _held(session)
    raw = _raw(session, node)
    taken: set[str] = set()
    calls = []
    for position, one in enumerate(raw):
        given = str(one.get("id") or "")
        mine = given in held and given not in taken
        free = bool(given) and given not in session.call_ids and given not in taken
        call_id = given if mine or free else f"{session.record.id}:{session.node_id}:{session.steps}:{position}"
        taken.add(call_id)
        calls.append(Call(call_id, session.tools.named(one["name"]), one.get("args", {}), position, held=mine))
    return calls


def concurrency(session: Session, node: ToolCall) -> str:
    """`parallel` or `sequential`.

    Raises:
        RunFailure: `concurrency_invalid`, or the code of the expression.
    """
    value: Json = node.concurrency
    if node.concurrency.startswith("$"):
        value = _evaluate(session, node.concurrency)
    if value not in ("parallel", "sequential"):
        raise RunFailure("concurrency_invalid", f"concurrency is {value!r}; use parallel or sequential")
    return str(value)


def _raw(session: Session, node: ToolCall) -> list[dict[str, Json]]:
    if node.name is not None:
        return [{"name": node.name, "args": _evaluate(session, node.args)}]
    found = _evaluate(session, node.calls)
    if not isinstance(found, list) or not all(isinstance(c, dict) and isinstance(c.get("name"), str) for c in found):
        words = f"calls of node {session.node_id!r} give {kind(found)}; a list of objects with a name is needed"
        raise RunFailure("tool_call_shape", words)
    if len(found) > session.limits.calls_per_batch:
        raise RunFailure("tool_call_limit", f"{len(found)} calls in one batch; {session.limits.calls_per_batch} may be")
    return found


def _evaluate(session: Session, value: Json) -> Json:
    """A value of the definition. What a path gives is the model's own text and is never evaluated again."""
    try:
        if isinstance(value, str):
            return expressions.compile(value).evaluate(session.slots())
        return evaluate_value(value, session.slots())
    except ExpressionError as error:
        missing = isinstance(session.output, dict) and "results" not in session.output
        if missing and isinstance(value, str) and "$output.results" in value:
            raise RunFailure("output_not_ready", error.message) from None
        raise RunFailure(error.code, error.message) from None


def _held(session: Session) -> set[str]:
    """Ids of calls that the latest assistant message of the history holds."""
    for message in reversed(session.state.get(session.last_history) or []):
        if message["role"] == "assistant" and message.get("kind") not in ("note", "compaction"):
            return {call["id"] for call in message.get("toolCalls") or []}
    return set()
