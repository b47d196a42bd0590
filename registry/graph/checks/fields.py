"""Every field of a definition with its JSON type (spec: engine 1, 2)."""

from typing import Final

from registry.agents import TIERS
from registry.base import Json
from registry.graph import limits
from registry.graph.checks.shape import (
    Shape,
    boolean,
    choice,
    integer,
    many,
    mapping,
    nothing_or,
    number,
    own,
    positive,
    record,
    text,
    text_or,
)
from registry.graph.findings import Findings
from registry.graph.limits import GraphLimits
from registry.permissions import MODES


def _prompt_chars(of: GraphLimits) -> int:
    return of.prompt_chars


def _hooks(of: GraphLimits) -> int:
    return of.hooks_per_agent


_TEXTS: Final = many(text(), "texts")

_GENERATION: Final = record(
    {
        "temperature": number(),
        "topP": number(),
        "frequencyPenalty": number(),
        "presencePenalty": number(),
        "maxTokens": integer(1),
    }
)
_MODEL_OBJECT: Final = record(
    {"model": text(shortest=1), "effort": text(), "generation": _GENERATION}, required=("model",)
)
_MODEL_REF: Final = text_or(_MODEL_OBJECT, dict, "an object with model, effort, generation")

_PROMPT: Final = record({"instructions": text(longest=_prompt_chars)}, required=("instructions",))
_STATE: Final = record({"initial": mapping(own, "values"), "reducers": mapping(own, "merge or replace")})
_TOOL_OUTPUT: Final = record({"maxChars": integer(1), "headChars": integer(0), "tailChars": integer(0)})
_COMPACTION: Final = record(
    {
        "thresholdRatio": number(0.1, 1),
        "protectRecentRatio": number(0, 0.9),
        "outputReserveTokens": integer(0),
        "auto": boolean,
        "summaryModel": _MODEL_REF,
    }
)
_BUDGET: Final = record(
    {
        "maxSteps": own,
        "maxTokens": own,
        "deadlineMs": own,
        "maxCostUsd": own,
        "shared": boolean,
        "policy": own,
    }
)
_HOOK: Final = record(
    {"event": own, "matcher": text(), "handler": own, "when": record({"agent": text(), "mode": choice(*MODES)})}
)
_EDGE: Final = record({"from": text(), "to": text(), "when": nothing_or(text())}, required=("from", "to"))


def _or_expression(shape: Shape) -> Shape:
    """The shape, or a text starting with `$` that gives it when the run gets there."""

    def check(value: Json, path: str, found: Findings) -> None:
        if not (isinstance(value, str) and value.startswith("$")):
            shape(value, path, found)

    return check


_OBJECT: Final = mapping(own, "values")
_ARGS: Final = _or_expression(_OBJECT)
_TOOL: Final = _or_expression(record({"id": text(), "name": text(), "args": _ARGS}, required=("name",)))
_CALL_BUDGET: Final = record(
    {
        "maxSteps": _or_expression(integer(1)),
        "maxTokens": _or_expression(integer(1)),
        "deadlineMs": _or_expression(integer(1)),
        "maxCostUsd": _or_expression(positive),
        "shared": _or_expression(boolean),
        "policy": _or_expression(choice("ask", "error")),
    }
)
_CHILD: Final = _or_expression(
    record({"agentId": text(), "input": own, "budget": _or_expression(_CALL_BUDGET)}, required=("agentId",))
)
_BARRIER: Final = record({"policy": own})
_APPROVE: Final = record({"tools": own, "reason": text(), "resumeSchema": own})
_REASON: Final = text(shortest=1, longest=limits.REASON_CHARS)

#: Node type -> its fields and the required ones; `type` and `label` belong to all.
_NODES: Final[dict[str, tuple[dict[str, Shape], tuple[str, ...]]]] = {
    "core:start": ({}, ()),
    "core:end": ({"output": own}, ()),
    "llm:generate": (
        {"prompt": text(), "messages": text(), "tools": _TEXTS, "output": own, "model": _MODEL_REF},
        (),
    ),
    "tool:call": (
        {
            "name": text(),
            "args": _ARGS,
            "calls": text_or(many(_TOOL, "calls"), list, "a list of calls"),
            "concurrency": text(),
            "barrier": _BARRIER,
            "approve": _APPROVE,
        },
        (),
    ),
    "control:assign": ({"patch": _OBJECT}, ("patch",)),
    "control:goto": ({"target": text()}, ()),
    "control:interrupt": ({"reason": _REASON, "resumeSchema": own}, ("reason",)),
    "control:spawn": (
        {
            "calls": text_or(many(_CHILD, "calls"), list, "a list of calls"),
            "concurrency": text(),
            "barrier": _BARRIER,
        },
        ("calls",),
    ),
    "control:map": (
        {
            "items": text_or(many(own, "items"), list, "a list of items"),
            "enter": own,
            "body": own,
            "concurrency": text(),
            "barrier": _BARRIER,
            "instruction": text(),
            "maxTokensPerItem": own,
            "timeoutMs": own,
            "onTimeout": own,
        },
        (),
    ),
    "control:yield": ({"value": own}, ()),
    "control:wait": (
        {
            "delayMs": own,
            "untilMs": own,
            "resumeSchema": own,
            "timeoutMs": own,
            "onTimeout": own,
            "reason": _REASON,
        },
        (),
    ),
    "control:handoff": ({"agentId": text(shortest=1), "input": own}, ("agentId",)),
}
NODE_TYPES: Final = tuple(_NODES)
_NODE_SHAPES: Final = {
    kind: record({"type": own, "label": text(), **fields}, required) for kind, (fields, required) in _NODES.items()
}


def _node(value: Json, path: str, found: Findings) -> None:
    if not isinstance(value, dict):
        found.shape(path, "an object", value)
        return
    kind = value.get("type")
    if isinstance(kind, str) and kind in _NODE_SHAPES:
        _NODE_SHAPES[kind](value, path, found)


def _nodes(value: Json, path: str, found: Findings) -> None:
    mapping(_node, "nodes")(value, path, found)
    for node_id in value if isinstance(value, dict) else ():
        if not node_id.strip() or len(node_id) > limits.NODE_ID_CHARS:
            wanted = f"a node id is a text of 1 to {limits.NODE_ID_CHARS} characters that is not blank"
            found.add("definition_shape", f"{path}.{node_id}", wanted)


_GRAPH: Final = record({"nodes": _nodes, "edges": many(_EDGE, "edges"), "layout": own}, required=("nodes", "edges"))

_FIELDS: Final[dict[str, Shape]] = {
    "id": text(longest=limits.AGENT_ID_CHARS),
    "version": own,
    "name": text(),
    "role": text(),
    "description": text(),
    "avatar": text(),
    "instructions": text(longest=_prompt_chars),
    "prompts": mapping(_PROMPT, "prompts"),
    "tier": choice(*TIERS),
    "labels": _TEXTS,
    "model": _MODEL_REF,
    "models": mapping(_MODEL_REF, "model refs"),
    "fallback": many(_MODEL_REF, "model refs"),
    "generation": _GENERATION,
    "skills": _TEXTS,
    "packs": own,
    "mcpServers": _TEXTS,
    "plugins": _TEXTS,
    "disallowedTools": _TEXTS,
    "permissions": mapping(own, "gates"),
    "mode": choice(*MODES),
    "approvals": choice("park", "carryOn"),
    "budget": _BUDGET,
    "state": _STATE,
    "graph": _GRAPH,
    "toolOutput": _TOOL_OUTPUT,
    "compaction": nothing_or(_COMPACTION),
    "hooks": many(_HOOK, "hooks", most=_hooks),
    "systemPrompt": text(longest=_prompt_chars),
    "ownerId": nothing_or(text()),
    "beingId": nothing_or(text()),
    "isPublic": nothing_or(boolean),
}

#: The whole definition. A missing `id` has a code of its own.
check_fields: Final = record(_FIELDS)
FIELDS: Final = tuple(_FIELDS)
