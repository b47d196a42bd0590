"""Redis behind Sentinels; the primary dies or stands still, and everything goes on with the other server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator import desk
from orchestrator.redis_clients import connect
from orchestrator.settings import Settings
from orchestrator.signals import answer
from tests.faults.company import Company
from tests.faults.table import Story
from tests.faults.test_broker import everything, stands_everywhere
from tests.watched_redis import WatchedRedis

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[WatchedRedis]:
    (folder := tmp_path / "watched").mkdir()
    made = WatchedRedis(folder)
    yield made
    made.close()


@pytest.fixture
def on_watched(
    watched: WatchedRedis, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Company]:
    settings = Settings(home=tmp_path / "home", database_url=database_url, broker_url=watched.url, _env_file=None)  # type: ignore[call-arg]
    made = Company(settings, tmp_path, monkeypatch)
    yield made
    made.dismiss()


@pytest.mark.parametrize("how", ["killed", "frozen"])
def test_the_other_server_takes_over(on_watched: Company, watched: WatchedRedis, story: Story, how: str) -> None:
    story.tells(
        "57", f"the primary behind Sentinels is {how} in the middle of everything", "all goes on with the other"
    )
    company, before = on_watched, watched.primary
    worker = company.hire(WORKER_SLOTS="3").ready()
    project = everything(company)
    company.waits_for(lambda: stands_everywhere(project), 60)

    with story.recovery():
        watched.kill(before) if how == "killed" else watched.freeze(before)
        company.waits_for(lambda: watched.has_changed(before), 60)
        last = len(project.trace)
        company.waits_for(lambda: len(project.trace) > last)
    if how == "frozen":  # it comes back as a replica, and whoever was connected to it learns so
        watched.thaw(before)
    signal = project.open_signal()
    with connect(watched.url, socket_timeout=2, decode_responses=True) as client:
        company.waits_for(lambda: client.hexists(desk.key(company.settings.owner), signal.id), 30)
    answer(company.settings, signal.id, option="Do it", by="the test")

    company.waits_for(lambda: project.status == "completed", 120)
    assert worker.process.running
    assert [e.key for e in company.effects if e.kind == "asked"] == ["asked"]
    assert {r["outcome"] for r in project.kinds("tool.result")} == {"ok"}
    company.keeps_its_promises()
