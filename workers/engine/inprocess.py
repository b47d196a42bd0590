"""One agent in this process, against scripted model turns and stub tools: `officina graph run`.

No database, no broker: the journal keeps lists, answers are given while the run is parked, timers end at once. The
engine is the same one that workers run.
"""

import time
from collections.abc import Callable
from typing import Any

import jsonschema
import referencing
from pydantic import Field, ValidationError

from orchestrator.records import Checkpoint, Event, RunRecord, SignalRecord
from orchestrator.settings import Limits
from registry.base import Json, Model
from registry.errors import Fault, Refused, SkillError, WrongUse
from registry.graph.validation import validate
from registry.permissions import Gate, Mode
from registry.skills.context import SkillContext
from registry.skills.contract import SchemaContract
from registry.skills.registry import SkillRegistry
from registry.skills.skill import Effect, Skill
from workers.engine import loop
from workers.engine.services import Services
from workers.engine.session import Session
from workers.models.scripted import ScriptedModel

#: The trace of a command has an id of its own kind: nothing of it is stored.
RUN_ID = "run"


class StubTool(Model):
    """A tool that only answers."""

    returns: Json = None
    raises: str | None = None
    #: Milliseconds of real time it takes.
    delay_ms: float = Field(0, ge=0)
    schema_: dict[str, Json] = Field(default_factory=lambda: {"type": "object"}, alias="schema")
    operations: list[str] = Field(default_factory=list)
    effect: Effect = "once"


class Script(Model):
    """What stands in for the outside (spec: engine 22)."""

    input: Json = None
    start_state: dict[str, Json] = Field(default_factory=dict)
    model: list[dict[str, Json]] = Field(default_factory=list)
    tools: dict[str, StubTool] = Field(default_factory=dict)
    answers: list[Json] = Field(default_factory=list)
    agents: dict[str, dict[str, Json]] = Field(default_factory=dict)
    mode: Mode | None = None
    permissions: dict[str, Gate] = Field(default_factory=dict)


class MemoryJournal:
    """The journal's side without a store: everything a run wrote, in order."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.signals: list[SignalRecord] = []

    def save(self, checkpoint: Checkpoint) -> None:
        for signal_id in checkpoint.consume:
            if self._find(signal_id).status == "open":
                raise Refused(f"signal {signal_id} is open", code="already_executed")
        self.signals.extend(checkpoint.signals)
        for event in checkpoint.events:
            event.seq = len(self.events) + 1
            self.events.append(event)

    def was_refused(self, run_id: str, task_id: str | None, digest: str) -> bool:
        return any(s.digest == digest and s.rejected for s in self.signals if s.kind == "decision")

    def open_decisions(self, project_id: str | None) -> int:
        return sum(s.status == "open" and s.kind == "decision" for s in self.signals)

    def tell(self, kind: str, **data: Json) -> None:
        """A line that a store would have written for the engine."""
        self.events.append(Event(kind, data, run_id=RUN_ID, seq=len(self.events) + 1))

    def _find(self, signal_id: str) -> SignalRecord:
        return next(s for s in self.signals if s.id == signal_id)


def read_script(raw: Json) -> Script:
    """A script file's content.

    Raises:
        WrongUse: with a fault for each field that is not as it should be.
    """
    try:
        return Script.model_validate(raw)
    except ValidationError as error:
        faults = [
            Fault(".".join(map(str, e["loc"])), "script_shape", e["msg"]) for e in error.errors(include_url=False)
        ]
        raise WrongUse("the script cannot be used", code="script_shape", faults=faults) from None


def run(
    definition: dict[str, Json], script: Script, packs: dict[str, tuple[Skill, ...]], limits: Limits
) -> dict[str, Json]:
    """Runs the agent to its end, or until it waits for an answer the script does not have."""
    journal = MemoryJournal()
    model = ScriptedModel(script.model)
    services = Services(
        catalogue=SkillRegistry(),
        packs=packs,
        journal=journal,
        model=lambda _run: model,
        limits=limits,
        extra_tools=[_stub(name, spec) for name, spec in script.tools.items()],
    )
    agent_id = str(definition.get("id", ""))
    record = RunRecord(
        id=RUN_ID,
        fence=1,
        project_id=None,
        kind="root",
        depth=0,
        agent_id=agent_id,
        agent_name=str(definition.get("name", agent_id)),
        definition=definition,
        input=script.input,
        state=dict(script.start_state),
        mode=script.mode,
        permissions=script.permissions,
    )
    if faults := _errors(definition):
        return _refused(journal, faults)
    journal.tell("run.started", attempt=1, depth=0)
    session = loop.open_session(record, services)
    assert session is not None
    return _report(session, journal, _carry_on(session, journal, list(script.answers)))


def _carry_on(session: Session, journal: MemoryJournal, answers: list[Json]) -> str | None:
    """Drives the run, giving answers to its signals in the order raised; returns the code of a refused answer."""
    loop.drive(session)
    while session.status == "needs_input":
        signal = next((s for s in journal.signals if s.status == "open"), None)
        if signal is None or not answers:
            return None
        payload = answers.pop(0)
        if payload is not None and not _fits(signal.schema, payload):
            return "resume_validation_failed"
        _answer(signal, payload)
        journal.tell("signal.answered", signalId=signal.id, payload=payload, rejected=signal.rejected, by="script")
        journal.tell("run.resumed", by="answer")
        loop.drive(session)
    return None


def _answer(signal: SignalRecord, payload: Json) -> None:
    signal.status, signal.answer, signal.answered_by = "answered", payload, "script"
    approves = isinstance(payload, dict) and payload.get("approved") is True
    signal.rejected = payload is None or (signal.kind == "decision" and not approves)


def _fits(schema: dict[str, Json], payload: Json) -> bool:
    return jsonschema.Draft202012Validator(schema, registry=referencing.Registry()).is_valid(payload)


def _report(session: Session, journal: MemoryJournal, refused: str | None) -> dict[str, Json]:
    state = {k: v for k, v in session.state.items() if k != "messages"}
    return {
        "status": session.status,
        "code": refused or session.code,
        "output": session.final if session.status == "completed" else None,
        "state": state,
        "messages": session.state.get("messages", []),
        "steps": session.steps,
        "tokens": session.tokens,
        "events": [event.to_json() for event in journal.events],
        "interrupts": [signal.to_json(RUN_ID) for signal in journal.signals],
    }


def _refused(journal: MemoryJournal, faults: list[str]) -> dict[str, Json]:
    journal.tell("run.failed", code="agent_invalid", message="; ".join(faults))
    return {
        "status": "failed",
        "code": "agent_invalid",
        "output": None,
        "state": {},
        "messages": [],
        "steps": 0,
        "tokens": 0,
        "events": [event.to_json() for event in journal.events],
        "interrupts": [],
    }


def _errors(definition: dict[str, Json]) -> list[str]:
    return [f"{f.code}: {f.message}" for f in validate(definition) if f.severity == "error"]


def _stub(name: str, spec: StubTool) -> Skill:
    """A stub tool: what it returns or raises, after a real delay."""

    def answer(_arguments: Any, context: SkillContext) -> Json:
        _wait(spec.delay_ms / 1000, context.check)
        if spec.raises is not None:
            raise SkillError("tool_failed", spec.raises)
        return spec.returns

    return Skill(
        name=name,
        title=name,
        description=f"stub tool {name}",
        input=SchemaContract(spec.schema_),
        run=answer,
        operations=frozenset(spec.operations),
        effect=spec.effect,
    )


def _wait(seconds: float, check: Callable[[], None]) -> None:
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        check()
        time.sleep(min(left, 0.05))
