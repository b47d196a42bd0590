"""Rates of an owner and brakes of a task: shared through Redis, counted per process where there is none."""

from pathlib import Path

import pytest

from orchestrator.ports.meter import CountingMeter
from orchestrator.settings import Limits, Rates, Settings
from registry.errors import SkillError
from registry.skills.context import Caller, SkillContext
from registry.skills.contract import SchemaContract
from registry.skills.registry import SkillRegistry
from registry.skills.skill import Skill

SMALL = {"rates": Rates(search="3/minute"), "limits": Limits(task_requests=5, task_hosts=2)}


@pytest.fixture(params=["redis", "process", "a Redis that is gone"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    url = ""
    if request.param == "redis":
        request.getfixturevalue("redis")
        url = request.getfixturevalue("redis_url")
    elif request.param != "process":
        url = "redis://127.0.0.1:1/0"
    return Settings(home=tmp_path / "home", broker_url=url, _env_file=None, **SMALL)  # type: ignore[call-arg, arg-type]


def test_an_owner_has_so_many_calls_in_a_window(settings: Settings) -> None:
    meter = CountingMeter(settings)
    for _ in range(3):
        meter.admit("search", "ann")
    with pytest.raises(SkillError) as refused:
        meter.admit("search", "ann")
    assert (refused.value.code, refused.value.retryable) == ("rate_limited", True)
    (wait,) = refused.value.details
    assert wait.path == "retryAfter" and 0 < int(wait.message) <= 61
    meter.admit("search", "ben")
    meter.admit("fetch", "ann")


def test_a_task_has_so_many_hosts(settings: Settings) -> None:
    meter = CountingMeter(settings)
    for host in ("a.example", "b.example", "a.example"):
        meter.outbound("task", host)
    with pytest.raises(SkillError, match="2 hosts"):
        meter.outbound("task", "c.example")
    meter.outbound("task", "b.example")
    meter.outbound("another task", "c.example")


def test_a_task_has_so_many_requests(settings: Settings) -> None:
    meter = CountingMeter(settings)
    for _ in range(5):
        meter.outbound("task", "a.example")
    with pytest.raises(SkillError, match="5 requests") as refused:
        meter.outbound("task", "a.example")
    assert (refused.value.code, refused.value.retryable) == ("rate_limited", False)


def test_workers_share_what_redis_counts(redis: object, redis_url: str, tmp_path: Path) -> None:
    shared = Settings(home=tmp_path, broker_url=redis_url, _env_file=None, **SMALL)  # type: ignore[call-arg, arg-type]
    for _ in range(3):
        CountingMeter(shared).admit("search", "ann")
        CountingMeter(shared).outbound("task", "a.example")
    with pytest.raises(SkillError):
        CountingMeter(shared).admit("search", "ann")
    CountingMeter(shared).outbound("task", "b.example")
    with pytest.raises(SkillError):
        CountingMeter(shared).outbound("task", "c.example")


def test_a_call_beyond_the_rate_does_not_run(tmp_path: Path) -> None:
    meter = CountingMeter(Settings(home=tmp_path, _env_file=None, **SMALL))  # type: ignore[call-arg, arg-type]
    ran: list[int] = []
    one = Skill(
        "web.search", "Search", "Searches.", SchemaContract({}), lambda _given, _context: ran.append(1), rate="search"
    )
    codes = []
    for _ in range(5):
        context = SkillContext(Caller("run", owner_id="ann"), meter=meter)
        codes.append(SkillRegistry([one]).invoke("web.search", {}, context).code)
    assert codes == [None, None, None, "rate_limited", "rate_limited"]
    assert len(ran) == 3


@pytest.mark.parametrize("text", ["", "60", "0/minute", "60/fortnight", "-1/minute", "a/minute", "60/minute; 5/second"])
def test_a_rate_that_cannot_be_read_is_named_at_start(text: str) -> None:
    with pytest.raises(ValueError, match="60/minute"):
        Rates(search=text)
