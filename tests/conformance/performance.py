"""One case performed on a database: its rows, the person who answers, time that passes, and the report at the end."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import select

from orchestrator.settings import Settings
from orchestrator.signals import answer
from orchestrator.states import RUN_ENDED
from orchestrator.store import loading, signals
from orchestrator.store import tables as t
from orchestrator.store.database import Database, get_database, now_ms
from orchestrator.store.house_tables import leases
from registry.errors import Refused
from tests.conformance.casebook import cases
from tests.conformance.outside import Outside
from tests.contract.store.world import Plan, World
from workers.engine import restore

ROOT = Path(__file__).parents[2]


@dataclass
class Death:
    """A process died at a point, and everybody knows."""

    point: str
    count: int


class Nursery:
    """Starts worker lives, one after the other."""

    def __init__(self, log: Path) -> None:
        self._log = log.open("w")
        command = [sys.executable, "-m", "tests.conformance.lives"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True, cwd=ROOT
        )

    def life(self, **order: Any) -> dict[str, Any]:
        """One life from birth to death; gives how it ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        watchdog = threading.Timer(60, self._process.kill)
        watchdog.start()
        try:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        finally:
            watchdog.cancel()
        assert line, f"no life came to an end within a minute; see {self._log.name}"
        return dict(json.loads(line))

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(10)
        self._log.close()


@dataclass
class Performance:
    """A case on rows. `carry` makes workers do what is to be done, until nothing is."""

    settings: Settings
    case_id: str
    folder: Path
    plan: Plan = field(init=False)
    outside: Outside = field(init=False)

    def __post_init__(self) -> None:
        case = cases("runtime")[self.case_id]
        self.outside = Outside(self.folder, case)
        definition, script = case["definition"], case["script"]
        agents = {str(definition.get("id", "agent")): definition, **script.get("agents", {})}
        about = {"mode": script.get("mode"), "permissions": script.get("permissions", {}), "workspace": "w"}
        self.plan = World(self.database).plan(agents=agents, **about)
        self._answers = list(script.get("answers", []))
        self.refused: str | None = None

    @property
    def database(self) -> Database:
        return get_database(self.settings)

    @property
    def root(self) -> Any:
        return self.plan.world.run(self.plan.run("a"))

    def play(self, carry: Callable[[], None]) -> dict[str, Any]:
        """Lets workers, a person and time do their parts until nothing goes on; gives the report."""
        carry()
        while self.root.status not in RUN_ENDED and (self._answer() or self._wait()):
            carry()
        return self.report()

    def _answer(self) -> bool:
        """Gives the next answer to the oldest open question."""
        query = select(t.signals).where(t.signals.c.run_id == self.root.id, t.signals.c.status == "open")
        asked = self.plan.world.all(query.order_by(t.signals.c.created_at, t.signals.c.id))
        if not asked or not self._answers:
            return False
        try:
            answer(self.settings, asked[0].id, payload=self._answers.pop(0), by="the script")
        except Refused as refused:
            self.refused = refused.code
            return False
        return True

    def _wait(self) -> bool:
        """Lets the time pass that the run waits for."""
        if self.refused or self.root.status != "waiting" or self.root.due_at is None:
            return False
        now = self.plan.world.all(select(now_ms()))[0][0]
        self.outside.jump(max(0, self.root.due_at - now) + 1)
        self.plan.world.set(t.runs, self.root.id, due_at=0)
        return True

    def report(self) -> dict[str, Any]:
        """What `officina graph run` would have printed, from the rows."""
        run = self.root
        with self.database.read() as connection:
            state, _ = restore.state(loading.load(connection, run.id, run.fence))
            raised = (
                select(t.signals).where(t.signals.c.run_id == run.id).order_by(t.signals.c.created_at, t.signals.c.id)
            )
            asked = [signals.record(row).to_json(run.id) for row in connection.execute(raised)]
        lines = [line for line in self.plan.trace if line.kind.partition(".")[0] not in ("task", "project", "team")]
        outputs = [line.data["output"] for line in lines if line.kind == "output" and line.run_id == run.id]
        return {
            "status": run.status,
            "code": self.refused or (run.error or {}).get("code"),
            "output": outputs[-1] if outputs and run.status == "completed" else None,
            "state": {key: value for key, value in state.items() if key != "messages"},
            "messages": state.get("messages", []),
            "steps": run.steps,
            "tokens": run.tokens,
            "events": [_event(line) for line in lines],
            "interrupts": asked,
        }

    @property
    def at_work(self) -> bool:
        """Whether there is anything for a worker to do before a person answers or time passes."""
        busy = select(t.runs.c.id).where(t.runs.c.status.in_(("queued", "running")))
        return bool(self.plan.world.all(busy.limit(1)))

    def bury(self) -> None:
        """What time does to the runs of a dead worker: their leases run out."""
        held = select(t.runs.c.id).where(t.runs.c.status == "running")
        for row in self.plan.world.all(held):
            self.plan.world.set(t.runs, row.id, due_at=0)
        for row in self.plan.world.all(select(leases.c.name)):
            self.plan.world.set(leases, row.name, until=0)


def _event(line: Any) -> dict[str, Any]:
    shown = {"kind": line.kind, "runId": line.run_id, "agentId": line.agent_id, "nodeId": line.node_id}
    return {key: value for key, value in shown.items() if value is not None} | {"data": line.data, "seq": line.seq}
