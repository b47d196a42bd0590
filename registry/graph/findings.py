"""What validation finds, and the one table of its codes: order and severity (spec: engine 4)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from typing import Final, Literal

from registry.base import Json
from registry.graph.limits import USUAL, GraphLimits
from registry.graph.values import kind

Severity = Literal["error", "warning"]

_STRUCTURAL: Final = """
    definition_shape unknown_field id_required version_format start_count end_count unsupported_node graph_size
    edge_endpoint expr_syntax outgoing_required edge_ignored missing_default default_edge prompt_missing messages_path
    messages_write output_key_reserved json_schema tool_call_shape approve_tools duplicate_hitl barrier_policy
    concurrency_invalid tool_calls_unrouted goto_target spawn_targets_dynamic map_fields map_items_dynamic
    map_item_limit map_body_unknown map_nested end_in_map_body handoff_in_map_body map_enter map_timeout
    map_instruction map_max_tokens map_escape map_no_yield yield_outside_map yield_value wait_mode wait_delay
    wait_timeout expr_path cycle_budget budget_policy budget_value reducer_value permissions_value permission_world
    packs_type packs_value packs_spec packs_disabled_tools packs_exposure hook_shape end_output_literal unreachable
"""
_SECOND_LEVEL: Final = """
    tools_unresolved model_unresolved skill_unknown pack_unknown pack_spec_invalid pack_tool_unknown plugin_unknown
    mcp_server_unknown handoff_target spawn_target_missing
"""
_WARNINGS: Final = frozenset(
    {
        "edge_ignored",
        "output_key_reserved",
        "spawn_targets_dynamic",
        "map_items_dynamic",
        "end_output_literal",
        "unreachable",
        "spawn_target_missing",
    }
)
#: Every code, in the order in which findings are reported.
CODES: Final = (*_STRUCTURAL.split(), *_SECOND_LEVEL.split())
_PLACE: Final = {code: place for place, code in enumerate(CODES)}

#: Characters of a value or name that a message repeats.
_SHOWN: Final = 60
#: Names looked at for a likely one, and how often: looking costs time, and a definition may be hostile.
_HINTS_FROM: Final = 500
_HINTS: Final = 50


@dataclass(frozen=True)
class Finding:
    """One thing to know about a definition. A definition with an error is refused; a warning never blocks."""

    code: str
    severity: Severity
    message: str
    path: str

    def to_json(self) -> dict[str, Json]:
        return {"code": self.code, "severity": self.severity, "message": self.message, "path": self.path}

    def __str__(self) -> str:
        return f"{self.path}: {self.code}: {self.message}" if self.path else f"{self.code}: {self.message}"


class Findings:
    """Collects findings; of several with one code and path the first stays."""

    def __init__(self, limits: GraphLimits = USUAL) -> None:
        self.limits = limits
        self._found: dict[tuple[str, str], Finding] = {}
        self._hints_left = _HINTS

    def add(self, code: str, path: str, message: str, *, severity: Severity | None = None) -> None:
        usual: Severity = "warning" if code in _WARNINGS else "error"
        self._found.setdefault((code, path), Finding(code, severity or usual, message, path))

    def shape(self, path: str, wanted: str, value: Json) -> None:
        """A `definition_shape`: what must stand at the path, and what was found there."""
        self.add("definition_shape", path, f"must be {wanted}, found {shown(value)}")

    def nearest(self, name: str, known: Iterable[str]) -> str:
        """The end of a message about an unknown name: the known one that looks most like it, if any does."""
        if not self._hints_left:
            return ""
        self._hints_left -= 1
        return nearest(name, known)

    def __iter__(self) -> Iterator[Finding]:
        """In the order of the table; findings of one code in the order they were found."""
        return iter(sorted(self._found.values(), key=lambda finding: _PLACE[finding.code]))


def shown(value: Json) -> str:
    """A value as a message may repeat it: short texts, numbers and words; only the kind of anything else."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value) if isinstance(value, (int, float)) else ""
    return text if 0 < len(text) <= _SHOWN else kind(value)


def quoted(text: str) -> str:
    """A text in quotes, cut to what a message may repeat."""
    cut = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return f'"{"".join(c if c.isprintable() else " " for c in cut)}"'


def listed(names: Sequence[str], *, most: int = 8) -> str:
    """Names in quotes with commas; the rest of a long list as a number."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(quoted(name) for name in names[:most]) + more


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: the known one that looks most like it, if any does."""
    close = get_close_matches(str(name)[:_SHOWN], sorted(islice(known, _HINTS_FROM)), n=1)
    return f'; did you mean "{close[0]}"?' if close else ""
