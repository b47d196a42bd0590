"""Questions that skills ask a model: turned into requests, and answers and faults turned back (spec: skills 7.17)."""

import threading
from collections import Counter

from orchestrator.settings import Settings
from registry.base import Json
from registry.errors import SkillError
from registry.skills.context import Caller
from registry.skills.ports import Ask, Said
from workers.models.choose import client_for
from workers.models.faults import TOO_MANY
from workers.models.model import ModelFault, Reply, Request, Situation

_REPAIR = "That does not fit: {fault}. Answer again with the whole JSON object and nothing else."


class PlainModel:
    """The `Llm` port of a call outside of any run: a person's own, which no budget bounds."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._asked: Counter[str] = Counter()
        self._lock = threading.Lock()

    def ask(self, caller: Caller, question: Ask) -> Said | None:
        """See `Llm`."""
        with self._lock:
            turn = self._asked[question.skill]
            self._asked[question.skill] += 1
        situation = Situation(skill=question.skill, turn=turn, input={"text": question.prompt})
        try:
            return said(client_for(self._settings).generate(request(question, caller.tier, situation)))
        except ModelFault as fault:
            return unanswered(fault, question)


def request(question: Ask, tier: str, situation: Situation) -> Request:
    """The model call behind a question."""
    messages: list[dict[str, Json]] = [{"role": "user", "content": question.prompt}]
    for answer, fault in question.repairs:
        messages.append({"role": "assistant", "content": answer})
        messages.append({"role": "user", "content": _REPAIR.format(fault=fault)})
    generation: dict[str, Json] = {"maxTokens": question.max_tokens}
    if question.temperature is not None:
        generation["temperature"] = question.temperature
    if question.stop:
        generation["stop"] = list(question.stop)
    return Request(
        tier=question.tier or tier,
        generation=generation,
        system=question.system,
        messages=messages,
        output=question.schema,
        timeout_s=question.timeout_s,
        cancelled=question.cancelled,
        situation=situation,
    )


def said(reply: Reply) -> Said:
    """An answer as skills see it."""
    reasons = {"length": "length", "content-filter": "content_filter"}
    return Said(
        text=reply.text,
        model=reply.model,
        finish_reason=reasons.get(reply.finish_reason, "stop"),  # type: ignore[arg-type]
        prompt_tokens=reply.usage.input_tokens,
        completion_tokens=reply.usage.output_tokens,
        estimated=reply.usage.estimated,
        cost_micro=reply.cost_micro,
        stand_in=reply.stand_in,
    )


def unanswered(fault: ModelFault, question: Ask) -> Said | None:
    """None, where there is no model at all; a call that failed has a code.

    Raises:
        SkillError: `cancelled`, `rate_limited`, `timeout`, `remote_error`.
    """
    if fault.code == "model_unresolved":
        return None
    if question.cancelled():
        raise SkillError("cancelled", fault.message) from None
    if fault.held or (fault.status == TOO_MANY and fault.passing):
        raise SkillError("rate_limited", fault.message, retryable=True) from None
    if fault.late:
        raise SkillError("timeout", fault.message, retryable=True) from None
    raise SkillError("remote_error", fault.message, retryable=fault.passing) from None
