"""Workers whose rules of queues differ from those of whoever looks are named."""

from typing import Any

import pytest

from orchestrator.agreement import disagreement
from orchestrator.settings import Settings
from orchestrator.store import workers
from orchestrator.store.database import get_database
from registry.ids import new_id
from registry.queues import QueueRule
from workers import probes

RULES = (QueueRule(queue="code", needs=("code.execute",)),)


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(f"{request.param}_url"))


def worker(settings: Settings, host: str, routing: str | None, *, stopped: bool = False) -> None:
    """A worker that lives, as its row has it."""
    about: dict[str, Any] = {"id": new_id(), "host": host, "pid": 7, "slots": 8, "routing": routing}
    about["queues"] = ["default", "code"]

    def register(connection: Any) -> None:
        workers.register(connection, about)
        if stopped:
            workers.leave(connection, about["id"])

    get_database(settings).write(register)


def test_those_that_agree_are_not_mentioned_and_those_that_do_not_are_named(store_settings: Settings) -> None:
    ruled = store_settings.model_copy(update={"queues": RULES})
    worker(ruled, "b", ruled.routing)
    worker(ruled, "gone", store_settings.routing, stopped=True)
    assert disagreement(ruled) is None
    assert [one.verdict for one in probes.queues(ruled)] == ["ok"]

    worker(ruled, "c", store_settings.routing)
    worker(ruled, "d", None)

    words = "2 of 3 workers go by other rules of queues than this process: c pid 7, d pid 7"
    assert disagreement(ruled) == words
    said = probes.queues(ruled)[1]
    assert (said.verdict, said.words) == ("broken", words)
    assert "OFFICINA_QUEUES" in said.remedy


def test_strict_priority_on_one_side_only_is_a_difference(store_settings: Settings) -> None:
    worker(store_settings, "b", store_settings.routing)
    strict = store_settings.model_copy(update={"strict_priority": True})
    assert disagreement(strict) == "1 of 1 workers goes by other rules of queues than this process: b pid 7"
