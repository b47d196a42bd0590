"""What the desk draws: the plan as a column, and the timeline, both of which can be read without colours."""

import re
from collections import defaultdict
from importlib.resources import files

import pytest

from orchestrator.api.desk import plan_column, timeline
from orchestrator.api.desk.plan_column import HEIGHT, WIDTH, column
from orchestrator.settings import Settings
from orchestrator.store.database import get_database
from orchestrator.terminal import scene
from tests.showroom_projects import Projects


@pytest.fixture
def made(settings: Settings) -> Projects:
    from orchestrator.records import wall_ms

    return Projects(settings, wall_ms())


def test_a_column_has_every_card_below_those_it_waits_for_and_a_line_from_each(
    settings: Settings, made: Projects
) -> None:
    for project in (made.busy, made.done):
        with get_database(settings).read() as connection:
            seen = scene.read(connection, project.id, settings)
        drawn = column(seen)
        assert drawn is not None
        top = {placed.task.key: placed.y for placed in drawn.cards}
        assert len(set(top.values())) == len(seen.tasks)
        for key, befores in seen.plan.depends_on.items():
            assert all(top[before] < top[key] for before in befores)
        tied = {(tie.source, tie.target) for tie in drawn.ties}
        assert tied == {(before, key) for key, befores in seen.plan.depends_on.items() for before in befores}
        assert all(placed.x >= 0 and placed.x + drawn.card <= WIDTH for placed in drawn.cards)
        assert max(top.values()) + HEIGHT < drawn.height
        numbers = [float(n) for tie in drawn.ties for n in re.findall(r"[MH](-?[\d.]+)", tie.line)]
        assert all(0 <= x <= WIDTH for x in numbers)


def test_lanes_of_a_column_that_are_in_use_at_once_lie_apart() -> None:
    spans = {f"t{n}": (n, n + 2 + n % 5) for n in range(30)}
    lanes = plan_column._lanes(spans)
    rows = defaultdict(list)
    for key, (first, last) in spans.items():
        for row in range(first, last):
            rows[row].append(lanes[key])
    assert all(len(set(used)) == len(used) for used in rows.values())


def test_every_kind_of_stretch_has_its_pattern_and_its_words(settings: Settings, made: Projects) -> None:
    with get_database(settings).read() as connection:
        titles = {made.busy.task_ids[key]: key for key in made.busy.task_ids}
        drawn = timeline.read(connection, made.busy.id, titles, made.now)

    assert set(drawn.kinds) == {"work", "queued", "you", "children", "timer", "gate", "backoff"}
    by_title = {bar.title: bar for bar in drawn.bars}
    assert "waited at a gate for 30 s" in by_title["monthly"].told
    assert "began again, attempt 2" in by_title["monthly"].told and drawn.begun_again
    assert [s.what for s in by_title["profile"].stretches] == ["queued", "work", "backoff", "work"]
    assert by_title["profile"].work_ms == 30_000 and by_title["profile"].wait_ms == 10_000
    assert by_title["radar (attempt 2)"].marks == [], "the first start of a run is no start once more"
    assert {"Station reader 1", "Station reader 20", "Gap finder"} <= set(by_title)
    template = files("orchestrator.api.desk").joinpath("templates", "timeline.html").read_text(encoding="utf-8")
    patterns = set(re.findall('id="on-([a-z]+)"', template))
    assert patterns == set(timeline.WORDS) - {"work", "queued"}, "work is solid, the queue is a dashed frame"
