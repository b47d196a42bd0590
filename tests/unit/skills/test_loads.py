"""What a skill has to import first does not count against the time of its call."""

import importlib
import sys
from pathlib import Path

import pytest

from registry.base import Model
from registry.skills import catalogue
from registry.skills.context import Caller, SkillContext
from registry.skills.registry import SkillRegistry
from registry.skills.skill import skill


class Nothing(Model):
    pass


@skill("slow.start", title="Starts slowly", timeout_s=0.2, loads=("a_slow_library",))
def slow_start(given: Nothing, context: SkillContext) -> Nothing:
    """Needs a library that takes its time."""
    context.check()
    return Nothing()


def call() -> object:
    return SkillRegistry([slow_start]).invoke("slow.start", {}, SkillContext(Caller("run")))


def test_a_library_may_take_longer_to_load_than_the_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a_slow_library.py").write_text("import time\ntime.sleep(0.4)\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    assert call().ok


def test_a_library_that_is_not_installed_is_left_for_the_call_to_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "a_slow_library", None)
    assert call().ok


@pytest.mark.parametrize("one", [s for s in catalogue.build() if s.loads], ids=lambda one: one.name)
def test_every_library_of_the_catalogue_is_there(one) -> None:
    assert all(importlib.import_module(name) for name in one.loads)
