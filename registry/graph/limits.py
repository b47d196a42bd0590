"""The sizes a definition may have (spec: engine 21).

`GraphLimits` are those an operator may move; the settings group `limits` starts with them. The others belong to the
language itself and are the same everywhere.
"""

from typing import Final

from pydantic import BaseModel, ConfigDict, Field

#: Characters of one expression.
EXPRESSION_CHARS: Final = 4000
#: Open levels of one expression: each `(` and each `!` opens one.
EXPRESSION_DEPTH: Final = 64
AGENT_ID_CHARS: Final = 120
NODE_ID_CHARS: Final = 80
#: Characters of the reason shown to a person by an interrupt, a wait or an approval.
REASON_CHARS: Final = 500
#: A shorter text is never taken for the start of an agent's id.
AGENT_ID_PREFIX: Final = 8


class GraphLimits(BaseModel):
    """Bounds of one definition."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    graph_nodes: int = Field(500, ge=2)
    """Nodes one graph may hold."""
    graph_edges: int = Field(2000, ge=1)
    """Edges one graph may hold."""
    map_items: int = Field(32, ge=1)
    """Items one map may hold."""
    map_instruction_chars: int = Field(8000, ge=1)
    """Characters a map's instruction may have."""
    prompt_chars: int = Field(100_000, ge=1_000)
    """Characters a system text may have."""
    hooks_per_agent: int = Field(32, ge=0)
    """Hooks one agent may have."""
    wait_delay_ms: int = Field(604_800_000, ge=1)
    """Milliseconds a sleep of fixed length may take; 7 days."""
    gate_timeout_ms: int = Field(2_592_000_000, ge=1)
    """Milliseconds until a gate may give up; 30 days."""


#: The limits of an installation that sets none.
USUAL: Final = GraphLimits()
