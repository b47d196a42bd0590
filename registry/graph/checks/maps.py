"""Maps and their bodies, and the yields that end an item."""

from collections import Counter
from typing import Final

from registry.base import Json
from registry.graph.checks.draft import Draft, is_filled, is_integer, is_positive
from registry.graph.findings import Findings, listed, quoted, shown

_FORBIDDEN: Final = {
    "control:map": ("map_nested", "maps do not nest"),
    "core:end": ("end_in_map_body", "an item ends with control:yield"),
    "control:handoff": ("handoff_in_map_body", "an item cannot hand the run over"),
}


def fields(draft: Draft, found: Findings) -> None:
    for node_id, node in draft.of("control:map"):
        path, items = f"graph.nodes.{node_id}", node.get("items")
        if "items" not in node:
            found.add("map_fields", f"{path}.items", "a map needs items: a list, or an expression giving one")
        body = node.get("body")
        if not isinstance(body, list) or not body or not all(is_filled(item) for item in body):
            found.add(
                "map_fields", f"{path}.body", f"must be a list of node ids that is not empty, found {shown(body)}"
            )
        if isinstance(items, str):
            message = "how many items there are is known only when the run gets here"
            found.add("map_items_dynamic", f"{path}.items", message)
        if isinstance(items, list) and len(items) > found.limits.map_items:
            message = f"a map has at most {found.limits.map_items} items, found {len(items)}"
            found.add("map_item_limit", f"{path}.items", message)
        _options(node, path, found)


def _options(node: dict[str, Json], path: str, found: Findings) -> None:
    if "timeoutMs" in node and not is_positive(node["timeoutMs"]):
        message = f"must be a number of milliseconds above 0, found {shown(node['timeoutMs'])}"
        found.add("map_timeout", f"{path}.timeoutMs", message)
    if "onTimeout" in node and node["onTimeout"] not in ("fail", "partial"):
        found.add("map_timeout", f"{path}.onTimeout", f"must be fail or partial, found {shown(node['onTimeout'])}")
    elif "onTimeout" in node and "timeoutMs" not in node:
        found.add("map_timeout", f"{path}.onTimeout", "means nothing without timeoutMs")
    text, most = node.get("instruction", "-"), found.limits.map_instruction_chars
    if isinstance(text, str) and (not text.strip() or len(text) > most):
        message = f"must be a text of 1 to {most} characters that is not blank, found {len(text)}"
        found.add("map_instruction", f"{path}.instruction", message)
    if "maxTokensPerItem" in node and not is_integer(node["maxTokensPerItem"], 1):
        message = f"must be a whole number of at least 1, found {shown(node['maxTokensPerItem'])}"
        found.add("map_max_tokens", f"{path}.maxTokensPerItem", message)


def bodies(draft: Draft, found: Findings) -> None:
    owners: dict[str, str] = {}
    for map_id, body in draft.bodies.items():
        path = f"graph.nodes.{map_id}"
        twice = sorted(node_id for node_id, times in Counter(body).items() if times > 1)
        shared = [node_id for node_id in dict.fromkeys(body) if node_id in owners]
        owners.update(dict.fromkeys(body, map_id))
        if twice:
            found.add("map_fields", f"{path}.body", f"{listed(twice)} stands here more than once: keep one")
        elif shared:
            message = f"{listed(shared)} belongs to the body of another map already: a node has one map"
            found.add("map_fields", f"{path}.body", message)
        _members(draft, map_id, body, found)


def _members(draft: Draft, map_id: str, body: list[str], found: Findings) -> None:
    path = f"graph.nodes.{map_id}.body"
    unknown = [node_id for node_id in body if node_id.strip() and node_id not in draft.ids]
    if unknown:
        message = f"no node has the id {listed(unknown)}{found.nearest(unknown[0], draft.ids)}"
        found.add("map_body_unknown", path, message)
    for kind, (code, why) in _FORBIDDEN.items():
        inside = [node_id for node_id in body if draft.kind(node_id) == kind]
        if inside:
            found.add(code, path, f"holds the {kind} {listed(inside)}: {why}")


def enters(draft: Draft, found: Findings) -> None:
    for node_id, node in draft.of("control:map"):
        enter, body = node.get("enter"), draft.bodies.get(node_id)
        path = f"graph.nodes.{node_id}.enter"
        if "enter" not in node:
            found.add("map_enter", path, "a map needs enter: the node of the body where each item begins")
        elif body is not None and enter not in body:
            found.add("map_enter", path, f"must be a node of the body, found {shown(enter)}")


def escapes(draft: Draft, found: Findings) -> None:
    """An item run has only the body's nodes: what leads out of it leads nowhere."""
    for map_id, body in draft.bodies.items():
        members = set(body)
        for node_id in body:
            outside = sorted(set(draft.flow.get(node_id, ())) - members)
            if outside:
                message = (
                    f"{quoted(node_id)} is in the body of {quoted(map_id)} and leads out of it to {listed(outside)}"
                )
                found.add("map_escape", f"graph.edges.from:{node_id}", message)


def yields(draft: Draft, found: Findings) -> None:
    for map_id, body in draft.bodies.items():
        inside = [node_id for node_id in body if draft.kind(node_id) == "control:yield"]
        enter = draft.nodes[map_id].get("enter")
        if not inside:
            message = "no control:yield is in the body: its items would never end"
        elif isinstance(enter, str) and enter in body and not _reached(draft, enter, body) & set(inside):
            message = f"no control:yield of the body can be reached from {quoted(enter)}"
        else:
            continue
        found.add("map_no_yield", f"graph.nodes.{map_id}", message)


def _reached(draft: Draft, enter: str, body: list[str]) -> set[str]:
    allowed, seen, todo = set(body), {enter}, [enter]
    while todo:
        for node_id in draft.flow.get(todo.pop(), []):
            if node_id in allowed and node_id not in seen:
                seen.add(node_id)
                todo.append(node_id)
    return seen


def outsiders(draft: Draft, found: Findings) -> None:
    readable = all(node_id in draft.bodies for node_id, _ in draft.of("control:map"))
    mapped = {node_id for body in draft.bodies.values() for node_id in body}
    for node_id, node in draft.of("control:yield"):
        path, value = f"graph.nodes.{node_id}", node.get("value", "$")
        if readable and node_id not in mapped:
            found.add("yield_outside_map", path, "is in the body of no map: there is no item to end here")
        if not (isinstance(value, str) and value.startswith("$")):
            message = f"must be an expression starting with $, found {shown(value)}"
            found.add("yield_value", f"{path}.value", message)
