"""Rows 4, 10, 15, 17, 19, 27, 53: the broker loses, doubles and forges messages, stands still, is full, or is gone."""

import gc
import json
import pickle
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from celery import Celery, chord
from kombu.exceptions import OperationalError
from redis import RedisError

from orchestrator import queue
from orchestrator.settings import Settings
from orchestrator.signals import answer
from tests.faults.company import Company
from tests.faults.servers import FragileRedis
from tests.faults.skills import deed
from tests.faults.table import Story
from tests.integration.test_fanout import spawner, speaker
from tests.projects import Watched, task

SKILLS = ["proof.once", "proof.asked", "proof.again", "proof.look"]


@pytest.fixture
def fragile(short_folder: Path) -> Iterator[FragileRedis]:
    made = FragileRedis(short_folder / "fragile")
    yield made
    made.close()


@pytest.fixture
def on_fragile(
    fragile: FragileRedis, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Company]:
    """A company whose Redis may be broken."""
    settings = Settings(home=tmp_path / "home", database_url=database_url, broker_url=fragile.url, _env_file=None)  # type: ignore[call-arg]
    made = Company(settings, tmp_path, monkeypatch)
    yield made
    made.dismiss()


def everything(company: Company) -> Watched:
    """A project in which runs are queued, running, asleep, asking and waiting for children at the same time."""
    sleeper = {
        "id": "sleeper",
        "instructions": "Sleep.",
        "graph": {
            "nodes": {
                "s": {"type": "core:start"},
                "w": {"type": "control:wait", "delayMs": 2500},
                "t": {"type": "llm:generate", "tools": []},
                "e": {"type": "core:end"},
            },
            "edges": [{"from": a, "to": b} for a, b in ("sw", "wt", "te")],
        },
    }
    kids = [{"agentId": "kid", "input": f"n{n}"} for n in range(4)]
    turns = {
        "asks": [deed("proof.asked", "asked"), {"say": "asked"}],
        "works": [*(deed("proof.once", f"w{n}", ms=400) for n in range(5)), {"say": "worked"}],
        **{f"q{n}": [{"say": "late"}] for n in range(4)},
    }
    plan = [
        task("asks", skills=SKILLS, retries=0),
        task("works", skills=SKILLS, retries=0),
        task("sleeps", agent="sleeper", retries=0),
        task("joins", agent="boss", retries=0),
        task("kids", agent="kid", retries=0),
        *(task(f"q{n}", retries=0) for n in range(4)),
    ]
    agents = {"sleeper": sleeper, "kid": speaker("kid"), "boss": spawner("boss", kids)}
    return company.submit(plan, {"delayMs": 300, "tasks": turns, "otherwise": "rule"}, agents=agents)


def stands_everywhere(project: Watched) -> bool:
    """Whether something asks, something sleeps and something works."""
    on = {(run.status, run.waiting_on) for run in project.runs}
    return {("needs_input", "signals"), ("waiting", "timer")} <= on and "running" in {status for status, _ in on}


@pytest.mark.parametrize("how", ["flushed", pytest.param("killed", marks=pytest.mark.long)])
def test_an_emptied_redis_loses_nothing(on_fragile: Company, fragile: FragileRedis, story: Story, how: str) -> None:
    story.tells("15", f"Redis {how} with runs queued, working, asleep, asking, joining", "all of them go on")
    company = on_fragile
    company.hire(WORKER_SLOTS="3").ready()
    project = everything(company)
    company.waits_for(lambda: stands_everywhere(project), 30)

    if how == "flushed":
        fragile.client.flushall()
    else:
        fragile.kill()
        time.sleep(1)  # how long it is gone
        fragile.start()
    with story.recovery():
        last = len(project.trace)
        company.waits_for(lambda: len(project.trace) > last)
    answer(company.settings, project.open_signal().id, option="Do it", by="the test")
    fragile.client.flushall()

    company.waits_for(lambda: project.status == "completed", 60)
    assert [e.key for e in company.effects if e.kind == "asked"] == ["asked"]
    assert {r["outcome"] for r in project.kinds("tool.result")} == {"ok"}
    company.keeps_its_promises()


@pytest.mark.parametrize(("how", "most_s"), [("killed", 5), pytest.param("frozen", 25, marks=pytest.mark.long)])
def test_a_fan_out_that_finds_no_redis_gives_its_slot_back_soon(
    fragile: FragileRedis, tmp_path: Path, how: str, most_s: float
) -> None:
    """Celery by itself tries 20 times, and behind a frozen server each time as long as a socket may take."""
    settings = Settings(home=tmp_path, broker_url=fragile.url, _env_file=None)  # type: ignore[call-arg]
    with Celery(set_as_current=False) as app:
        app.conf.update(queue.configuration(settings))

        @app.task(name=queue.RUN)
        def job(*_: str) -> None:
            """Is sent, and never carried."""

        over = chord([job.si("child").set(ignore_result=False) for _ in range(3)], job.si("parent"))
        over.apply_async()
        fragile.kill() if how == "killed" else fragile.freeze()

        begun = time.monotonic()
        with pytest.raises((OperationalError, RedisError, RuntimeError)):
            over.apply_async()
        took = time.monotonic() - begun

        # Results of Celery speak to the server when they are collected: now, and not in the middle of another test.
        fragile.start() if how == "killed" else fragile.thaw()
        gc.collect()
        assert took < most_s


@pytest.mark.long
def test_a_redis_that_stands_still_keeps_no_answer_and_no_submit_waiting(
    on_fragile: Company, fragile: FragileRedis, story: Story
) -> None:
    story.tells("17", "SIGSTOP of Redis for 10 s, a submit and an answer meanwhile", "saved soon, done later")
    company = on_fragile
    company.hire().ready()
    asks = company.submit([task("a", skills=SKILLS)], {"tasks": {"a": [deed("proof.asked", "x"), {"say": "yes"}]}})
    asked = asks.open_signal()

    fragile.freeze()
    frozen = time.monotonic()
    later = company.submit([task("b")], {"tasks": {"b": [{"say": "b"}]}})
    saved = time.monotonic() - frozen
    begun = time.monotonic()
    answer(company.settings, asked.id, option="Do it", by="the test")
    answered = time.monotonic() - begun
    time.sleep(max(0, 10 - (time.monotonic() - frozen)))
    fragile.thaw()

    with story.recovery():
        company.waits_for(lambda: (asks.status, later.status) == ("completed", "completed"), 60)
    assert saved < 8, "a broker that says nothing costs a few time-outs, and the rows stand"
    assert answered < 8
    company.keeps_its_promises()


@pytest.mark.long
def test_a_full_redis_refuses_messages_and_nothing_is_lost(
    on_fragile: Company, fragile: FragileRedis, story: Story
) -> None:
    story.tells("19", "Redis at its maxmemory, noeviction, 20 submits", "saved; done when it has room")
    company = on_fragile
    company.hire().ready()
    fragile.client.config_set("maxmemory-policy", "noeviction")
    fragile.client.config_set("maxmemory", 1)
    projects = [company.submit([task("a")], {"tasks": {"a": [{"say": "a"}]}}) for _ in range(20)]

    fragile.client.config_set("maxmemory", 0)

    with story.recovery():
        company.waits_for(lambda: all(p.status == "completed" for p in projects), 60)
    company.keeps_its_promises()


def test_messages_that_come_twice_or_late_change_nothing(company: Company, story: Story, redis) -> None:
    story.tells("4", "every wake-up five times: at the start, in the middle, after the end", "one result, effects once")
    company.hire().ready()
    project = company.submit(
        [task("a", skills=SKILLS, retries=0)],
        {"tasks": {"a": [*(deed("proof.once", f"d{n}", ms=150) for n in range(4)), {"say": "a"}]}},
    )
    app = queue.sender(company.settings)
    while project.status != "completed":
        for run in project.runs:
            app.send_task(queue.RUN, (run.id,), ignore_result=True)
        for _ in range(4):
            queue.advance(company.settings, project.id, "again")
        time.sleep(0.1)  # the pace of the copies
        assert company.workers[0].process.running
    before = len(project.trace)
    for run in project.runs:
        app.send_task(queue.RUN, (run.id,), ignore_result=True)
    company.waits_for(lambda: redis.llen("officina") == 0)

    assert len(project.trace) == before
    assert {r["outcome"] for r in project.kinds("tool.result")} == {"ok"}
    company.keeps_its_promises()


def test_messages_without_sense_are_no_reason_to_stop(company: Company, story: Story, redis) -> None:
    story.tells("10, 53", "unknown jobs, a pickle, wrong arguments, forged ids", "refused, and work goes on")
    worker = company.hire().ready()
    done = company.submit([task("a")], {"tasks": {"a": [{"say": "a"}]}})
    company.waits_for(lambda: done.status == "completed")
    before = len(done.trace)
    app = Celery(broker=company.settings.broker, set_as_current=False)
    for name, args, kwargs in (
        ("officina.nothing", (), {}),
        ("officina.run", (), {}),
        ("officina.run", (None,), {}),
        ("officina.run", ({"id": 1},), {"title": ["x"]}),
        ("officina.run", ("no such run",), {}),
        ("officina.run", ("'; DROP TABLE runs; --",), {}),
        ("officina.run", (done.runs[0].id,), {"status": "queued", "fence": 99}),
        ("officina.advance", ("no such project",), {}),
        ("officina.advance", ([],), {}),
    ):
        app.send_task(name, args, kwargs, queue=queue.QUEUE, ignore_result=True)
    app.send_task(queue.RUN, (done.runs[0].id,), queue=queue.QUEUE, eta="not a time")
    for body in (b"nonsense", json.dumps({"body": "e30=", "headers": {}}).encode(), pickle.dumps({"a": 1})):
        redis.lpush(queue.QUEUE, body)
    app.control.broadcast("pool_shrink", arguments={"n": "many"})

    after = company.submit([task("a")], {"tasks": {"a": [{"say": "a"}]}})
    with story.recovery():
        company.waits_for(lambda: after.status == "completed")
    assert worker.process.running
    assert len(done.trace) == before
    company.keeps_its_promises()
