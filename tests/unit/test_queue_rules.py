"""Rules of queues: the first that fits wins, all of a rule has to fit, one of a list is enough."""

import json

import pytest
from pydantic import ValidationError

from orchestrator import queue
from orchestrator.records import Wake
from orchestrator.settings import Settings
from registry.agents import AgentDefinition
from registry.plans import PlannedTask
from registry.queues import QueueRule, agreed, choose, names
from registry.teams import for_task

CODE = QueueRule(queue="code", needs=("code.execute", "shell"))
WEB = QueueRule(queue="web", needs=("web.*",))
DEEP = QueueRule(queue="deep", tiers=("deep",))
GPU = QueueRule(queue="gpu", labels=("gpu",), tiers=("deep",))


@pytest.mark.parametrize(
    ("definition", "goes_to"),
    [
        ({}, "default"),
        ({"skills": ["files.read"]}, "default"),
        ({"skills": ["files.read", "code.execute"]}, "code"),
        ({"packs": {"shell": True}}, "code"),
        ({"packs": {"shell": {"spec": {}}}}, "code"),
        ({"packs": {"shell": False}}, "default"),
        ({"skills": ["code.execute"], "disallowedTools": ["code.execute"]}, "default"),
        ({"skills": ["web.search"]}, "web"),
        ({"skills": ["web.search"], "tier": "deep"}, "web"),
        ({"tier": "deep"}, "deep"),
        ({"labels": ["gpu"]}, "default"),
    ],
)
def test_a_run_goes_to_the_queue_of_the_first_rule_that_fits_it(definition: dict[str, object], goes_to: str) -> None:
    assert choose([CODE, WEB, DEEP, GPU], definition) == goes_to


def test_all_that_a_rule_gives_has_to_fit() -> None:
    assert choose([GPU], {"labels": ["gpu", "large"], "tier": "deep"}) == "gpu"
    assert choose([GPU], {"labels": ["gpu"], "tier": "fast"}) == "default"


def test_a_task_adds_its_labels_to_those_of_its_agent() -> None:
    agent = AgentDefinition(id="a", labels=["eu"])
    task = PlannedTask(key="t", role="writer", instruction="Do it.", labels=["gpu", "eu"])
    assert for_task(agent, task, registered=()).labels == ["eu", "gpu"]
    assert (
        "labels"
        not in for_task(
            AgentDefinition(id="a"), PlannedTask(key="t", role="w", instruction="x"), registered=()
        ).to_json()
    )


def test_the_queues_there_are_begin_with_the_default() -> None:
    assert names([DEEP, CODE, DEEP]) == ["default", "deep", "code"]


def test_rules_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFFICINA_QUEUES", json.dumps([{"queue": "code", "needs": ["shell"]}]))
    assert Settings(_env_file=None).queues == (QueueRule(queue="code", needs=("shell",)),)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "rule", [{"queue": "Code"}, {"queue": "a b"}, {"queue": "x", "need": ["shell"]}, {"tiers": ["fast"]}]
)
def test_a_rule_that_nobody_could_mean_is_refused(rule: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        QueueRule.model_validate(rule)


@pytest.mark.parametrize(("broker", "steps"), [("redis://q/0", [0, 1, 2]), ("amqp://q/", [2, 1, 0])])
def test_urgent_work_overtakes_in_the_broker_only_where_that_is_wanted(broker: str, steps: list[int]) -> None:
    wakes = [Wake("r", "p", None, "a", priority, "code") for priority in (9, 5, 0)]
    fair = Settings(broker_url=broker, _env_file=None)  # type: ignore[call-arg]
    strict = Settings(broker_url=broker, strict_priority=True, _env_file=None)  # type: ignore[call-arg]
    assert [queue.options(fair, wake) for wake in wakes] == [{"queue": "officina.code"}] * 3
    assert [queue.options(strict, wake)["priority"] for wake in wakes] == steps


def test_rules_that_differ_in_anything_are_not_agreed() -> None:
    ways = [
        agreed([], strict_priority=False),
        agreed([], strict_priority=True),
        agreed([CODE, DEEP], strict_priority=False),
        agreed([DEEP, CODE], strict_priority=False),
        agreed([CODE], strict_priority=False),
        agreed([CODE.model_copy(update={"labels": ("x",)})], strict_priority=False),
    ]
    assert len({*ways}) == len(ways)
    assert agreed([CODE, DEEP], strict_priority=False) == ways[2]
