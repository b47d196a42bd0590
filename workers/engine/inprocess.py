"""One agent in this process, against scripted model turns and stub tools: `officina graph run`.

No database, no broker: the journal keeps lists, answers are given while the run is parked, timers end at once. The
engine is the same one that workers run.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jsonschema
import referencing
from pydantic import Field, ValidationError

from orchestrator.records import (
    Checkpoint,
    ChildRecord,
    Event,
    Limit,
    Refusal,
    RunRecord,
    SignalRecord,
    Usage,
    Wake,
    wall_ms,
)
from orchestrator.settings import Limits
from orchestrator.states import RUN_ENDED
from registry.base import Json, Model
from registry.errors import Fault, Refused, SkillError, WrongUse
from registry.graph.validation import validate
from registry.jsontext import digest
from registry.permissions import Gate, Mode
from registry.skills.context import Execution, SkillContext
from registry.skills.contract import SchemaContract
from registry.skills.registry import SkillRegistry
from registry.skills.skill import Effect, Skill
from workers.engine import loop
from workers.engine.services import Services
from workers.engine.session import Session
from workers.engine.targets import Target
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
        self._usage: dict[str, Usage] = {}

    def save(self, checkpoint: Checkpoint) -> list[Wake]:
        for signal_id in checkpoint.consume:
            if self._find(signal_id).status == "open":
                raise Refused(f"signal {signal_id} is open", code="already_executed")
        self.signals.extend(checkpoint.signals)
        self._draw(checkpoint)
        for event in checkpoint.events:
            event.seq = len(self.events) + 1
            self.events.append(event)
        for signal_id in checkpoint.close:
            self.tell("signal.expired", run_id=checkpoint.run_id, signalId=signal_id)
        return []

    def was_refused(self, run_id: str, task_id: str | None, digest: str) -> bool:
        return any(s.digest == digest and s.rejected for s in self.signals if s.kind == "decision")

    def open_decisions(self, project_id: str | None) -> int:
        return sum(s.status == "open" and s.kind == "decision" for s in self.signals)

    def reserve(self, run_id: str, call_key: str, limits: Sequence[Limit], micro: int) -> Refusal | None:
        return None  # scripted turns cost nothing

    def usage(self, window_id: str) -> Usage:
        return self._usage.get(window_id, Usage(0, 0, 0, 0))

    def _draw(self, checkpoint: Checkpoint) -> None:
        steps, tokens, running_ms = checkpoint.drawn
        for window_id in checkpoint.shared:
            before = self.usage(window_id)
            self._usage[window_id] = Usage(
                before.steps + steps, before.tokens + tokens, before.running_ms + running_ms, 0
            )
        for window_id in checkpoint.renewed:
            self._usage[window_id] = Usage(0, 0, 0, 0)

    def open_decision(self, run_id: str, task_id: str | None, digest: str) -> str | None:
        same = (s.id for s in self.signals if s.carry_on and s.status == "open" and s.digest == digest)
        return next(same, None)

    def tell(self, kind: str, *, run_id: str = RUN_ID, **data: Json) -> None:
        """A line that a store would have written for the engine."""
        self.events.append(Event(kind, data, run_id=run_id, seq=len(self.events) + 1))

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
    if faults := _errors(definition):
        return _refused(MemoryJournal(), faults)
    return stage(definition, script, packs, limits).play()


def stage(definition: dict[str, Json], script: Script, packs: dict[str, tuple[Skill, ...]], limits: Limits) -> "Stage":
    """Everything one run needs, before it begins."""
    journal, model, clock = MemoryJournal(), ScriptedModel(script.model), VirtualClock()
    agents = {str(definition.get("id", "")): definition, **script.agents}
    services = Services(
        catalogue=SkillRegistry(),
        packs=packs,
        journal=journal,
        model=lambda _run: model,
        limits=limits,
        sandbox=lambda _run: WhenNeeded(),
        extra_tools=[_stub(name, spec) for name, spec in script.tools.items()],
        check_definition=_errors,
        targets=lambda _run: [_target(agent_id, body) for agent_id, body in agents.items()],
        now_ms=clock.now_ms,
    )
    record = _record(RUN_ID, "root", definition, input=script.input, state=dict(script.start_state))
    record.mode, record.permissions = script.mode, script.permissions
    return Stage(record, services, journal, Conductor(journal, clock, list(script.answers)))


@dataclass
class Stage:
    """A run about to begin, and what stands around it; a part can be replaced before it plays."""

    record: RunRecord
    services: Services
    journal: MemoryJournal
    conductor: "Conductor"

    def play(self) -> dict[str, Json]:
        """Carries the run as far as it goes; returns the report of `graph run`."""
        self.journal.tell("run.started", attempt=1, depth=0)
        session = loop.open_session(self.record, self.services)
        assert session is not None
        refused = self.conductor.carry_on(session)
        return _report(session, self.journal, refused)


class WhenNeeded:
    """The sandbox of this machine, looked for when a hook is a command: most scripts never do."""

    def execute(self, argv: list[str], **how: Any) -> Execution:
        from workers.sandbox.process import find_sandbox

        return find_sandbox().execute(argv, **how)


class VirtualClock:
    """A clock that jumps over what a run would sleep."""

    def __init__(self) -> None:
        self._ahead = 0

    def now_ms(self) -> int:
        return wall_ms() + self._ahead

    def jump(self, milliseconds: int) -> None:
        self._ahead += max(0, milliseconds)


class Conductor:
    """Does what clock, desk and queue do for a run on workers: children, timers and answers, one after the other."""

    def __init__(self, journal: MemoryJournal, clock: VirtualClock, answers: list[Json]) -> None:
        self._journal = journal
        self._clock = clock
        self._answers = answers

    def carry_on(self, session: Session) -> str | None:
        """Drives a run until nothing here can make it go on; returns the code of a refused answer."""
        loop.drive(session)
        while session.status in ("needs_input", "waiting"):
            park = session.parked
            assert park is not None
            by: str | None = None
            if park.waiting_on == "children":
                by = self._children(session)
            elif park.waiting_on in ("signals", "gate"):
                by, refused = self._answer(session)
                if refused is not None:
                    return refused
            if by is None and park.due_in_ms is not None and park.waiting_on != "children":
                self._clock.jump(park.due_in_ms)
                by = "backoff" if park.waiting_on == "backoff" else "timer"
            if by is None:
                return None
            session.record.resumed_by = by
            self._journal.tell("run.resumed", by=by)
            loop.drive(session)
        return None

    def _children(self, session: Session) -> str:
        """Runs the open children in order, depth first; stops at the end of the fan-out's own time."""
        park = session.parked
        until = None if park is None or park.due_in_ms is None else self._clock.now_ms() + park.due_in_ms
        for child in session.children:
            if child.status in RUN_ENDED:
                continue
            if until is not None and self._clock.now_ms() >= until:
                return "timer"
            self._child(session, child)
            if until is not None and self._clock.now_ms() >= until:
                child.status, child.result = "running", None  # it came too late
                return "timer"
        return "children"

    def _child(self, parent: Session, child: ChildRecord) -> None:
        record = _record(
            child.id, child.kind, child.definition or parent.record.definition, input=child.input, state=child.state
        )
        record.depth, record.parent_id, record.position = parent.record.depth + 1, parent.record.id, child.position
        record.mode, record.permissions = parent.record.mode, parent.record.permissions
        mine = (dict(parent.agent.permissions), parent.record.permissions, parent.record.mode or parent.agent.mode)
        record.ancestors = [mine, *parent.record.ancestors]
        record.shared = parent.shared_budgets()
        if child.kind == "item":
            record.definition = parent.agent.to_json()
            record.node_id, record.item, record.index = child.node_id, child.item, child.position
        self._journal.tell("run.started", run_id=child.id, attempt=1, depth=record.depth, parentRunId=parent.record.id)
        session = loop.open_session(record, parent.services)
        if session is None:
            child.status, child.result = "failed", {"output": None, "error": {"code": "agent_invalid", "message": ""}}
            return
        self.carry_on(session)
        child.status, child.result = session.status, session.brought

    def _answer(self, session: Session) -> tuple[str | None, str | None]:
        """Gives the next answer to the next open signal: (what woke the run, code of a refusal)."""
        signal = next(
            (s for s in self._journal.signals if s.status == "open" and s.id in session.signals and not s.carry_on),
            None,
        )
        if signal is None or not self._answers:
            return None, None
        payload = self._answers.pop(0)
        if payload is not None and not _fits(signal.schema, payload):
            return None, "resume_validation_failed"
        _answer(signal, payload)
        self._journal.tell(
            "signal.answered", signalId=signal.id, payload=payload, rejected=signal.rejected, by="script"
        )
        return "answer", None


def _record(run_id: str, kind: str, definition: dict[str, Json], *, input: Json, state: dict[str, Json]) -> RunRecord:  # noqa: A002
    agent_id = str(definition.get("id", ""))
    return RunRecord(
        id=run_id,
        fence=1,
        project_id=None,
        kind=kind,
        depth=0,
        agent_id=agent_id,
        agent_name=str(definition.get("name", agent_id)),
        definition=definition,
        input=input,
        state=state,
    )


def _target(agent_id: str, body: dict[str, Json]) -> Target:
    return Target(agent_id, str(body.get("name", agent_id)), digest=digest(body), definition=body)


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
