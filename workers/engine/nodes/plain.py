"""Nodes that only compute: assign and goto. They ride along with the next checkpoint."""

import copy

from registry.base import Json
from registry.errors import RunFailure
from registry.graph import expressions
from registry.graph.expressions import ExpressionError, evaluate_patch
from registry.graph.model import Assign, Goto
from workers.engine.outcome import Done
from workers.engine.session import Session


def assign(session: Session, node: Assign) -> Done:
    """Evaluates every value against the state before the patch, then writes them in patch order."""
    try:
        values = {key: copy.deepcopy(evaluate_patch(value, session.slots())) for key, value in node.patch.items()}
    except ExpressionError as error:
        raise RunFailure(error.code, error.message) from None
    reducers = session.agent.state.reducers
    for key, value in values.items():
        if reducers.get(key, "merge") == "merge" and key in session.state:
            value = merged(session.state[key], value)
        session.write(key, value)
    session.output, session.output_ref = {"patched": list(values)}, None
    return Done()


def merged(old: Json, new: Json) -> Json:
    """List + list concatenates, object + object merges deeply by the same rule, anything else replaces."""
    if isinstance(old, list) and isinstance(new, list):
        return old + new
    if isinstance(old, dict) and isinstance(new, dict):
        return old | {key: merged(old[key], value) if key in old else value for key, value in new.items()}
    return new


def goto(session: Session, node: Goto) -> Done:
    """Goes to the target without an edge; `$output` stays."""
    try:
        target = expressions.compile(node.target).evaluate(session.slots())
    except ExpressionError as error:
        raise RunFailure("goto_target_missing", error.message) from None
    if not isinstance(target, str) or target not in session.graph.nodes:
        raise RunFailure("goto_target_missing", f"the target is {target!r}, which is no node of the graph")
    return Done(target=target)
