"""The outside of a case that many processes share: model turns, stub tools and a clock, kept in a folder.

Whatever a process takes from here it takes for good: a turn is the turn of one (run, call) however often that is asked
again, so a worker that dies neither loses a turn nor takes two.
"""

import fcntl
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from orchestrator.records import RunRecord, wall_ms
from orchestrator.store import loading
from registry.packs import PACKS
from registry.skills.context import SkillContext
from registry.skills.skill import Skill
from workers.engine.services import Services
from workers.inprocess.script import read_script
from workers.inprocess.stage import stage
from workers.models.model import Reply, Request
from workers.models.scripted import ScriptedModel


class Outside:
    """What one case finds around it, in any process."""

    def __init__(self, folder: Path, case: dict[str, Any]) -> None:
        self.folder = folder
        self.case = case
        self.script = case["script"]
        folder.mkdir(parents=True, exist_ok=True)

    def surround(self, services: Services) -> None:
        """Puts a worker's services where the case wants them; everything else stays as it is in a worker."""
        staged = stage(self.case["definition"], read_script(self.script), PACKS, services.limits).services
        services.model = lambda run: _Turns(self, run)
        services.extra_tools = [self._logged(tool) for tool in staged.extra_tools]
        services.check_definition = staged.check_definition
        services.check = lambda run: staged.check_definition(run.definition, run)
        services.now_ms = self.now_ms

    def now_ms(self) -> int:
        """A clock that can be set forward."""
        return wall_ms() + int(self._read("ahead") or 0)

    def jump(self, milliseconds: int) -> None:
        self._write("ahead", int(self._read("ahead") or 0) + milliseconds)

    @property
    def effects(self) -> list[list[str]]:
        """Every execution of a stub tool that got to its end: [call id, tool]."""
        try:
            return [json.loads(line) for line in (self.folder / "effects").read_text().splitlines()]
        except FileNotFoundError:
            return []

    def turn(self, key: str) -> int:
        """The place of a model call among the turns: the next one for a call that is new."""
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            taken: dict[str, int] = self._read("turns") or {}
            if key not in taken:
                taken[key] = len(taken)
                self._write("turns", taken)
            return taken[key]

    def _logged(self, tool: Skill) -> Skill:
        run = tool.run

        def logged(arguments: Any, context: SkillContext) -> Any:
            try:
                return run(arguments, context)
            finally:
                line = json.dumps([context.caller.call_id, tool.name]) + "\n"
                with (self.folder / "effects").open("a") as log:
                    log.write(line)

        return replace(tool, run=logged)

    def _read(self, name: str) -> Any:
        try:
            return json.loads((self.folder / name).read_text())
        except FileNotFoundError:
            return None

    def _write(self, name: str, value: Any) -> None:
        new = self.folder / f"{name}.new"
        new.write_text(json.dumps(value))
        new.replace(self.folder / name)


class _Turns(ScriptedModel):
    """The model of one run."""

    def __init__(self, outside: Outside, run: RunRecord) -> None:
        super().__init__([])
        self._outside, self._run = outside, run

    def generate(self, request: Request) -> Reply:
        place = self._outside.turn(f"{self._run.id}:{request.situation.turn}")
        return ScriptedModel(self._outside.script.get("model", [])[place : place + 1]).generate(request)


def begin_as_scripted(outside: Outside) -> Callable[..., RunRecord]:
    """Loading with the case's `input` and `startState` at a root run's first claim; gives the original."""
    original = loading.load

    def load(*args: Any) -> RunRecord:
        record = original(*args)
        if record.kind == "root" and record.checkpoint == 0:
            record.input = outside.script.get("input")
            record.state = dict(outside.script.get("startState", {}))
        return record

    loading.load = load
    return original
