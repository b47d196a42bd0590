"""The registry of skills and the one `invoke` (spec: skills 3).

Every call of every caller goes through `SkillRegistry.invoke`: look-up, right to call, input, gate, time, output. The
first step that fails answers; a fault is a result, never an exception.
"""

import logging
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from registry import masking
from registry.base import Json
from registry.errors import Detail, SkillError
from registry.jsontext import compact, depth, digest
from registry.skills.context import KEEP, AskPerson, Authority, Deadline, Question, SkillContext
from registry.skills.skill import Skill

log = logging.getLogger(__name__)

MAX_INPUT_BYTES = 2 * 1024 * 1024
MAX_OUTPUT_BYTES = 4 * 1024 * 1024
MAX_DEPTH = 100


@dataclass(frozen=True)
class Pending:
    """A call that waits for a person: exactly what would run, and the digest a yes binds to."""

    skill: str
    input: Json
    digest: str
    operation: str | None
    reason: str
    #: Of the skill, where it has one (`Skill.release`).
    release: str | None = None

    @property
    def action(self) -> dict[str, Json]:
        """What is stored for the answer."""
        return {"skill": self.skill, "input": self.input} | ({"release": self.release} if self.release else {})


@dataclass
class SkillResult:
    """What a call came to. `pending` is set with the code `approval_required` and says what waits."""

    ok: bool
    output: Json = None
    error: str | None = None
    code: str | None = None
    retryable: bool = False
    signal_id: str | None = None
    details: list[Detail] = field(default_factory=list)
    duration_ms: int = 0
    pending: Pending | None = None
    #: Set with the same code when the skill itself asks something.
    question: Question | None = None

    def to_json(self) -> dict[str, Json]:
        result: dict[str, Json] = {"ok": self.ok, "durationMs": self.duration_ms}
        if self.ok:
            return result | {"output": self.output}
        result |= {"error": self.error, "code": self.code, "retryable": self.retryable}
        if self.signal_id:
            result["signalId"] = self.signal_id
        if self.details:
            result["details"] = [d.to_json() for d in self.details]
        return result


@dataclass(frozen=True)
class Checked:
    """A call whose input was found good: what the gate judges and the trace shows."""

    skill: Skill
    input: Any
    canonical: Json
    digest: str
    operations: list[str]


class SkillRegistry:
    """Skills by name. Frozen after boot: what is offered cannot change under a run."""

    def __init__(self, skills: Iterable[Skill] = ()) -> None:
        self._by_name: dict[str, Skill] = {}
        self._by_wire: dict[str, Skill] = {}
        for one in skills:
            self._add(one)

    def _add(self, skill: Skill) -> None:
        """A name given twice stops the start-up; after it nothing is added."""
        if skill.name in self._by_name or skill.wire_name in self._by_wire:
            raise ValueError(f"the skill {skill.name} is registered twice")
        self._by_name[skill.name] = skill
        self._by_wire[skill.wire_name] = skill
        for alias in skill.aliases:
            self._by_wire.setdefault(alias, skill)

    def find(self, name: str) -> Skill | None:
        """The skill of a dotted, plain or wire name, or of another name it has."""
        return self._by_name.get(name) or self._by_wire.get(name)

    def __iter__(self) -> Iterator[Skill]:
        return iter(sorted(self._by_name.values(), key=lambda s: s.name))

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, name: str) -> bool:
        return self.find(name) is not None

    def check(self, name: str, arguments: Json, context: SkillContext) -> Checked:
        """Steps 1 to 3: the name, the right to call it, the input, also as a hook revised it.

        Raises:
            SkillError: `unknown_skill`, `tool_not_offered`, `invalid_input`, `path_escape`, `blocked`.
        """
        found = self.find(name)
        if found is None:
            raise SkillError("unknown_skill", f"there is no skill {name[:80]!r}; {_offer(self._names(context))}")
        if context.allowed is not None and found.name not in context.allowed:
            raise SkillError("tool_not_offered", f"{found.name} is not offered here; {_offer(self._names(context))}")
        call = _checked(found, arguments)
        revised = context.revise(call)
        return call if revised is KEEP else _rechecked(found, revised)

    def invoke(
        self, name: str, arguments: Json, context: SkillContext, authority: Authority | None = None
    ) -> SkillResult:
        """Runs one call from look-up to checked output; never raises for a fault of the call."""
        return _caught(name, lambda: self._invoke(name, arguments, context, authority))

    def _invoke(self, name: str, arguments: Json, context: SkillContext, authority: Authority | None) -> SkillResult:
        call = self.check(name, arguments, context)
        if refusal := gate(call, context, authority):
            return refusal
        if context.rehearsal and "world" in call.operations:
            return SkillResult(True, {"rehearsed": True, "note": "a rehearsal: this call was not carried out"})
        if call.skill.rate and context.meter:
            context.meter.admit(call.skill.rate, context.caller.owner_id)
        call.skill.load()
        context.deadline = Deadline(min(call.skill.timeout_s, context.time_left))
        context.check()
        context.begin(call)
        result = _caught(name, lambda: _run(call, context))
        if result.question is not None:  # it has not run yet: a person has to answer first
            return result
        made = result.output
        reviewed: SkillResult = context.review(call, result)
        if reviewed.ok and reviewed.output is not made:
            _weigh(call.skill, reviewed.output)
        return reviewed

    def refusal(
        self, name: str, arguments: Json, context: SkillContext, authority: Authority | None = None
    ) -> SkillResult | None:
        """Steps 1 to 5 of a call that somebody else is to make: what it would be refused with; None: it may be made."""
        try:
            return gate(self.check(name, arguments, context), context, authority)
        except SkillError as error:
            return _failed(error)

    def _names(self, context: SkillContext) -> list[str]:
        return sorted(context.allowed if context.allowed is not None else self._by_name)


def _caught(name: str, work: Callable[[], SkillResult]) -> SkillResult:
    """The result of the work, or of its fault, and how long it took."""
    started = time.monotonic()
    try:
        result = work()
    except AskPerson as asking:
        words = "a person has to answer first"
        result = SkillResult(False, None, words, "approval_required", question=asking.question)
    except SkillError as error:
        result = _failed(error)
    except Exception:
        trace = secrets.token_hex(4)
        log.exception("skill %s failed (%s)", name[:80], trace)
        result = SkillResult(False, None, f"the tool failed on our side; the log has it under {trace}", "tool_failed")
    result.duration_ms = round((time.monotonic() - started) * 1000)
    return result


def _failed(error: SkillError) -> SkillResult:
    details = [Detail(masking.mask_text(d.path), masking.mask_text(d.message)) for d in error.details]
    words = masking.mask_text(error.message)
    return SkillResult(False, None, words, error.code, error.retryable, details=details)


def _run(call: Checked, context: SkillContext) -> SkillResult:
    made = call.skill.run(call.input, context)
    output = call.skill.output.canonical(made) if call.skill.output else made
    _weigh(call.skill, output)
    return SkillResult(True, masking.hide(output))  # what a connection opened goes no further than its skill


def _weigh(skill: Skill, output: Json) -> None:
    try:
        size = len(compact(output).encode())
    except (ValueError, TypeError, UnicodeEncodeError):
        raise SkillError("invalid_output", f"{skill.name} returned a value that is no JSON") from None
    if size > MAX_OUTPUT_BYTES:
        raise SkillError("too_large", f"the output has {size} bytes, more than {MAX_OUTPUT_BYTES}")


def _checked(skill: Skill, arguments: Json) -> Checked:
    _judge(arguments)
    checked = skill.input.check(arguments)
    canonical = skill.input.canonical(checked)
    return Checked(
        skill=skill,
        input=checked,
        canonical=canonical,
        digest=digest({"skill": skill.name, "input": canonical}),
        operations=skill.operations_of(checked),
    )


def _rechecked(skill: Skill, arguments: Json) -> Checked:
    try:
        return _checked(skill, arguments)
    except SkillError as error:
        words = f"a hook changed the input, and it is not good: {error.message}"
        raise SkillError(error.code, words, details=error.details) from None


def _judge(arguments: Json) -> None:
    if not isinstance(arguments, dict):
        raise SkillError("invalid_input", f"the input is a {type(arguments).__name__}, and has to be an object")
    if depth(arguments, stop=MAX_DEPTH) > MAX_DEPTH:
        raise SkillError("invalid_input", f"the input nests deeper than {MAX_DEPTH} levels")
    try:
        size = len(compact(arguments).encode())
    except UnicodeEncodeError:
        raise SkillError("invalid_input", "the input holds half a character (a lone surrogate)") from None
    except ValueError:
        raise SkillError("invalid_input", "the input holds NaN, Infinity or a number too long to read") from None
    if size > MAX_INPUT_BYTES:
        raise SkillError("invalid_input", f"the input has {size} bytes, more than {MAX_INPUT_BYTES}")


def gate(call: Checked, context: SkillContext, authority: Authority | None) -> SkillResult | None:
    """Steps 4 and 5. A person's own call has no policy: their act answers every ask.

    Raises:
        SkillError: `denied`.
    """
    if authority is not None and authority.digest not in (None, call.digest):
        raise SkillError("denied", "denied: the approval was given for another input than this one")
    if authority is not None and authority.release not in (None, call.skill.release):
        raise SkillError("denied", "denied: the approval was given for another release of this plugin")
    if context.policy is None:
        if "world" in call.operations and authority is None:
            raise SkillError(
                "denied", "denied: acting outside Officina needs a person's yes, and nobody stands behind this call"
            )
        return None
    verdict = context.policy.judge(call.operations)
    if verdict.gate == "deny":
        where = "denied in subagent context" if context.policy.ancestors else "denied"
        raise SkillError("denied", f"{where}: {verdict.operation}: {verdict.reason}")
    if verdict.gate == "ask" and authority is None:
        release = call.skill.release
        pending = Pending(call.skill.name, call.canonical, call.digest, verdict.operation, verdict.reason, release)
        return SkillResult(
            False, None, f"a person has to say yes first: {verdict.reason}", "approval_required", pending=pending
        )
    return None


def _offer(names: list[str]) -> str:
    return "you may call: " + ", ".join(names) if names else "no tools are offered here"


__all__ = ["Checked", "Pending", "SkillRegistry", "SkillResult"]
