"""Where expressions stand in a definition, and whether they parse and read what is declared (spec: engine 3.3, 3.4)."""

from collections.abc import Callable, Iterator
from typing import Final

from registry.base import Json
from registry.graph import expressions
from registry.graph.checks.draft import ENGINE_KEYS, Draft, compiled, is_filled, record
from registry.graph.expressions import ExpressionError
from registry.graph.findings import Findings, quoted

#: A leaf field and an expression in it.
Place = tuple[str, str]
_Mark = Callable[[Json, str], Iterator[Place]]


def _expr(value: Json, path: str) -> Iterator[Place]:
    """A text that is an expression whatever it begins with."""
    if isinstance(value, str):
        yield path, value


def _target(value: Json, path: str) -> Iterator[Place]:
    """A goto's target; a blank one is a `goto_target`."""
    if is_filled(value):
        yield path, value


def _dollar(value: Json, path: str) -> Iterator[Place]:
    """A text that is an expression when it starts with `$`, and has no other meaning for `$$`."""
    if isinstance(value, str) and value.startswith("$"):
        yield path, value


def _value(value: Json, path: str) -> Iterator[Place]:
    for leaf, text in _texts(value, path):
        if expressions.is_expression(text):
            yield leaf, text


def _list(value: Json, path: str) -> Iterator[Place]:
    return _expr(value, path) if isinstance(value, str) else _value(value, path)


def _patch(value: Json, path: str) -> Iterator[Place]:
    for leaf, text in _texts(value, path):
        if expressions.is_expression(text):
            yield leaf, text
        elif not text.startswith("$"):
            yield from _parts(text, leaf)


def _parts(value: Json, path: str) -> Iterator[Place]:
    if isinstance(value, str):
        yield from ((path, part) for part in expressions.parts(value))


def _texts(value: Json, path: str) -> Iterator[Place]:
    """Every text in a value with its path."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(item, f"{path}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(item, f"{path}[{index}]")


_MARKS: Final[dict[str, dict[str, _Mark]]] = {
    "llm:generate": {"messages": _expr},
    "tool:call": {"args": _value, "calls": _list, "concurrency": _dollar},
    "control:assign": {"patch": _patch},
    "control:goto": {"target": _target},
    "control:spawn": {"calls": _list, "concurrency": _dollar},
    "control:map": {"items": _list, "concurrency": _dollar},
    "control:yield": {"value": _dollar},
    "control:wait": {"untilMs": _dollar},
    "control:handoff": {"agentId": _dollar, "input": _value},
}


def places(draft: Draft) -> Iterator[Place]:
    """Every place in which an expression has to parse, in the order written."""
    for short in ("instructions", "systemPrompt"):
        yield from _parts(draft.json.get(short), short)
    for key in record(draft.json, "prompts"):
        prompt = record(record(draft.json, "prompts"), key)
        yield from _parts(prompt.get("instructions"), f"prompts.{key}.instructions")
    yield from _value(record(record(draft.json, "state"), "initial"), "state.initial")
    for node_id, node in draft.nodes.items():
        for field, mark in _MARKS.get(draft.kind(node_id) or "", {}).items():
            yield from mark(node.get(field), f"graph.nodes.{node_id}.{field}")
    for edge in draft.edges:
        yield from _expr(edge.when, f"graph.edges[{edge.index}].when")


def syntax(draft: Draft, found: Findings) -> None:
    for path, text in places(draft):
        try:
            expressions.compile(text)
        except ExpressionError as error:
            found.add("expr_syntax", path, f"{error.reason}, at column {error.column} of {quoted(text)}")


def undeclared(draft: Draft, found: Findings) -> None:
    """A definition that declares its state reads only what it declares: a typing error would read nothing for ever."""
    initial = record(record(draft.json, "state"), "initial")
    if not initial:
        return
    known = {*ENGINE_KEYS, *initial, *draft.message_keys}
    for _, node in draft.of("control:assign"):
        known |= record(node, "patch").keys()
    outputs = (_value(node.get("output"), f"graph.nodes.{node_id}.output") for node_id, node in draft.of("core:end"))
    for path, text in (*places(draft), *(place for output in outputs for place in output)):
        for key in _state_keys(text):
            if key not in known:
                message = f"$state.{key} is declared nowhere: name it in state.initial{found.nearest(key, known)}"
                found.add("expr_path", path, message)


def _state_keys(text: str) -> Iterator[str]:
    expression = compiled(text)
    for path in expression.paths if expression is not None else ():
        if path.state_key is not None:
            yield path.state_key


def literal_outputs(draft: Draft, found: Findings) -> None:
    for node_id, node in draft.of("core:end"):
        output = node.get("output")
        if not isinstance(output, str) or not expressions.is_expression(output):
            continue
        expression = compiled(output)
        if expression is None:
            reason = "does not parse"
        elif any(path.has_negative_index for path in expression.paths):
            reason = "counts from the end, which no expression can"
        else:
            continue
        message = f"{quoted(output)} {reason}: the run's output will be this very text; write $$ if that is meant"
        found.add("end_output_literal", f"graph.nodes.{node_id}.output", message)
