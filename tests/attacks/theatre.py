"""One run with the shipped skills, in memory, stopped and looked at wherever an attacker would step in.

Skills that act on the world keep their names, inputs, operations and effects; only their last step, which would send
something, writes it down instead.
"""

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from sqlalchemy import select

from orchestrator.notify import Silence
from orchestrator.ports.studio import StoredStudio
from orchestrator.settings import Limits, Settings
from orchestrator.signals import answer_in
from orchestrator.store import events, invariants, repairs
from orchestrator.store import tables as t
from orchestrator.store.repairs import How
from orchestrator.store.signals import Answered
from registry.packs import PACKS
from registry.skills import catalogue
from registry.skills.context import Caller, SkillContext
from registry.skills.registry import SkillRegistry
from registry.skills.skill import Skill
from tests.unit.engine.stages import Recorder, turn
from workers import actions
from workers.inprocess.conductor import Conductor
from workers.inprocess.script import read_script
from workers.inprocess.stage import RUN_ID, stage

YES, NO = {"approved": True}, {"approved": False}
PROJECT = f"project-of-{RUN_ID}"


class Killed(BaseException):
    """What stands for the death of a worker: nothing catches it on its way out."""


class Theatre:
    """An agent that plays scripted turns, and everybody who looks on."""

    def __init__(
        self,
        definition: dict[str, Any],
        turns: Sequence[Any],
        *,
        skills: Sequence[Skill] = (),
        deadly: Sequence[str] = (),
        limits: Limits | None = None,
        **script: Any,
    ) -> None:
        #: What was really done: [skill, input].
        self.done: list[tuple[str, Any]] = []
        #: For whom it was done.
        self.callers: list[Caller] = []
        #: Dies in the middle of these.
        self.deadly = set(deadly)
        #: What a skill that only looks gives back.
        self.gives: dict[str, Any] = {}
        self._stage = stage(definition, read_script(script), PACKS, limits or Limits())
        self.services, self.database = self._stage.services, self._stage.database
        self.model = Recorder([turn(each) for each in turns])
        self.services.model = lambda _run: self.model
        self.stock([*catalogue.catalogue(), *skills])
        self._stage.begin()
        self.die() if deadly else self.go()

    def stock(self, skills: Sequence[Skill]) -> None:
        """Changes what skills there are, as a new release would."""
        self.services.catalogue = SkillRegistry([self._noted(one) for one in skills])
        self.services.studio = StoredStudio(self.database, self.services.catalogue)

    def go(self) -> None:
        """Carries the run as far as it goes."""
        Conductor(self.database, self.services, RUN_ID, []).carry_on()

    def die(self) -> None:
        """Carries the run until its worker dies, and lets its lease run out."""
        try:
            self.go()
        except Killed:
            self.set(t.runs, RUN_ID, status="queued", worker_id=None)
            return
        raise AssertionError("nobody died")

    def answer(self, payload: Any, which: int = 0, *, go: bool = True) -> Answered:
        done = answer_in(self.database, Silence(), self.open[which].id, payload=payload, by="me")
        if go:
            self.go()
        return done

    def repair(self, how: How, result: Any = None) -> repairs.Repaired:
        """What a person says of the one call that may have happened."""
        return self.database.write(lambda c: repairs.repair(c, RUN_ID, None, how, result, by="me", reason=None))

    def act(self) -> int:
        """Runs answered actions that no run waits for, as a worker does."""
        settings = Settings(_env_file=None)  # type: ignore[call-arg]
        runtime: Any = SimpleNamespace(
            database=self.database,
            services=self.services,
            settings=settings,
            stopping=False,
            queues=None,
            acting=_nothing,
        )
        return actions.perform(runtime, PROJECT)

    def set(self, table: Any, key: str, **columns: Any) -> None:
        """Changes a row behind everybody's back."""
        statement = table.update().where(table.c.id == key).values(**columns)
        self.database.write(lambda c: c.execute(statement))

    @property
    def status(self) -> str:
        return str(self._rows(select(t.runs).where(t.runs.c.id == RUN_ID))[0].status)

    @property
    def signals(self) -> list[Any]:
        return self._rows(select(t.signals).order_by(t.signals.c.created_at, t.signals.c.id))

    @property
    def open(self) -> list[Any]:
        return [one for one in self.signals if one.status == "open"]

    @property
    def results(self) -> list[tuple[str, str, str | None]]:
        """Name, outcome and code of every result in the trace."""
        return [(d["name"], d["outcome"], d.get("code")) for d in self.told("tool.result")]

    @property
    def heard(self) -> list[str]:
        """What tools brought the model, in order."""
        query = select(t.messages).where(t.messages.c.run_id == RUN_ID).order_by(t.messages.c.number)
        return [row.body["content"] for row in self._rows(query) if row.body["role"] == "tool"]

    def told(self, kind: str) -> list[dict[str, Any]]:
        with self.database.read() as connection:
            return [line.data for line in events.after(connection, PROJECT, 0) if line.kind == kind]

    def close(self) -> None:
        """What holds after every attack."""
        with self.database.read() as connection:
            found = [row for row in invariants.broken(connection) if row.rule not in PLANLESS]
        self.database.dispose()
        assert not found, "\n".join(map(str, found))

    def _noted(self, one: Skill) -> Skill:
        world = one.world_acting
        if not world and one.name not in ("web.fetch", "web.search", "files.write"):
            return one

        def act(checked: Any, context: SkillContext) -> Any:
            self.callers.append(context.caller)
            if one.name in self.deadly:
                self.done.append((one.name, one.input.canonical(checked)))
                raise Killed
            if world or one.effect_of(checked) == "once":
                self.done.append((one.name, one.input.canonical(checked)))
            return self.gives.get(one.name, {"did": one.name})

        return replace(one, run=act, output=None)

    def _rows(self, query: Any) -> list[Any]:
        with self.database.read() as connection:
            return list(connection.execute(query).all())


#: Rules about projects with a plan: here the project is one run and goes on for ever.
PLANLESS = frozenset({"project_idle"})


class _nothing:  # noqa: N801 - stands for a context manager's function
    def __init__(self, _signal_id: str) -> None: ...

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...
