"""Model nodes and tool nodes: prompts, histories, schemas, calls, and the tool-calls rule (spec: engine 4.2)."""

from collections import Counter
from typing import Any, Final

from registry.base import Json
from registry.graph.checks.draft import Draft, compiled, is_filled, is_texts, record
from registry.graph.checks.schemas import fault
from registry.graph.edges import first_match
from registry.graph.expressions import Slots
from registry.graph.findings import Findings, listed, quoted, shown

_RESERVED: Final = ("input", "state", "output", "resume", "messages", "toolCalls", "finishReason", "text")
_FANS_OUT: Final = ("tool:call", "control:spawn", "control:map")


def prompts(draft: Draft, found: Findings) -> None:
    known = draft.prompts
    if known is None:
        return
    if not draft.has_graph and "main" not in known:
        message = "the default graph speaks with the main prompt: give instructions"
        found.add("prompt_missing", "prompts.main", message)
    for node_id, node in draft.of("llm:generate"):
        key = node.get("prompt", "main")
        if isinstance(key, str) and key not in known:
            message = f"prompts has no {quoted(key)}{found.nearest(key, known)}"
            found.add("prompt_missing", f"graph.nodes.{node_id}.prompt", message)


def histories(draft: Draft, found: Findings) -> None:
    for node_id, node in draft.of("llm:generate"):
        expression = compiled(node.get("messages"))
        if expression is not None and expression.state_key is None:
            message = f"must be one state key like $state.messages, found {shown(node['messages'])}"
            found.add("messages_path", f"graph.nodes.{node_id}.messages", message)
    for node_id, node in draft.of("control:assign"):
        for key in draft.message_keys & record(node, "patch").keys():
            message = f"{quoted(key)} is a history: model nodes append to it, nothing else writes it"
            found.add("messages_write", f"graph.nodes.{node_id}.patch.{key}", message)


def schemas(draft: Draft, found: Findings) -> None:
    for node_id, node in draft.of("llm:generate"):
        for key in record(record(node, "output"), "properties"):
            if key in _RESERVED:
                message = f"$output.{key} has a meaning of its own: this property would hide it or be hidden"
                found.add("output_key_reserved", f"graph.nodes.{node_id}.output.properties.{key}", message)
        _schema(node, "output", f"graph.nodes.{node_id}", found)
    for node_id, node in draft.of("control:interrupt", "control:wait"):
        _schema(node, "resumeSchema", f"graph.nodes.{node_id}", found)
    for node_id, node in draft.of("tool:call"):
        _schema(record(node, "approve"), "resumeSchema", f"graph.nodes.{node_id}.approve", found)


def _schema(holder: dict[str, Json], field: str, path: str, found: Findings) -> None:
    reason = fault(holder[field]) if field in holder else None
    if reason is not None:
        found.add("json_schema", f"{path}.{field}", reason)


def tool_calls(draft: Draft, found: Findings) -> None:
    for node_id, node in draft.of("tool:call"):
        reason = _misshaped(node)
        if reason:
            found.add("tool_call_shape", f"graph.nodes.{node_id}", reason)


def _misshaped(node: dict[str, Json]) -> str | None:
    if ("name" in node) == ("calls" in node):
        given = "both" if "name" in node else "neither"
        return f"a tool:call has either name (one fixed call) or calls (a batch), found {given}"
    if "args" in node and "name" not in node:
        return "args belongs to a fixed call with name; a batch has args in each of its calls"
    batch_only = [key for key in ("concurrency", "barrier", "approve") if key in node and "name" in node]
    return f"{listed(batch_only)} belongs to a batch with calls, not to a fixed call" if batch_only else None


def approvals(draft: Draft, found: Findings) -> None:
    for node_id, node in draft.of("tool:call"):
        approve, path = node.get("approve"), f"graph.nodes.{node_id}.approve.tools"
        if not isinstance(approve, dict):
            continue
        tools: Any = approve.get("tools")
        if not tools or not is_texts(tools):
            found.add("approve_tools", path, f"must be a list of tool names that is not empty, found {shown(tools)}")
        elif len(set(tools)) < len(tools):
            twice = sorted(name for name, times in Counter(tools).items() if times > 1)
            found.add("duplicate_hitl", path, f"{listed(twice)} stands here more than once: keep one")


def fan_outs(draft: Draft, found: Findings) -> None:
    for node_id, node in draft.of(*_FANS_OUT):
        policy = record(node, "barrier").get("policy", "all")
        if policy != "all":
            message = f"must be all, the only policy, found {shown(policy)}"
            found.add("barrier_policy", f"graph.nodes.{node_id}.barrier.policy", message)
        how = node.get("concurrency")
        if isinstance(how, str) and how not in ("parallel", "sequential") and not how.startswith("$"):
            message = f"must be parallel, sequential or an expression starting with $, found {quoted(how)}"
            found.add("concurrency_invalid", f"graph.nodes.{node_id}.concurrency", message)


def gotos(draft: Draft, found: Findings) -> None:
    for node_id, node in draft.of("control:goto"):
        target, literal = node.get("target", ""), draft.literals[node_id]
        path = f"graph.nodes.{node_id}.target"
        if isinstance(target, str) and not is_filled(target):
            found.add("goto_target", path, 'a goto needs a target: an expression, a node id in quotes: "\\"think\\""')
        elif literal is not None and literal not in draft.ids:
            found.add("goto_target", path, f"no node has the id {quoted(literal)}{found.nearest(literal, draft.ids)}")


def dynamic_spawns(draft: Draft, found: Findings) -> None:
    for node_id, node in draft.of("control:spawn"):
        if isinstance(node.get("calls"), str):
            message = "who is spawned is known only when the run gets here: targets cannot be checked now"
            found.add("spawn_targets_dynamic", f"graph.nodes.{node_id}.calls", message)


def unrouted(draft: Draft, found: Findings) -> None:
    """A model that is offered tools may call them, and open calls make the next model call fail."""
    if not draft.has_edges:
        return
    for node_id, node in draft.of("llm:generate"):
        tools = node.get("tools")
        offers = "tools" not in node or (isinstance(tools, list) and bool(tools))
        readable = all(edge.readable for edge in draft.edges_from(node_id))
        if offers and readable and not _runs_calls(draft, _after_calls(draft, node_id)):
            message = (
                'when the model calls tools, the edge taken must lead to a tool:call with "calls": '
                '"$output.toolCalls"; or offer no tools with "tools": []'
            )
            found.add("tool_calls_unrouted", f"graph.nodes.{node_id}", message)


def _after_calls(draft: Draft, node_id: str) -> str | None:
    """Where the run goes after an answer of this node that calls a tool."""
    call = {"id": "call", "name": "tool", "args": {}}
    slots = Slots(state={"messages": []}, output={"finishReason": "tool-calls", "text": "", "toolCalls": [call]})
    edges = ((edge.when, edge.target or "") for edge in draft.edges_from(node_id))
    return first_match(edges, slots)


def _runs_calls(draft: Draft, node_id: str | None) -> bool:
    """Whether the node, or the one its gotos lead to, is a batch over the model's calls."""
    seen: set[str] = set()
    while node_id is not None and node_id not in seen:
        seen.add(node_id)
        if draft.kind(node_id) == "control:goto":
            node_id = draft.literals[node_id]
            continue
        calls = compiled(draft.nodes[node_id].get("calls")) if draft.kind(node_id) == "tool:call" else None
        return calls is not None and calls.path is not None and calls.path.is_same("output", "toolCalls")
    return False
