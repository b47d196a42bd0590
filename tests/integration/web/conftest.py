"""Calls of the web skills against a trap site."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from orchestrator.settings import SearchProvider
from registry.skills.context import Authority, Caller, SkillContext
from registry.skills.http import SKILLS as HTTP
from registry.skills.registry import SkillRegistry, SkillResult
from registry.skills.web import SKILLS as WEB
from tests.traps import TrapSite, serving
from workers.net.guard import Guard
from workers.web.reader import Reader
from workers.web.search import Searcher
from workers.web.wiring import GuardedWeb

Call = Callable[..., SkillResult]
SKILLS = SkillRegistry([*WEB, *HTTP])


@pytest.fixture
def site() -> Iterator[TrapSite]:
    with serving() as found:
        yield found


@pytest.fixture
def other() -> Iterator[TrapSite]:
    with serving() as found:
        yield found


@pytest.fixture
def guard(site: TrapSite, other: TrapSite) -> Guard:
    """Names lead to the site of that port, so that a test has as many hosts as it likes."""
    names = ["127.0.0.1", *(f"h{number}.example.com" for number in range(30))]
    places = [(name, one.port) for name in names for one in (site, other)]
    return Guard(allow=places, resolver=lambda _: ["127.0.0.1"])


@pytest.fixture
def call(guard: Guard) -> Call:
    """Calls a skill as a run does; `person=True` as a person, `providers` for searches."""
    kept: dict[tuple[SearchProvider, ...], GuardedWeb] = {}

    def invoke(name: str, person: bool = False, providers: tuple[SearchProvider, ...] = (), **more: Any) -> SkillResult:
        given = more.pop("given")
        if providers not in kept:
            kept[providers] = GuardedWeb(Reader(guard), Searcher(guard, providers))
        caller = Caller("person" if person else "run", task_id=None if person else more.pop("task", "task"))
        context = SkillContext(caller, net=guard, web=kept[providers], **more)
        authority = Authority(None)  # world calls are approved here; that they ask is the gate's own test
        return SKILLS.invoke(name, given, context, authority)

    return invoke


def output(result: SkillResult) -> dict[str, Any]:
    assert result.ok, f"{result.code}: {result.error}"
    found: dict[str, Any] = result.output
    return found
