"""The desk in Redis: cards follow the rows one by one, and come back whole when they are lost."""

import json
from pathlib import Path

import pytest
from sqlalchemy import event, update

from orchestrator import desk
from orchestrator.settings import Settings
from orchestrator.signals import answer
from orchestrator.store.database import get_database
from orchestrator.store.tables import signals
from tests.rows import Project

FAR = 4_000_000_000_000


@pytest.fixture
def asking(live_settings: Settings) -> tuple[Project, list[str]]:
    """A project with five questions, all on the desk."""
    project = Project(live_settings)
    asked = []
    for number in range(5):
        project.task(f"t{number}", "needs_input")
        asked.append(project.signal(f"t{number}", expires_at=FAR, schema={"type": "object"}))
    assert desk.refresh(live_settings, live_settings.owner) == 5
    return project, asked


def shown(settings: Settings, redis) -> set[str]:
    return set(redis.hkeys(desk.key(settings.owner)))


def test_an_answer_takes_its_own_card_and_reads_no_other(live_settings, redis, asking) -> None:
    _, asked = asking
    read: list[int] = []
    engine = get_database(live_settings).engine

    @event.listens_for(engine, "before_cursor_execute")
    def count(_c: object, _cursor: object, statement: str, parameters: object, *_: object) -> None:
        if "FROM signals" in statement and "owner_id = " in statement:
            read.append(1)

    answer(live_settings, asked[2], option="Do it", by="the test")

    event.remove(engine, "before_cursor_execute", count)
    assert shown(live_settings, redis) == {*asked} - {asked[2]}
    assert not read, "no statement looked for all that is open"


def test_a_lost_desk_and_a_card_too_many_are_put_right(live_settings, redis, asking) -> None:
    _, asked = asking
    redis.hdel(desk.key(live_settings.owner), *asked[:3])
    redis.hset(desk.key(live_settings.owner), "nobody", "{}")

    assert desk.refresh(live_settings, live_settings.owner) == 4
    assert shown(live_settings, redis) == {*asked}
    assert desk.refresh(live_settings, live_settings.owner) == 0


def test_a_card_shows_exactly_what_would_run(live_settings, redis, asking) -> None:
    project, asked = asking
    card = json.loads(redis.hget(desk.key(live_settings.owner), asked[0]))
    assert card["action"]["skill"] == "code.execute"
    assert (card["projectId"], card["taskId"], card["status"]) == (project.id, project.task_ids["t0"], "open")


def test_a_run_that_ends_takes_its_questions_along_and_leaves_those_of_others(live_settings, redis, asking) -> None:
    project, asked = asking
    get_database(live_settings).write(
        lambda c: c.execute(update(signals).where(signals.c.id == asked[1]).values(status="expired"))
    )
    desk.run_ended(live_settings, live_settings.owner, project.run_ids["t1"])
    assert shown(live_settings, redis) == {*asked} - {asked[1]}


def test_without_redis_nothing_is_shown_and_nothing_breaks(tmp_path: Path, settings: Settings) -> None:
    desk.changed(settings, settings.owner, ["x"])
    desk.run_ended(settings, settings.owner, "x")
    assert desk.refresh(settings, settings.owner) == 0
