"""What the engine asks of a model, and what it gets back. Clients, stand-in and scripted turns are alike here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from registry.base import Json
from registry.errors import OfficinaError

FinishReason = Literal["stop", "length", "tool-calls", "content-filter"]


@dataclass(frozen=True)
class Tool:
    """A function tool as the model sees it: the wire name, and a JSON Schema we check ourselves."""

    name: str
    description: str
    schema: dict[str, Json]


@dataclass(frozen=True)
class ToolResult:
    """An earlier call of this run, for stand-ins whose turns build on what really happened."""

    id: str
    name: str
    ok: bool
    output: Json
    text: str


@dataclass(frozen=True)
class Situation:
    """Where in its project a run stands: what a stand-in needs to find and fill its next turn."""

    project_id: str | None = None
    #: The stand-in script of the project, as read; None: none.
    script: Json = None
    #: The task: {key, title, role, instruction, expectedOutput, deliverables, skills}; None outside a project.
    task: Mapping[str, Json] | None = None
    agent_id: str = ""
    agent_name: str = ""
    #: `root`, `spawn` or `item`.
    kind: str = "root"
    #: `$input`, and inside an item run `$item` and `$index`.
    input: Json = None
    item: Json = None
    index: int | None = None
    #: Model calls this run made before this one.
    turn: int = 0
    results: list[ToolResult] = field(default_factory=list)
    #: A closing call: no tool can be called, words are wanted.
    closing: bool = False
    #: The skill that calls the model from inside; then `turn` counts that skill's calls. None: the run itself.
    skill: str | None = None


@dataclass(frozen=True)
class Request:
    """One model call."""

    #: Which model, tried in this order: an alias or model of the definition, then its fallbacks, then the tier's.
    tier: str
    model: str | None = None
    fallback: tuple[str, ...] = ()
    #: temperature, topP, frequencyPenalty, presencePenalty, maxTokens, effort: whatever the definition sets.
    generation: Mapping[str, Json] = field(default_factory=dict)
    system: str = ""
    #: Message rows (spec: engine 5.4) in order; the client maps them to the API's form.
    messages: list[dict[str, Json]] = field(default_factory=list)
    tools: list[Tool] = field(default_factory=list)
    #: JSON Schema of a structured answer.
    output: dict[str, Json] | None = None
    #: Seconds the call may take.
    timeout_s: float = 120
    cancelled: Callable[[], bool] = field(default=lambda: False)
    situation: Situation = field(default_factory=Situation)
    #: Hears the answer while it comes: a piece of `text` or `reasoning`, or `again` when it begins anew. None: nobody
    #: listens, and it comes as a whole.
    hear: Callable[[Literal["text", "reasoning", "again"], str], None] | None = None
    #: Whose call it is where calls have to wait for their turn: the run, which keeps its place from one look to the
    #: next, and its project, between which turns go round.
    ticket: str = ""
    lane: str = ""


@dataclass(frozen=True)
class Usage:
    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    #: Counted by characters, because the answer carried no usage.
    estimated: bool = False

    @property
    def total(self) -> int:
        return self.input_tokens + self.output_tokens

    def to_json(self) -> dict[str, Json]:
        return {
            "inputTokens": self.input_tokens,
            "outputTokens": self.output_tokens,
            "totalTokens": self.total,
            **({"cachedTokens": self.cached_tokens} if self.cached_tokens else {}),
            **({"estimated": True} if self.estimated else {}),
        }


@dataclass(frozen=True)
class ToolCall:
    #: None: the model gave none; the engine gives one.
    id: str | None
    #: As the model wrote it, wire or dotted.
    name: str
    #: An object; or the text the model wrote when that is no JSON object, so that the call is refused with its fault.
    arguments: Json


@dataclass(frozen=True)
class Reply:
    """What came back. Calls cut off by the length limit are already dropped."""

    text: str
    calls: list[ToolCall]
    finish_reason: FinishReason
    usage: Usage
    model: str
    #: Micro-USD; None: the price is unknown, which is not the same as free.
    cost_micro: int | None
    reasoning: str | None = None
    duration_ms: int = 0
    #: Said by the stand-in: labelled wherever its words show.
    stand_in: bool = False


class ModelFault(OfficinaError):
    """A model call that gave no answer.

    `passing`: trying the same again later may help (429, 5xx, connection); `retry_after` in seconds when the other side
    said so. Otherwise the request itself was refused. `status`: what the other side answered with; `late`: nothing in
    time; `held`: nothing was sent, the model's turns of this minute are taken.
    """

    code = "model_failed"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        passing: bool = False,
        retry_after: float | None = None,
        status: int | None = None,
        late: bool = False,
        held: bool = False,
    ) -> None:
        super().__init__(message, code=code)
        self.passing = passing
        self.retry_after = retry_after
        self.status = status
        self.late = late
        self.held = held


class ModelClient(Protocol):
    def worst_micro(self, request: Request) -> int | None:
        """Micro-USD the call may cost at most; 0: nothing, None: the price is unknown."""
        ...

    def context_tokens(self, request: Request) -> int | None:
        """Tokens the context of the model that would answer first holds; None: unknown."""
        ...

    def generate(self, request: Request) -> Reply:
        """One answer.

        Raises:
            ModelFault: after quick retries and fallbacks; code `model_failed`, or `model_unresolved` when no model
                stands behind what was asked, or `model_script_exhausted` when a script has no turn left.
        """
        ...
