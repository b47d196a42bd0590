"""The desk in Redis: cards follow the rows one by one, and come back whole when they are lost."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import event, update

from orchestrator import desk
from orchestrator.settings import Settings
from orchestrator.signals import answer
from orchestrator.store.database import get_database
from orchestrator.store.tables import signals
from tests.rows import Project
from tests.support import eventually

if TYPE_CHECKING:
    from redis import Redis

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


def test_what_waits_is_read_from_redis_and_from_the_rows_when_that_is_empty_or_gone(
    live_settings: Settings, redis: "Redis", asking: tuple[Project, list[str]]
) -> None:
    _, asked = asking

    def waiting() -> list[str]:
        return [str(card["id"]) for card in desk.pending(live_settings, live_settings.owner)]

    assert waiting() == asked
    redis.flushall()
    assert waiting() == asked
    assert shown(live_settings, redis) == {*asked}, "filled again on the way"

    nowhere = live_settings.model_copy(update={"redis_url": "redis://127.0.0.1:1/0"})
    assert [card["id"] for card in desk.pending(nowhere, nowhere.owner)] == asked
    answer(live_settings, asked[0], option="Do it", by="the test")
    assert waiting() == asked[1:]


def test_whoever_looks_at_a_desk_is_told_that_it_changed(
    live_settings: Settings, redis: "Redis", asking: tuple[Project, list[str]]
) -> None:
    _, asked = asking
    with redis.pubsub() as heard:
        heard.subscribe(f"{desk.key(live_settings.owner)}:changed")
        assert heard.get_message(timeout=10) is not None
        answer(live_settings, asked[0], option="No", by="the test")
        assert eventually(lambda: heard.get_message(timeout=1), 10)


def test_every_owner_has_a_desk_of_their_own(live_settings: Settings, redis: "Redis") -> None:
    for owner in ("ann", "bo"):
        theirs = Project(live_settings.model_copy(update={"owner": owner}))
        theirs.task("t", "needs_input")
        theirs.signal("t", expires_at=FAR)

    assert desk.refresh_all(live_settings) == 2
    for owner in ("ann", "bo"):
        assert len(desk.pending(live_settings, owner)) == 1
    assert desk.pending(live_settings, live_settings.owner) == []


def test_a_card_carries_words_that_cannot_hide_anything(live_settings: Settings, redis: "Redis") -> None:
    project = Project(live_settings)
    project.task("t", "needs_input")
    action = {"toolCallId": "c", "skill": "email.send", "input": {"to": "a@example.com\u202emoc.elpmaxe@b", "n": 1}}
    project.signal("t", expires_at=FAR, action=action, reason="\x1b[2Jplease", agent_name="Bo\u200b")

    (card,) = desk.pending(live_settings, live_settings.owner)

    words = card["shown"]
    assert "⟦U+202E⟧" in words["input"] and words["reason"] == "⟦U+001B⟧[2Jplease" and words["agent"] == "Bo⟦U+200B⟧"
    assert card["action"] == action, "what would run stays as it is"
