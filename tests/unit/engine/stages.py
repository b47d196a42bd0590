"""Runs of the engine in this process, with everything they did at hand."""

import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import pytest

from orchestrator.limits import Limits
from orchestrator.records import RunRecord, TaskFacts
from orchestrator.store import loading
from registry.graph.validation import validate
from registry.packs import PACKS
from workers.engine import handlers
from workers.inprocess.script import read_script
from workers.inprocess.stage import Stage, stage
from workers.models.model import Reply, Request
from workers.models.scripted import ScriptedModel

TASK = TaskFacts("t1", "draft", "Draft", "writer", "Write it.", None, [], [], "standard", 1)


class Recorder(ScriptedModel):
    """Scripted turns that remember what they were asked."""

    def __init__(self, turns: list[Any]) -> None:
        super().__init__(turns)
        self.requests: list[Request] = []

    def generate(self, request: Request) -> Reply:
        self.requests.append(request)
        return super().generate(request)


class Played:
    """A run that has been played."""

    def __init__(self, report: dict[str, Any], requests: list[Request]) -> None:
        self.report, self.requests = report, requests
        self.status, self.code, self.output = report["status"], report["code"], report["output"]

    def events(self, kind: str) -> list[dict[str, Any]]:
        return [event["data"] for event in self.report["events"] if event["kind"] == kind]

    @property
    def said(self) -> list[str]:
        """What the tools brought the model, in order."""
        return [m["content"] for m in self.report["messages"] if m["role"] == "tool"]


def play(
    definition: dict[str, Any],
    turns: Sequence[Any],
    *,
    task: TaskFacts | None = None,
    prepare: Callable[[Stage], None] = lambda _stage: None,
    limits: Limits | None = None,
    **script: Any,
) -> Played:
    """Plays an agent against scripted turns; a text is a turn that says it, a list one that makes these calls."""
    assert not [finding for finding in validate(definition) if finding.severity == "error"]
    ready = stage(definition, read_script(script), PACKS, limits or Limits())
    model = Recorder([turn(each) for each in turns])
    ready.services.model = lambda _run: model
    prepare(ready)
    with given(task):
        return Played(ready.play(), model.requests)


@contextmanager
def given(task: TaskFacts | None) -> Iterator[None]:
    """Root runs are loaded as the runs of a task."""
    load = loading.load

    def with_task(*args: Any) -> RunRecord:
        record = load(*args)
        record.task = task if record.kind == "root" else None
        return record

    with patch.object(loading, "load", with_task):
        yield


def turn(said: Any) -> dict[str, Any]:
    if isinstance(said, str):
        return {"text": said}
    return {"calls": said} if isinstance(said, list) else dict(said)


def call(name: str, /, **args: Any) -> dict[str, Any]:
    return {"name": name, "args": args}


@contextmanager
def installed(folder: Path, monkeypatch: pytest.MonkeyPatch, source: str, *names: str) -> Iterator[ModuleType]:
    """A package that is installed for as long as this lasts, and gives its functions as hooks."""
    (folder / "house_hooks.py").write_text(source)
    about = folder / "house_hooks-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: house-hooks\nVersion: 1.0\n")
    lines = [f"{name} = house_hooks:{name}" for name in names]
    (about / "entry_points.txt").write_text("\n".join([f"[{handlers.GROUP}]", *lines, ""]))
    monkeypatch.syspath_prepend(folder)
    handlers._function.cache_clear()
    yield importlib.import_module("house_hooks")
    handlers._function.cache_clear()
    del sys.modules["house_hooks"]
