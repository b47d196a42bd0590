"""The graph of an agent: nodes and edges (spec: engine 2).

These models hold graphs that `registry.graph.validation` has let through; they check types, not sense.
"""

from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from registry.base import Json, Model
from registry.graph import expressions

#: An expression giving a list, or a JSON list written in the definition.
ListMark = str | list[Json]


class Part(Model):
    """A part of a definition. Keys starting `x-` are notes of other tools: allowed everywhere and dropped."""

    @model_validator(mode="before")
    @classmethod
    def _without_notes(cls, value: Any) -> Any:
        if isinstance(value, dict) and any(isinstance(key, str) and key.startswith("x-") for key in value):
            return {key: item for key, item in value.items() if not (isinstance(key, str) and key.startswith("x-"))}
        return value

    def to_json(self) -> dict[str, Json]:
        """The camelCase object as it was written: fields that nobody set are left out, a written null stays."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)


class _Node(Part):
    #: A name for drawings.
    label: str | None = None

    def model_post_init(self, _context: Any, /) -> None:
        self.model_fields_set.add("type")  # a node made in code without naming its type still writes it


class Start(_Node):
    type: Literal["core:start"] = "core:start"


class End(_Node):
    type: Literal["core:end"] = "core:end"
    #: A value; a text that fails to evaluate is its own literal output.
    output: Json = None

    @property
    def has_output(self) -> bool:
        """Whether `output` was written, be it null; without it the run's output is its last message."""
        return "output" in self.model_fields_set


class Generation(Part):
    """Sampling settings handed to the model as they are."""

    temperature: float | None = None
    top_p: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    max_tokens: int | None = None


class ModelRef(Part):
    """A model of the settings by name, with how to use it. No definition carries a key or an address."""

    model: str
    effort: str | None = None
    generation: Generation | None = None


class Generate(_Node):
    type: Literal["llm:generate"] = "llm:generate"
    #: A key of the agent's `prompts`.
    prompt: str = "main"
    #: An expression that is exactly one state key: the history this node reads and appends to.
    messages: str = "$state.messages"
    #: Names of the run set this node offers; None offers all of it, an empty list nothing.
    tools: list[str] | None = None
    #: A JSON Schema: the answer is structured.
    output: dict[str, Json] | None = None
    #: An alias, a tier name, or a model ref.
    model: str | ModelRef | None = None


class Barrier(Part):
    """When a fan-out is done. There is one policy."""

    policy: Literal["all"] = "all"


class Approve(Part):
    """Calls to these tools ask a person, whatever the gates say."""

    tools: list[str]
    reason: str | None = None
    #: A JSON Schema of the answer; None means the answer of a decision.
    resume_schema: dict[str, Json] | None = None


class ToolCall(_Node):
    """One fixed call (`name`, `args`), or a batch of calls (`calls`)."""

    type: Literal["tool:call"] = "tool:call"
    name: str | None = None
    #: A value giving an object.
    args: str | dict[str, Json] = Field(default_factory=dict)
    calls: ListMark | None = None
    #: `parallel`, `sequential`, or an expression giving one of them.
    concurrency: str = "parallel"
    barrier: Barrier = Barrier()
    approve: Approve | None = None

    @property
    def answers_model(self) -> bool:
        """Whether it runs the calls of the model's answer, and so only tools that were offered with it."""
        if not isinstance(self.calls, str):
            return False
        try:
            path = expressions.compile(self.calls).path
        except expressions.ExpressionError:
            return False
        return path is not None and path.is_same("output", "toolCalls")


class Assign(_Node):
    type: Literal["control:assign"] = "control:assign"
    #: State key -> value; texts may hold `{$...}` parts.
    patch: dict[str, Json]


class Goto(_Node):
    type: Literal["control:goto"] = "control:goto"
    #: An expression giving a node id.
    target: str


class Interrupt(_Node):
    type: Literal["control:interrupt"] = "control:interrupt"
    #: Shown to the person.
    reason: str
    #: A JSON Schema of the answer.
    resume_schema: dict[str, Json] = Field(default_factory=lambda: {"type": "object"})


class Spawn(_Node):
    type: Literal["control:spawn"] = "control:spawn"
    #: A list of `{agentId, input, budget?}`.
    calls: ListMark
    concurrency: str = "parallel"
    barrier: Barrier = Barrier()


class Map(_Node):
    type: Literal["control:map"] = "control:map"
    items: ListMark
    #: The node of the body where each item run begins.
    enter: str
    body: list[str]
    concurrency: str = "parallel"
    barrier: Barrier = Barrier()
    #: Text with the markers `$item` and `$index`; not an expression.
    instruction: str | None = None
    max_tokens_per_item: int | None = None
    #: Milliseconds from the fan-out.
    timeout_ms: int | float | None = None
    on_timeout: Literal["fail", "partial"] = "fail"


class Yield(_Node):
    type: Literal["control:yield"] = "control:yield"
    #: An expression; None: the item's output is its last assistant message.
    value: str | None = None


class Wait(_Node):
    """A sleep (`delayMs` or `untilMs`), or else a gate that a person opens."""

    type: Literal["control:wait"] = "control:wait"
    #: Milliseconds.
    delay_ms: int | None = None
    #: An expression giving milliseconds since the epoch.
    until_ms: str | None = None
    #: A JSON Schema of the answer; an empty one takes anything.
    resume_schema: dict[str, Json] = Field(default_factory=dict)
    #: Milliseconds; None waits for the answer.
    timeout_ms: int | None = None
    on_timeout: Literal["fail", "continue", "interrupt"] = "fail"
    reason: str | None = None

    @property
    def is_sleep(self) -> bool:
        return self.delay_ms is not None or self.until_ms is not None


class Handoff(_Node):
    type: Literal["control:handoff"] = "control:handoff"
    #: A text, or an expression (it starts with `$`).
    agent_id: str
    #: A value.
    input: Json = None

    @property
    def has_input(self) -> bool:
        """Whether `input` was written, be it null."""
        return "input" in self.model_fields_set


Node = Annotated[
    Start | End | Generate | ToolCall | Assign | Goto | Interrupt | Spawn | Map | Yield | Wait | Handoff,
    Field(discriminator="type"),
]


class Edge(Part):
    #: Node ids; `from` and `to` in JSON.
    source: str = Field(alias="from")
    target: str = Field(alias="to")
    #: An expression; None makes this the node's default edge.
    when: str | None = None


class Graph(Part):
    """Nodes by id, and edges in the order in which they are tried."""

    nodes: dict[str, Node]
    edges: list[Edge]
    #: Where a drawing program keeps its positions; never read.
    layout: Json = None

    @cached_property
    def _by_source(self) -> dict[str, tuple[Edge, ...]]:
        found: dict[str, list[Edge]] = {}
        for edge in self.edges:
            found.setdefault(edge.source, []).append(edge)
        return {source: tuple(edges) for source, edges in found.items()}

    def edges_from(self, node_id: str) -> tuple[Edge, ...]:
        """The edges out of a node, in list order."""
        return self._by_source.get(node_id, ())

    @cached_property
    def start_id(self) -> str:
        """The id of the one `core:start`; graphs are checked before they get here."""
        return next(node_id for node_id, node in self.nodes.items() if isinstance(node, Start))
