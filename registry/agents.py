"""The agent definition: who an agent is and what it may do (spec: engine 1)."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final, Literal

from pydantic import Field, model_validator

from registry.base import Json
from registry.graph.default import default_graph
from registry.graph.model import Generation, Graph, ModelRef, Part
from registry.jsontext import digest
from registry.permissions import Gate, Mode, Operation

Tier = Literal["fast", "standard", "deep"]
Approvals = Literal["park", "carryOn"]

TIERS: Final[tuple[Tier, ...]] = ("fast", "standard", "deep")

#: The prompt of a model node that names none.
MAIN_PROMPT: Final = "main"


class Prompt(Part):
    #: May hold `{$...}` parts, filled in as compact JSON.
    instructions: str


class PackSettings(Part):
    """A pack that is on."""

    #: Settings of the pack itself, checked by its own schema.
    spec: dict[str, Json] = Field(default_factory=dict)
    disabled_tools: list[str] = Field(default_factory=list)
    #: Tool -> whether the model sees it at once or after `load_tools`.
    exposure: dict[str, Literal["direct", "deferred"]] = Field(default_factory=dict)


class Budget(Part):
    """Limits of a run; None is no limit (spec: engine 7)."""

    max_steps: int | None = None
    max_tokens: int | None = None
    #: Milliseconds of running time; parked time does not count.
    deadline_ms: int | None = None
    max_cost_usd: float | None = None
    #: Whether the run and all its descendants draw on this one window.
    shared: bool = False
    policy: Literal["ask", "error"] = "error"


class StateDefinition(Part):
    #: Values that see only `$input`.
    initial: dict[str, Json] = Field(default_factory=dict)
    #: How an assign writes a key; a key that is not named merges.
    reducers: dict[str, Literal["merge", "replace"]] = Field(default_factory=dict)


class ToolOutput(Part):
    """How much of a tool's output the model sees, in characters."""

    max_chars: int = 30_000
    head_chars: int = 8_000
    tail_chars: int = 8_000


class Compaction(Part):
    """When and how a long history is summed up (spec: engine 19)."""

    #: The share of the context length at which it is due.
    threshold_ratio: float = 0.8
    #: The newest share of the history that stays as it is.
    protect_recent_ratio: float = 0.1
    output_reserve_tokens: int = 0
    auto: bool = True
    summary_model: str | ModelRef | None = None


class Handler(Part):
    """What a hook calls: exactly one of the three."""

    #: The program and its arguments.
    command: list[str] | None = None
    http: str | None = None
    plugin: str | None = None


class HookFilter(Part):
    agent: str | None = None
    mode: Mode | None = None


class Hook(Part):
    """A handler bound to an event of the run (spec: engine 11)."""

    event: str
    matcher: str | None = None
    handler: Handler
    when: HookFilter | None = None


#: Fields that a saved row decides and no writer of a definition: they are read over wherever one is written.
ROW_COLUMNS: Final = ("ownerId", "beingId", "isPublic")


class AgentDefinition(Part):
    """An agent as it is written, saved and run.

    `instructions` and `systemPrompt` are short for `prompts.main.instructions` and end up there.
    """

    id: str
    version: str | None = None
    name: str = Field(default_factory=lambda data: data.get("id", ""))
    role: str | None = None
    description: str | None = None
    avatar: str | None = None
    prompts: dict[str, Prompt] = Field(default_factory=dict)
    tier: Tier = "standard"
    #: What rules of queues look at, besides tier and skills.
    labels: list[str] = Field(default_factory=list)
    #: An alias from `models`, or a model ref; wins over `tier`.
    model: str | ModelRef | None = None
    models: dict[str, str | ModelRef] = Field(default_factory=dict)
    #: Tried in order when a model call fails.
    fallback: list[str | ModelRef] = Field(default_factory=list)
    generation: Generation = Generation()
    #: A dotted name is a catalogue skill, a kebab name a document.
    skills: list[str] = Field(default_factory=list)
    #: As written; `enabled_packs` says which are on.
    packs: dict[str, bool | PackSettings | None] = Field(default_factory=dict)
    mcp_servers: list[str] = Field(default_factory=list)
    plugins: list[str] = Field(default_factory=list)
    #: Taken out of the run set last.
    disallowed_tools: list[str] = Field(default_factory=list)
    permissions: dict[Operation, Gate] = Field(default_factory=dict)
    #: Used when the run names none.
    mode: Mode | None = None
    approvals: Approvals = "park"
    budget: Budget | None = None
    state: StateDefinition = StateDefinition()
    #: None runs the default graph.
    graph: Graph | None = None
    tool_output: ToolOutput = ToolOutput()
    #: None switches it off.
    compaction: Compaction | None = Compaction()
    #: Only people write them.
    hooks: list[Hook] = Field(default_factory=list)
    #: Columns of the saved row (`ROW_COLUMNS`).
    owner_id: str | None = None
    being_id: str | None = None
    is_public: bool | None = None

    @model_validator(mode="before")
    @classmethod
    def _one_main_prompt(cls, value: Any) -> Any:
        """Moves the short forms of the main prompt to the place where everyone looks for it."""
        if not isinstance(value, dict):
            return value
        short = [key for key in ("instructions", "systemPrompt") if key in value]
        if not short:
            return value
        prompts = value.get("prompts", {})
        if len(short) > 1 or not isinstance(prompts, dict) or MAIN_PROMPT in prompts:
            raise ValueError("the main prompt is given twice: keep one of instructions and prompts.main")
        rest = {key: item for key, item in value.items() if key not in short}
        return rest | {"prompts": {**prompts, MAIN_PROMPT: {"instructions": value[short[0]]}}}

    def effective_graph(self) -> Graph:
        """The agent's own graph, or else the default tool loop."""
        return self.graph if self.graph is not None else default_graph()

    @property
    def documents(self) -> list[str]:
        """The names in `skills` that are documents."""
        return [name for name in self.skills if "." not in name]

    def enabled_packs(self) -> Mapping[str, PackSettings]:
        """The packs that are on, in the order written; `core` is on unless it is switched off by name."""
        written = {"core": True, **self.packs}
        settings = ((name, PackSettings() if value is True else value) for name, value in written.items())
        return {name: value for name, value in settings if isinstance(value, PackSettings)}

    @cached_property
    def definition_digest(self) -> str:
        """sha256 over the definition as written: what a run keeps, so that later edits do not change it."""
        return digest(self.to_json())
