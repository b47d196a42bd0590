"""The sizes a definition may have (spec: engine 21). The settings group `limits` starts from these numbers."""

from typing import Final

#: Characters of one expression.
EXPRESSION_CHARS: Final = 4000
#: Open levels of one expression: each `(` and each `!` opens one.
EXPRESSION_DEPTH: Final = 64
GRAPH_NODES: Final = 500
GRAPH_EDGES: Final = 2000
#: Items of a map written as a JSON list.
MAP_ITEMS: Final = 32
#: Characters of a map's instruction.
MAP_INSTRUCTION_CHARS: Final = 8000
#: Characters of one prompt.
PROMPT_CHARS: Final = 100_000
HOOKS_PER_AGENT: Final = 32
AGENT_ID_CHARS: Final = 120
NODE_ID_CHARS: Final = 80
#: Characters of the reason shown to a person by an interrupt, a wait or an approval.
REASON_CHARS: Final = 500
#: Milliseconds of a sleep: 7 days.
WAIT_DELAY_MS: Final = 604_800_000
#: Milliseconds of a gate's time-out: 30 days.
GATE_TIMEOUT_MS: Final = 2_592_000_000
#: A shorter text is never taken for the start of an agent's id.
AGENT_ID_PREFIX: Final = 8
