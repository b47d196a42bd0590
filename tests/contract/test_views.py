"""What `show`, `list`, `signals` and `trace` give, on both databases (spec: project 1)."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Connection, event, insert

from orchestrator import following, lookup, trees, views
from orchestrator.api.models import ProjectView
from orchestrator.settings import Settings
from orchestrator.store import workers
from orchestrator.store.database import get_database
from orchestrator.store.tables import calls, projects, runs
from orchestrator.terminal import elsewhere, scene, underway
from registry.errors import Refused
from tests.rows import BEGAN, Project, weather


@pytest.fixture
def settings(tmp_path: Path, database_url: str) -> Settings:
    return Settings(home=tmp_path / "home", database_url=database_url, _env_file=None)  # type: ignore[call-arg]


@contextmanager
def looking(settings: Settings) -> Iterator[Connection]:
    with get_database(settings).read() as connection:
        yield connection


def test_a_project_has_exactly_the_promised_fields(settings: Settings) -> None:
    made = weather(settings)
    made.signal("yearly")
    with looking(settings) as connection:
        shown = views.project(connection, made.id, settings)
    assert list(shown) == [
        "id", "title", "status", "costUsd", "createdAt", "endedAt", "workspace", "tasks", "files", "signals",
        "unknown",
    ]  # fmt: skip
    assert list(shown["tasks"][0]) == [
        "key", "id", "title", "role", "status", "agent", "dependsOn", "output", "error", "costUsd", "startedAt",
        "endedAt", "runs",
    ]  # fmt: skip
    assert list(shown["tasks"][0]["runs"][0]) == [
        "id", "parentId", "kind", "status", "on", "code", "steps", "attempt", "children"
    ]  # fmt: skip
    assert shown["files"][1] == {"path": "profile.md", "bytes": 1_830, "sha256": "a" * 64}
    assert (shown["costUsd"], shown["createdAt"], shown["endedAt"]) == (0.0123, BEGAN, None)
    assert shown["workspace"] == str(settings.workspaces / "seattle-weather-2012-2015")


def test_tasks_come_in_plan_order_with_their_dependencies_in_file_order(settings: Settings) -> None:
    made = weather(settings)
    with looking(settings) as connection:
        shown = views.project(connection, made.id, settings)
    assert {task["key"]: task["dependsOn"] for task in shown["tasks"]} == {
        "profile": [],
        "monthly": ["profile"],
        "yearly": ["profile"],
        "chart": ["monthly"],
        "brief": ["monthly", "yearly", "chart"],
        "review": ["brief"],
    }
    assert [task["key"] for task in shown["tasks"]] == list(made.task_ids)


def test_faults_reasons_and_lower_bounds_show_where_there_are_any(settings: Settings) -> None:
    made = Project(settings, cost_micro=5, cost_incomplete=True)
    fault = {"code": "model_failed", "message": "429", "node": "think", "kind": "x"}
    made.task("one", "failed", error=fault, run={"error": fault})
    made.task("two", "skipped", after=["one"], reason="one failed")
    with looking(settings) as connection:
        shown = views.project(connection, made.id, settings)
    one, two = shown["tasks"]
    assert one["error"] == {"code": "model_failed", "message": "429", "node": "think"}
    assert one["runs"][0]["code"] == "model_failed"
    assert (two["reason"], two["error"], two["runs"]) == ("one failed", None, [])
    assert (shown["costUsd"], shown["costIncomplete"]) == (0.000005, True)


def test_children_stand_within_their_parents_whatever_their_ids(settings: Settings) -> None:
    made = Project(settings)
    made.task("one", "waiting", run={"id": "0b", "waiting_on": "children"})
    made.run("one", "running", id="0a", parent_id="0b", kind="spawn")
    made.run("one", "queued", id="0c", parent_id="0a", kind="item")
    with looking(settings) as connection:
        (root,) = views.project(connection, made.id, settings)["tasks"][0]["runs"]
    assert (root["id"], root["on"]) == ("0b", "children")
    assert root["children"][0]["id"] == "0a"
    assert root["children"][0]["children"][0]["id"] == "0c"


def test_a_big_project_takes_no_more_statements_than_a_small_one(settings: Settings) -> None:
    small, big = Project(settings), Project(settings)
    small.task("one", "running")
    for number in range(40):
        big.task(f"t{number}", "running", after=[f"t{number - 1}"] if number else [])
        big.signal(f"t{number}")
    counts = [[_statements(settings, kind, made.id) for kind in ("show", "watch")] for made in (small, big)]
    assert counts[0] == counts[1] == [6, 8]


def _statements(settings: Settings, kind: str, project_id: str) -> int:
    seen: list[str] = []
    engine = get_database(settings).engine

    def count(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if statement.lstrip().upper().startswith(("SELECT", "WITH")):
            seen.append(statement)

    event.listen(engine, "before_cursor_execute", count)
    try:
        with looking(settings) as connection:
            if kind == "show":
                views.project(connection, project_id, settings)
            else:
                scene.read(connection, project_id, settings)
    finally:
        event.remove(engine, "before_cursor_execute", count)
    return len(seen)


def test_what_may_have_happened_is_shown_by_calls_and_by_actions(settings: Settings) -> None:
    by_call, by_action, known = Project(settings), Project(settings), Project(settings)
    for made, outcome in ((by_call, "unknown"), (known, "succeeded")):
        made.task("one", "running")
        row = {
            "run_id": made.run_ids["one"],
            "id": "c1",
            "node_id": "act",
            "step": 1,
            "position": 0,
            "name": "email.send",
        }
        row |= {"input": {"to": "a"}, "status": "done", "checkpoint": 1, "outcome": outcome}
        get_database(settings).write(lambda connection, row=row: connection.execute(insert(calls).values(row)))
    by_action.task("one", "running")
    by_action.signal("one", status="answered", execution="unknown", carry_on=True)
    with looking(settings) as connection:
        told = [views.project(connection, made.id, settings)["unknown"] for made in (by_call, by_action, known)]
    assert [len(calls) for calls in told] == [1, 1, 0]
    assert (told[0][0]["where"], told[0][0]["name"], told[1][0]["where"]) == ("told", "email.send", "action")


def test_what_runs_under_way_have_spent_counts_before_it_is_booked(settings: Settings) -> None:
    made = Project(settings, cost_micro=1_000)
    made.task("one", "running", cost_micro=1_000)
    made.task("two", "running")
    made.run("one", "running", cost_micro=200)
    made.run("one", "waiting", cost_micro=30)
    made.run("one", "completed", cost_micro=1_000)  # booked when it ended
    made.run("two", "queued", cost_micro=4, cost_incomplete=True)
    with looking(settings) as connection:
        shown = views.project(connection, made.id, settings)
        (listed,) = views.project_list(connection, settings.owner)
        seen = scene.read(connection, made.id, settings)
    assert [task["costUsd"] for task in shown["tasks"]] == [0.00123, 0.000004]
    assert [task.get("costIncomplete", False) for task in shown["tasks"]] == [False, True]
    assert [shown["costUsd"], listed["costUsd"], seen.cost_usd] == [0.001234] * 3
    assert shown["costIncomplete"] and listed["costIncomplete"] and seen.cost_incomplete
    assert [seen.tasks[key].cost_usd for key in ("one", "two")] == [0.00123, 0.000004]


def test_projects_come_newest_first_with_their_counts(settings: Settings) -> None:
    weather(settings)
    other = Project(settings, title="Another", created_at=BEGAN + 1, status="completed", ended_at=BEGAN + 2)
    with looking(settings) as connection:
        found = views.project_list(connection, settings.owner)
        assert [row["title"] for row in found] == ["Another", "Seattle weather 2012-2015"]
        assert (found[1]["tasks"], found[1]["endedTasks"]) == (6, 1)
        assert [row["id"] for row in views.project_list(connection, settings.owner, status="completed")] == [other.id]
        assert views.project_list(connection, "somebody else") == []


def test_open_signals_carry_exactly_what_would_run(settings: Settings) -> None:
    made = weather(settings)
    signal = made.signal("yearly")
    made.signal("yearly", status="answered", answer={"approved": True}, answered_by="local")
    with looking(settings) as connection:
        (shown,) = views.signal_list(connection, settings.owner)
        assert len(views.signal_list(connection, settings.owner, status=None)) == 2
        assert views.signal_list(connection, "somebody else") == []
    assert shown["id"] == signal
    assert shown["action"]["input"]["code"].startswith("import csv")
    assert (shown["projectId"], shown["taskId"], shown["agent"]) == (made.id, made.task_ids["yearly"], "Nadia Kest")


def test_an_id_may_be_shortened_as_far_as_it_stays_the_only_one(settings: Settings) -> None:
    made = Project(settings, id="01a22d1e-88f5-7798-bc55-f1d8c182d7e3")
    Project(settings, id="01a22d1e-99f5-7798-bc55-f1d8c182d7e3")
    Project(settings, id="02b22d1e-99f5-7798-bc55-f1d8c182d7e3", owner_id="somebody else")
    with looking(settings) as connection:
        assert lookup.project_id(connection, "01A22D1E-88", settings.owner) == made.id
        assert lookup.project_id(connection, made.id, settings.owner) == made.id
        refusals = {
            "01a22d1e": "ambiguous_id",
            "01a22": "unknown_project",
            "02b22d1e-99f5": "unknown_project",
            "%": "unknown_project",
            "01a22d1_-88f5": "unknown_project",
            "'; DROP TABLE projects; --": "unknown_project",
            "": "unknown_project",
        }
        for given, code in refusals.items():
            with pytest.raises(Refused) as refused:
                lookup.project_id(connection, given, settings.owner)
            assert refused.value.code == code, given


def test_tasks_and_signals_of_others_are_unknown(settings: Settings) -> None:
    made = weather(settings)
    signal = made.signal("yearly")
    with looking(settings) as connection:
        assert lookup.task_id(connection, made.task_ids["brief"], settings.owner) == made.task_ids["brief"]
        assert lookup.signal_id(connection, signal, settings.owner) == signal
        for find, given in ((lookup.task_id, made.task_ids["brief"]), (lookup.signal_id, signal)):
            with pytest.raises(Refused):
                find(connection, given, "somebody else")


def test_a_scene_says_what_a_root_run_waits_for(settings: Settings) -> None:
    made = Project(settings)
    made.task("one", "waiting", run={"waiting_on": "timer", "due_at": BEGAN + 60_000, "attempt": 2})
    made.run("one", "failed", attempt=1)
    with looking(settings) as connection:
        seen = scene.read(connection, made.id, settings)
    task = seen.tasks["one"]
    assert (task.waiting_on, task.due_at, task.attempt) == ("timer", BEGAN + 60_000, 2)
    assert (seen.workers, seen.done, seen.ended) == (0, 0, False)


def test_a_scene_over_http_is_the_one_of_the_database(settings: Settings) -> None:
    made = weather(settings, max_cost_micro=500_000, rehearsal=True)
    made.task("later", "waiting", run={"waiting_on": "timer", "due_at": BEGAN + 60_000, "attempt": 2})
    root = spread(made, "rrqcft")
    inner = {"parent_id": root, "parent_step": 3, "position": 6, "kind": "spawn", "depth": 1, "steps": 2}
    middle = made.run("one", "waiting", waiting_on="children", **inner)
    made.run("one", "running", parent_id=middle, parent_step=2, kind="item", item={"year": 2012}, depth=2)
    made.signal("yearly")
    here = {"id": "one", "host": "here", "pid": 1, "slots": 4, "active": 1}
    get_database(settings).write(lambda connection: workers.register(connection, here))
    with looking(settings) as connection:
        near = scene.read(connection, made.id, settings)
        shown = views.project(connection, made.id, settings) | {"live": underway.read(connection, made.id)}
    far = elsewhere.scene_of(ProjectView.model_validate(shown).model_dump(mode="json", by_alias=True))
    assert far == replace(near, now=far.now)
    assert (far.budget_usd, far.rehearsal, far.tasks["later"].due_at) == (0.5, True, BEGAN + 60_000)
    fanout = far.tasks["one"].fanout
    assert fanout is not None
    assert (fanout.ended, fanout.total, len(fanout.at_work)) == (2, 7, 3)
    assert [child.item for _, child in trees.walk(fanout) if child.fanout is None][-1] == '{"year":2012}'
    assert (far.workers, far.tasks["brief"].deliverables) == (1, ["brief.md", "brief.docx"])


def test_a_studio_that_tells_nothing_live_is_watched_all_the_same(settings: Settings) -> None:
    made = weather(settings)
    with looking(settings) as connection:
        near, shown = scene.read(connection, made.id, settings), views.project(connection, made.id, settings)
    far = elsewhere.scene_of(shown)
    told = {key: replace(task, deliverables=[]) for key, task in near.tasks.items()}
    assert far == replace(near, now=far.now, workers=1, tasks=told)


def test_a_trace_is_followed_to_its_last_line_and_then_ends(settings: Settings) -> None:
    made = Project(settings)
    for number in range(3):
        made.event("project.status", {"status": "running", "from": "planning", "n": number})
    told = []
    for batch in following.live(settings, made.id):
        told += batch
        if len(told) == 3 and not batch:  # all told and still running: now it ends
            made.event("project.status", {"status": "completed", "from": "running"})
            made.set(projects, made.id, status="completed")
    assert [line.seq for line in told] == [1, 2, 3, 4]
    assert [line.seq for line in following.stored(settings, made.id, after=2)] == [3, 4]


def spread(made: Project, statuses: str, step: int = 3, **root: object) -> str:
    """A task whose run waits for children in these states: r(unning), q(ueued), c(ompleted), f(ailed), t(urn)."""
    made.task("one", "waiting", run={"waiting_on": "children", "steps": step} | root)
    words = {"r": "running", "q": "queued", "c": "completed", "f": "failed", "t": "waiting"}
    for position, letter in enumerate(statuses):
        facts = {"parent_id": made.run_ids["one"], "parent_step": step, "position": position, "kind": "item"}
        waits = {"waiting_on": "turn"} if letter == "t" else {}
        made.run("one", words[letter], **facts, depth=1, node_id="think", steps=2, **waits)
    return made.run_ids["one"]


def test_children_come_in_the_order_of_their_fan_outs_and_calls(settings: Settings) -> None:
    made = Project(settings)
    root = spread(made, "")
    for name, step, position in (("0a", 5, 0), ("0b", 3, 1), ("0c", 3, 0)):
        made.run("one", "completed", id=name, parent_id=root, parent_step=step, position=position, kind="spawn")
    with looking(settings) as connection:
        (tree,) = views.project(connection, made.id, settings)["tasks"][0]["runs"]
    assert [child["id"] for child in tree["children"]] == ["0c", "0b", "0a"]


def test_the_run_that_made_the_plan_stands_beside_the_tasks(settings: Settings) -> None:
    made = Project(settings)
    made.task("one", "running")
    made.run("one", "completed", id="0p", kind="plan", task_id=None)
    with looking(settings) as connection:
        shown = views.project(connection, made.id, settings)
        assert [(run["id"], run["kind"]) for run in shown["runs"]] == [("0p", "plan")]
        assert [run["kind"] for run in shown["tasks"][0]["runs"]] == ["root"]


def test_a_fan_out_under_way_is_counted_whole_and_read_only_where_it_is_at_work(settings: Settings) -> None:
    made = Project(settings)
    root = spread(made, "crfqqrt")
    made.run("one", "completed", parent_id=root, parent_step=1, position=0, kind="item")  # of an earlier fan-out
    with looking(settings) as connection:
        fanout = trees.under_way(connection, made.id)[root]
        assert (fanout.total, fanout.ended, fanout.counts["failed"]) == (7, 2, 1)
        assert [child.position for child in fanout.at_work] == [1, 5]
        task = scene.read(connection, made.id, settings).tasks["one"]
    assert task.fanout == fanout


def test_fan_outs_nest_and_one_whose_parent_goes_on_is_none(settings: Settings) -> None:
    made = Project(settings)
    root = spread(made, "r", id="0b")
    inner = made.run(
        "one",
        "waiting",
        id="0a",
        parent_id=root,
        parent_step=3,
        position=1,
        kind="spawn",
        depth=1,
        waiting_on="children",
        steps=1,
    )
    made.run("one", "running", id="00", parent_id=inner, parent_step=1, position=0, kind="spawn", depth=2)
    with looking(settings) as connection:
        found = trees.under_way(connection, made.id)
        assert [(depth, child.id) for depth, child in trees.walk(found[root])][1:] == [(0, "0a"), (1, "00")]
    made.set(runs, root, status="running", waiting_on=None)
    with looking(settings) as connection:
        assert trees.under_way(connection, made.id).keys() == {"0a"}


def test_a_fan_out_of_hundreds_takes_no_more_statements_than_one_of_two(settings: Settings) -> None:
    small, big = Project(settings), Project(settings)
    spread(small, "rc")
    spread(big, "r" * 30 + "q" * 200)
    counts = [[_statements(settings, kind, made.id) for kind in ("show", "watch")] for made in (small, big)]
    assert counts[0] == counts[1] == [6, 10]
