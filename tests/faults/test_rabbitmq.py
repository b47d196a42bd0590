"""RabbitMQ as the broker: row 36b, and queues by rule, their lengths and priorities, which are as on Redis."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kombu.exceptions import OperationalError

from orchestrator.queue import celery_name, send, sender
from orchestrator.records import Wake
from orchestrator.settings import Settings
from orchestrator.signals import answer
from orchestrator.stack.environment import child_environment
from tests import services
from tests.certificates import issue
from tests.faults.company import Company
from tests.faults.servers import Rabbit
from tests.faults.table import Story
from tests.faults.test_broker import everything, stands_everywhere
from tests.integration.test_queues import CODER, RULES, SAYS, carried, queue_probe
from tests.projects import task
from tests.workers import WorkerProcess
from workers.probes import broker

pytestmark = pytest.mark.timeout(400)  # a RabbitMQ takes its time to start


@pytest.fixture(scope="module")
def rabbit() -> Iterator[Rabbit]:
    try:
        made = Rabbit()
    except services.ServiceMissing as missing:  # optional, in CI too
        pytest.skip(str(missing))
    yield made
    made.close()


@pytest.fixture
def on_rabbit(
    rabbit: Rabbit, redis_url: str, redis, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Company]:
    """A company that talks over RabbitMQ, with Redis for chords and the desk, and with rules for its queues."""
    monkeypatch.setenv("OFFICINA_QUEUES", json.dumps(RULES))
    settings = Settings(
        home=tmp_path / "home", database_url=database_url, broker_url=rabbit.url, redis_url=redis_url, _env_file=None
    )  # type: ignore[call-arg]
    made = Company(settings, tmp_path, monkeypatch)
    yield made
    made.dismiss()
    _empty(settings)


def _empty(settings: Settings) -> None:
    """What one test left in the queues is not the next one's."""
    with sender(settings).connection_for_write() as connection:
        for queue in ("default", "code", "deep", "gpu"):
            channel: Any = connection.channel()
            if length(settings, queue) is not None:
                channel.queue_purge(celery_name(queue))


def length(settings: Settings, queue: str) -> int | None:
    """Messages that wait in a queue of the broker; None: it has no such queue."""
    with sender(settings).connection_for_read() as connection:
        channel: Any = connection.channel()
        try:
            return int(channel.queue_declare(celery_name(queue), passive=True).message_count)
        except connection.channel_errors:
            return None


def worker(company: Company, *queues: str, **changed: str) -> WorkerProcess:
    """A worker of some queues."""
    assert child_environment(company.settings)["OFFICINA_QUEUES"]
    made = WorkerProcess(
        company.settings,
        company.folder / f"{'-'.join(queues)}.log",
        {"LIMITS__CLOCK_TICK_S": "0.2", **changed},
        queues=queues,
    )
    company.workers.append(made)
    return made


def test_a_killed_rabbitmq_loses_nothing(on_rabbit: Company, rabbit: Rabbit, story: Story) -> None:
    story.tells("36b", "kill -9 of RabbitMQ in the middle of everything", "all goes on, workers reconnect")
    company = on_rabbit
    worker = company.hire(WORKER_SLOTS="3").ready()
    project = everything(company)
    company.waits_for(lambda: stands_everywhere(project), 30)

    rabbit.kill()
    rabbit.start()

    answer(company.settings, project.open_signal().id, option="Do it", by="the test")
    with story.recovery():
        company.waits_for(lambda: project.status == "completed", 25)
    assert worker.process.running
    assert {r["outcome"] for r in project.kinds("tool.result")} == {"ok"}
    company.keeps_its_promises()


@pytest.mark.long
def test_each_queue_is_carried_by_its_own_workers(on_rabbit: Company, tmp_path: Path) -> None:
    company = on_rabbit
    plain, code = worker(company, "default", "gpu"), worker(company, "code", "deep")
    plain.ready(180), code.ready(180)
    plan = [
        task("write"),
        task("compute", agent="coder", after=["write"]),
        task("think", tier="deep"),
        task("render", labels=["gpu"], after=["compute"]),
    ]
    script = {"delayMs": 300, "tasks": dict.fromkeys(("write", "compute", "think", "render"), SAYS)}
    project = company.submit(plan, script, agents={"coder": CODER})

    seen = carried(company.settings, project, 90)

    assert project.status == "completed"
    assert seen == {("default", plain.pid), ("gpu", plain.pid), ("code", code.pid), ("deep", code.pid)}


@pytest.mark.long
def test_what_nobody_serves_waits_in_its_queue_and_goes_on_with_the_first_worker(on_rabbit: Company) -> None:
    company = on_rabbit
    worker(company, "default").ready(180)
    plan = [task("compute", agent="coder"), task("again", agent="coder"), task("write")]
    script = {"tasks": dict.fromkeys(("compute", "again", "write"), SAYS)}
    project = company.submit(plan, script, agents={"coder": CODER})

    assert project.open_signal().title == "No worker serves the queue code, and work of this project waits there"
    company.waits_for(lambda: project.tasks["write"].status == "completed")
    assert queue_probe(company.settings)["code"] == "broken: no worker serves it; 2 runs wait there"
    assert length(company.settings, "code") == 2, "one message for each run, and no more while nobody takes them"

    worker(company, "code")

    company.waits_for(lambda: project.status == "completed", 180)
    assert length(company.settings, "code") == 0


@pytest.mark.long
@pytest.mark.parametrize("queue", [None, "code"])
def test_with_strict_priority_the_broker_gives_urgent_work_first(on_rabbit: Company, queue: str | None) -> None:
    settings = on_rabbit.settings.model_copy(update={"strict_priority": True})
    send(settings, [Wake(str(priority), "p", None, "a", priority, queue) for priority in (0, 5, 9, 4, 7)])

    with sender(settings).connection_for_read() as connection:
        channel: Any = connection.channel()
        found = [channel.basic_get(celery_name(queue), no_ack=True) for _ in range(5)]

    assert [json.loads(message.body)[0][0] for message in found] == ["9", "7", "5", "4", "0"]


@pytest.mark.long
def test_a_worker_declares_its_queues_as_a_sender_does(on_rabbit: Company) -> None:
    """RabbitMQ refuses a queue that somebody declares in another way than the first: whoever comes first, both work."""
    company = on_rabbit
    worker(company, "gpu", WORKER_POOL="prefork", WORKER_SLOTS="1").ready(180)

    project = company.submit([task("render", labels=["gpu"])], {"tasks": {"render": SAYS}})

    company.waits_for(lambda: project.status == "completed", 180)


@pytest.fixture
def deployed_rabbit(tmp_path: Path) -> Iterator[Rabbit]:
    """A server on `deploy/rabbitmq/rabbitmq.conf`, for `localhost`."""
    (folder := tmp_path / "certificates").mkdir()
    try:
        made = Rabbit(issue(folder, "localhost"))
    except services.ServiceMissing as missing:
        pytest.skip(str(missing))
    yield made
    made.close()


@pytest.mark.long
def test_a_project_runs_over_rabbitmq_as_deployed_and_only_with_the_server_that_is_named(
    deployed_rabbit: Rabbit, redis_url: str, redis, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, url = tmp_path / "home", deployed_rabbit.url

    def settings(broker_url: str) -> Settings:
        places = {"database_url": database_url, "broker_url": broker_url, "redis_url": redis_url}
        return Settings(home=home, _env_file=None, **places)  # type: ignore[call-arg, arg-type]

    def refused(broker_url: str) -> str:
        with pytest.raises(OperationalError) as refusal:
            broker(settings(broker_url))
        return str(refusal.value)

    assert broker(settings(url))[0].verdict == "ok"
    assert "certificate is not valid for '127.0.0.1'" in refused(url.replace("@localhost", "@127.0.0.1"))
    assert "CERTIFICATE_VERIFY_FAILED" in refused(url.partition("?")[0]), "nobody known signed it"
    company = Company(settings(url), tmp_path, monkeypatch)
    try:
        company.hire(WORKER_SLOTS="2").ready(180)
        project = company.submit([task("a"), task("b", after=["a"])], {"tasks": dict.fromkeys("ab", SAYS)})
        company.waits_for(lambda: project.status == "completed", 120)
    finally:
        company.dismiss()
