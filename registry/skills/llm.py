"""`llm.generate` and `llm.structured`: one question to a language model, without tools (spec: skills 7.17, 7.18)."""

from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field, StringConstraints

from registry.base import Json, Model
from registry.errors import SkillError
from registry.skills.context import SkillContext
from registry.skills.ports import Ask, Said
from registry.skills.skill import Skill, skill
from registry.text import not_blank

NOT_WIRED: Final = "no model is wired to this call: nothing was asked"

Tier = Literal["fast", "standard", "deep"]
TIERS: Final = ("fast", "standard", "deep")
Prompt = Annotated[str, StringConstraints(min_length=1, max_length=100_000), AfterValidator(not_blank)]
System = Annotated[str, StringConstraints(max_length=20_000)]
Stop = Annotated[str, StringConstraints(min_length=1, max_length=64)]


class Usage(Model):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    #: Tokens were guessed by characters.
    estimated: bool = False


class Generate(Model):
    prompt: Prompt
    system: System = ""
    tier: Tier | None = Field(default=None, description="never above your own, which is what it is when left out")
    temperature: float = Field(default=0.7, ge=0, le=2)
    max_tokens: int = Field(default=1024, ge=1, le=8192)
    stop: list[Stop] = Field(default=[], max_length=4)


class Generated(Model):
    text: str = ""
    model: str | None = None
    finish_reason: Literal["stop", "length", "content_filter"] | None = None
    usage: Usage = Usage()
    #: None: nobody knows the price.
    cost_usd: float | None = None
    wired: bool = True
    note: str | None = None
    #: The stand-in said it; no model was asked.
    stand_in: bool = False


@skill(
    "llm.generate",
    title="Ask a language model",
    timeout_s=120,
    effect="idempotent",
    rate="llm",
    needs=("llm",),
    cost_bearing=True,
)
def generate(given: Generate, context: SkillContext) -> Generated:
    """Asks a language model one question and returns its text: to draft, rephrase, sum up, translate. It sees the
    prompt and `system` only: no tools, no files, none of your conversation. `tier` chooses a cheaper model than your
    own. At most 8,192 tokens come back; finishReason length says that the answer was cut. Costs money."""
    if context.llm is None:
        return Generated(wired=False, note=NOT_WIRED)
    said = context.llm.ask(
        context.caller,
        Ask(
            skill="llm.generate",
            prompt=given.prompt,
            system=given.system,
            tier=capped(given.tier, context.caller.tier),
            temperature=given.temperature,
            max_tokens=given.max_tokens,
            stop=tuple(given.stop),
            timeout_s=context.deadline.left,
            cancelled=context.cancelled,
        ),
    )
    if said is None:
        return Generated(wired=False, note=NOT_WIRED)
    return Generated(
        text=said.text,
        model=said.model,
        finish_reason=said.finish_reason,
        usage=_usage([said]),
        cost_usd=_cost([said]),
        stand_in=said.stand_in,
    )


class Structured(Model):
    prompt: Prompt
    system: System = ""
    tier: Tier | None = Field(default=None, description="never above your own, which is what it is when left out")
    json_schema: dict[str, Json] = Field(
        alias="schema", description="JSON Schema 2020-12 with a root of type object; at most 32 KiB"
    )
    max_retries: int = Field(default=2, ge=0, le=3, description="further tries when an answer does not fit")


class StructuredAnswer(Model):
    value: Json = None
    #: Model calls made.
    attempts: int = 0
    model: str | None = None
    usage: Usage = Usage()
    cost_usd: float | None = None
    wired: bool = True
    note: str | None = None
    stand_in: bool = False


@skill(
    "llm.structured",
    title="Ask for structured data",
    timeout_s=120,
    effect="idempotent",
    rate="llm",
    needs=("llm",),
    cost_bearing=True,
)
def structured(given: Structured, context: SkillContext) -> StructuredAnswer:
    """Asks a language model for a JSON object that fits a JSON Schema (2020-12, root of type object, at most 32 KiB,
    12 schemas deep, 200 properties; references by #/path only, patterns without look-around). An answer that does not
    fit is asked for again with what was wrong, up to `maxRetries` times; then the call fails with invalid_output. It
    sees the prompt and `system` only. Costs money for each try."""
    from registry.skills.structured import answer_faults, read_answer, schema_faults

    if faults := schema_faults(given.json_schema):
        words = f"{faults[0].path}: {faults[0].message}"
        raise SkillError("invalid_input", words, details=faults)
    if context.llm is None:
        return StructuredAnswer(wired=False, note=NOT_WIRED)
    heard: list[Said] = []
    repairs: list[tuple[str, str]] = []
    for _ in range(1 + given.max_retries):
        context.check()
        said = context.llm.ask(context.caller, _question(given, context, repairs))
        if said is None:
            return StructuredAnswer(wired=False, note=NOT_WIRED)
        heard.append(said)
        value, fault = read_answer(said.text)
        wrong = [] if fault else answer_faults(given.json_schema, value)
        if fault is None and not wrong:
            return StructuredAnswer(
                value=value,
                attempts=len(heard),
                model=said.model,
                usage=_usage(heard),
                cost_usd=_cost(heard),
                stand_in=said.stand_in,
            )
        told = fault or "; ".join(f"{one.path}: {one.message}" for one in wrong)
        repairs.append((said.text, told))
    last = repairs[-1][1]
    words = f"after {len(heard)} tries the model's answer still does not fit: {last[:500]}"
    raise SkillError("invalid_output", words, details=wrong)


def _question(given: Structured, context: SkillContext, repairs: list[tuple[str, str]]) -> Ask:
    return Ask(
        skill="llm.structured",
        prompt=given.prompt,
        system=given.system,
        tier=capped(given.tier, context.caller.tier),
        max_tokens=8192,
        schema=given.json_schema,
        repairs=tuple(repairs),
        timeout_s=context.deadline.left,
        cancelled=context.cancelled,
    )


def capped(wanted: str | None, own: str) -> str:
    """The tier asked for, and never one above the caller's own."""
    if wanted is None or own not in TIERS:
        return own
    return TIERS[min(TIERS.index(wanted), TIERS.index(own))]


def _usage(heard: list[Said]) -> Usage:
    return Usage(
        prompt_tokens=sum(said.prompt_tokens for said in heard),
        completion_tokens=sum(said.completion_tokens for said in heard),
        estimated=any(said.estimated for said in heard),
    )


def _cost(heard: list[Said]) -> float | None:
    costs = [said.cost_micro for said in heard]
    known: list[Any] = [cost for cost in costs if cost is not None]
    return sum(known) / 1_000_000 if len(known) == len(costs) else None


SKILLS: tuple[Skill, ...] = (generate, structured)

__all__ = ["SKILLS", "capped", "generate", "structured"]
