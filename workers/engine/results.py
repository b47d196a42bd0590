"""The result of a call in its three forms: the entry of `$output.results`, the tool message, the event."""

from dataclasses import dataclass

from orchestrator.unknown import UNKNOWN, words
from registry.base import Json
from registry.jsontext import compact
from registry.skills.registry import SkillResult
from workers.engine.calls import Call
from workers.engine.restore import WARNING
from workers.engine.session import Session, clip

#: Bytes of an output an event keeps.
EVENT_BYTES = 16 * 1024


@dataclass(frozen=True)
class Result:
    """How a call came out."""

    outcome: str
    value: Json
    is_error: bool = False
    code: str | None = None
    flags: tuple[str, ...] = ()
    duration_ms: int = 0

    def entry(self, call: Call) -> dict[str, Json]:
        """Its place in `$output.results`."""
        found: dict[str, Json] = {"id": call.id, "name": call.name, "result": self.value, "isError": self.is_error}
        if self.code:
            found["code"] = self.code
        return found | dict.fromkeys(self.flags, True)


def of(result: SkillResult) -> Result:
    """From the one invoke. Denials speak for themselves; other faults say `code: message`."""
    if result.ok:
        return Result("ok", result.output, duration_ms=result.duration_ms)
    if result.code in ("denied", "blocked"):
        return Result("denied", result.error, True, result.code, ("denied",), result.duration_ms)
    return Result("error", f"{result.code}: {result.error}", True, result.code, (), result.duration_ms)


def denied(words: str, *, code: str = "denied") -> Result:
    """It may not run, and nobody is asked."""
    return Result("denied", words, True, code, ("denied",))


def rejected(words: str) -> Result:
    """A person said no, or nobody answered: not an error, and terminal for this call."""
    return Result("rejected", words, False, "denied", ("skipped", "denied"))


def deferred(signal_id: str) -> Result:
    """The run does not wait: a yes will run the call outside of it."""
    words = f"waiting: a person has to say yes first (signal {signal_id}). Go on without it; do not call it again"
    return Result("deferred", words, False, "approval_required", ("deferred",))


def unknown(call: Call) -> Result:
    """Started before a crash, and nobody knows how it ended."""
    return Result(UNKNOWN, words(call.name), True, UNKNOWN)


def tell(session: Session, call: Call, result: Result) -> None:
    """Writes the one `tool.result` of a call."""
    text = result.value if isinstance(result.value, str) else compact(result.value)
    short = len(text.encode("utf-8", "replace")) <= EVENT_BYTES
    session.emit(
        "tool.result",
        toolCallId=call.id,
        name=call.name,
        outcome=result.outcome,
        isError=result.is_error,
        code=result.code,
        output=result.value if short else clip(text, EVENT_BYTES // 4),
        clipped=None if short else True,
        **_cost(session, call, result),
        durationMs=result.duration_ms,
    )


def _cost(session: Session, call: Call, result: Result) -> dict[str, Json]:
    """What a call that costs money says about it."""
    found = session.tools.registry.find(call.name)
    if found is None or not found.cost_bearing or not isinstance(result.value, dict):
        return {}
    usage = result.value.get("usage")
    estimated = usage.get("estimated") if isinstance(usage, dict) else None
    return {"costUsd": result.value.get("costUsd"), "estimated": estimated or None}


def message(session: Session, entry: dict[str, Json], *, warning: str | None = None) -> dict[str, Json]:
    """The tool message: the text as it is or compact JSON, clipped, the whole of it kept as a file; then a warning."""
    value = entry["result"]
    text = value if isinstance(value, str) else compact(value)
    body: dict[str, Json] = {"role": "tool", "toolCallId": entry["id"], "name": entry["name"]}
    shown = _clipped(session, entry["id"], text)
    body["content"] = shown + (WARNING + warning if warning else "")
    if _outside(session, entry):
        body["outside"] = len(shown)  # characters that are fenced as data for the model; ours follow them
    # A call a person refused is no error, and it did not happen either.
    return body | {flag: True for flag in ("isError", "denied") if entry.get(flag)}


def _outside(session: Session, entry: dict[str, Json]) -> bool:
    """Whether others wrote it: a page, a mail, an API, and their errors quote them too."""
    skill = session.tools.registry.find(entry["name"])
    value = entry["result"]
    told = any(
        isinstance(one, dict) and one.get("untrusted") is True
        for one in (value if isinstance(value, list) else [value])
    )
    return told or (skill is not None and skill.open_world and not entry.get("denied"))


def _clipped(session: Session, call_id: str, text: str) -> str:
    limits = session.agent.tool_output
    if len(text) <= limits.max_chars:
        return text
    left_out = len(text) - limits.head_chars - limits.tail_chars
    workspace = session.services.workspace(session.record)
    where = ""
    if workspace is not None:
        where = f"; the whole text is in {workspace.write_output(session.record.id, call_id, text)}"
    mark = f"\n[... {left_out} characters left out{where} ...]\n"
    tail = text[-limits.tail_chars :] if limits.tail_chars else ""
    return text[: limits.head_chars] + mark + tail
