"""What stands outside the graph: identity, prompts, budget, state, permissions, packs, hooks."""

import re
from typing import Final

from registry.base import Json
from registry.graph.checks.draft import Draft, is_integer, is_positive, is_texts, record
from registry.graph.checks.shape import hint, many, text
from registry.graph.findings import Findings, listed, quoted, shown
from registry.hooks import MatcherFault, matcher

#: The events a hook may be bound to (spec: engine 11).
HOOK_EVENTS: Final = (
    "SessionStart",
    "SessionEnd",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PreModelCall",
    "PostModelCall",
    "NodeStart",
    "NodeEnd",
    "SubagentStart",
    "SubagentStop",
    "Stop",
    "PermissionRequest",
    "PermissionDenied",
    "PreCompact",
    "PostCompact",
)
_HANDLERS: Final = {"command": many(text(), "texts"), "http": text(shortest=1), "plugin": text(shortest=1)}

#: Semantic Versioning 2.0.0: no leading zeros in numbers, dot-separated identifiers.
_SEMVER: Final = re.compile(
    r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)"
    r"(-(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)(\.(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*))*)?"
    r"(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?"
)
_LIMITS: Final = ("maxSteps", "maxTokens", "deadlineMs")


def identity(draft: Draft, found: Findings) -> None:
    agent_id = draft.json.get("id", "")
    if isinstance(agent_id, str) and not agent_id.strip():
        found.add("id_required", "id", "an agent needs an id: a text that is not blank")
    version = draft.json.get("version", "0.0.0")
    if not (isinstance(version, str) and _SEMVER.fullmatch(version)):
        found.add("version_format", "version", f'must be semver like "1.2.3" or "1.2.3-beta.1", found {shown(version)}')


def one_main_prompt(draft: Draft, found: Findings) -> None:
    """`instructions`, `systemPrompt` and `prompts.main.instructions` are three names of one text."""
    given = ["prompts.main.instructions"] if "instructions" in record(record(draft.json, "prompts"), "main") else []
    for short in ("instructions", "systemPrompt"):
        if short in draft.json:
            if given:
                found.add("definition_shape", short, f"the main prompt is given by {given[0]} already: keep one")
            given.append(short)


def budget(draft: Draft, found: Findings) -> None:
    written = record(draft.json, "budget")
    if written.get("policy", "error") not in ("ask", "error"):
        found.add("budget_policy", "budget.policy", f"must be ask or error, found {shown(written['policy'])}")
    for key in _LIMITS:
        if key in written and not is_integer(written[key], 1):
            wanted = "must be a whole number of at least 1"
            found.add(
                "budget_value", f"budget.{key}", f"{wanted}, found {shown(written[key])}; leave it out for no limit"
            )
    if "maxCostUsd" in written and not is_positive(written["maxCostUsd"]):
        found.add(
            "budget_value", "budget.maxCostUsd", f"must be a number above 0, found {shown(written['maxCostUsd'])}"
        )


def reducers(draft: Draft, found: Findings) -> None:
    for key, value in record(record(draft.json, "state"), "reducers").items():
        if value not in ("merge", "replace"):
            found.add("reducer_value", f"state.reducers.{key}", f"must be merge or replace, found {shown(value)}")


def permissions(draft: Draft, found: Findings) -> None:
    for operation, gate in record(draft.json, "permissions").items():
        path = f"permissions.{operation}"
        if gate not in ("allow", "ask", "deny"):
            found.add("permissions_value", path, f"must be allow, ask or deny, found {shown(gate)}")
        elif operation == "world" and gate == "allow":
            message = "acting outside Officina always asks a person: only ask and deny can stand here"
            found.add("permission_world", path, message)


def packs(draft: Draft, found: Findings) -> None:
    written = draft.json.get("packs", {})
    if not isinstance(written, dict):
        found.add("packs_type", "packs", f'must be an object like {{"files": true}}, found {shown(written)}')
        return
    for name, value in written.items():
        if isinstance(value, dict):
            _pack(value, f"packs.{name}", found)
        elif value is not None and not isinstance(value, bool):
            wanted = "must be true, false, null or an object with spec, disabledTools, exposure"
            found.add("packs_value", f"packs.{name}", f"{wanted}, found {shown(value)}")


def _pack(value: dict[str, Json], path: str, found: Findings) -> None:
    known = ["spec", "disabledTools", "exposure"]
    unknown = [key for key in value if key not in known and not str(key).startswith("x-")]
    if unknown:
        found.add("packs_value", path, f"unknown field {listed(unknown)}{hint(found, unknown[0], known)}")
    if not isinstance(value.get("spec", {}), dict):
        found.add("packs_spec", f"{path}.spec", f"must be an object, found {shown(value['spec'])}")
    if not is_texts(value.get("disabledTools", [])):
        wanted = "must be a list of tool names"
        found.add("packs_disabled_tools", f"{path}.disabledTools", f"{wanted}, found {shown(value['disabledTools'])}")
    exposure = value.get("exposure", {})
    if not isinstance(exposure, dict) or any(how not in ("direct", "deferred") for how in exposure.values()):
        wanted = "must be an object of tool name to direct or deferred"
        found.add("packs_exposure", f"{path}.exposure", f"{wanted}, found {shown(exposure)}")


def hooks(draft: Draft, found: Findings) -> None:
    written = draft.json.get("hooks")
    for index, hook in enumerate(written if isinstance(written, list) else []):
        if isinstance(hook, dict):
            _hook(hook, f"hooks[{index}]", found)


def _hook(hook: dict[str, Json], path: str, found: Findings) -> None:
    event, handler = hook.get("event"), hook.get("handler")
    if event not in HOOK_EVENTS:
        close = found.nearest(event, HOOK_EVENTS) if isinstance(event, str) else ""
        found.add("hook_shape", path, f"event {shown(event)} is none of the run's events{close}")
    _matcher(hook.get("matcher"), path, found)
    kinds = [key for key in _HANDLERS if isinstance(handler, dict) and key in handler]
    if not isinstance(handler, dict) or len(kinds) != 1:
        found.add("hook_shape", path, f"a handler is one of {', '.join(_HANDLERS)}, found {_given(handler)}")
        return
    _HANDLERS[kinds[0]](handler[kinds[0]], f"{path}.handler.{kinds[0]}", found)
    for key in handler:
        if key not in _HANDLERS and not str(key).startswith("x-"):
            message = f"unknown field {quoted(str(key))}{hint(found, key, list(_HANDLERS))}"
            found.add("unknown_field", f"{path}.handler.{key}", message)


def _matcher(written: Json, path: str, found: Findings) -> None:
    try:
        matcher(written if isinstance(written, str) else None)
    except MatcherFault as fault:
        found.add("hook_shape", path, f"matcher {shown(written)} is {fault}")


def _given(handler: Json) -> str:
    return listed(list(handler)) or "an empty object" if isinstance(handler, dict) else shown(handler)
