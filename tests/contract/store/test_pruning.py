"""Retention: what is old of projects that have ended goes, piece by piece, and nothing else does."""

from typing import Any

import pytest
from sqlalchemy import func, select, update

from orchestrator import pruning as service
from orchestrator import tallies
from orchestrator.records import MessageRecord
from orchestrator.settings import Settings
from orchestrator.store import audit, events, invariants, pruning, tasks
from orchestrator.store import tables as t
from registry.errors import Refused
from tests.contract.store.world import Plan, World

OLD, YOUNG = 40, 10
POLICY = service.Policy(history=30, project=None, files=None)


def ended(world: World, *, days: int, workspace: str = "w", status: Any = "completed", turns: int = 3) -> Plan:
    """A project that ended so many days ago, with a history."""
    plan = world.plan(workspace=workspace)
    claim = world.claimed(plan.run("a"))
    said = [MessageRecord(n, "messages", {"role": "assistant", "text": f"turn {n}"}) for n in range(1, turns + 1)]
    world.end(claim, status, messages=said, messages_count=turns)
    age(world, plan, days)
    return plan


def age(world: World, plan: Plan, days: int) -> None:
    ago = int(plan.row.created_at) - days * pruning.DAY_MS
    world.database.write(lambda c: c.execute(update(t.projects).where(t.projects.c.id == plan.id).values(ended_at=ago)))


def count(world: World, plan: Plan) -> dict[str, int]:
    found = {}
    with world.database.read() as c:
        for table in (t.events, t.messages, t.checkpoints, t.runs, t.tasks, t.projects):
            query = select(func.count()).select_from(table)
            if table is t.events:
                query = query.where(t.events.c.trace_id == plan.id, t.events.c.kind != pruning.LEFT)
            elif "run_id" in table.c:
                query = query.join(t.runs, t.runs.c.id == table.c.run_id).where(t.runs.c.project_id == plan.id)
            else:
                query = query.where((table.c.id if table is t.projects else table.c.project_id) == plan.id)
            found[table.name] = int(c.execute(query).scalar_one())
    return found


def prune(world: World, settings: Settings, wanted: service.Policy = POLICY) -> dict[Any, int]:
    return service.prune(settings, wanted, by="ann")


def test_a_look_says_what_would_go_and_changes_nothing(world: World, store_settings: Settings) -> None:
    old, young = ended(world, days=OLD), ended(world, days=YOUNG)
    before = count(world, old), count(world, young)

    found = service.look(store_settings, POLICY).to_json()

    assert found["history"]["projects"] == 1
    assert found["history"]["messages"] == 3
    assert found["history"]["events"] == before[0]["events"] > 0
    assert (count(world, old), count(world, young)) == before


def test_history_goes_and_what_came_of_the_work_stays(world: World, store_settings: Settings) -> None:
    old, young = ended(world, days=OLD), ended(world, days=YOUNG)
    there = count(world, young)

    assert prune(world, store_settings) == {"history": 1}

    left = count(world, old)
    assert (left["events"], left["messages"], left["checkpoints"]) == (0, 0, 0)
    assert (left["runs"], left["tasks"], left["projects"]) == (1, 1, 1)
    assert world.row(t.tasks, old.tasks["a"]).output == "done"
    assert [line.kind for line in old.trace] == [pruning.LEFT], "the trace says what became of it"
    assert count(world, young) == there
    with world.database.read() as c:
        assert invariants.broken(c) == []
    assert prune(world, store_settings) == {"history": 0}, "and once is enough"


@pytest.mark.parametrize("state", ["running", "waits for a person"])
def test_what_has_not_ended_is_never_touched_however_old(world: World, store_settings: Settings, state: str) -> None:
    if state == "running":
        plan = world.plan()
        world.claimed(plan.run("a"))
        age(world, plan, OLD)
    else:
        plan = ended(world, days=OLD)
        mine = {"project_id": plan.id, "run_id": plan.run("a"), "owner_id": "local", "kind": "decision"}
        about = {"id": "s1", "status": "open", "title": "May it?", "options": [], "priority": "normal", "schema": {}}
        row = mine | about | {"carry_on": True, "created_at": 1, "expires_at": 1}
        world.database.write(lambda c: c.execute(t.signals.insert().values(row)))
    before = count(world, plan)

    wanted = service.Policy(history=0, files=0, project=0)
    assert set(service.prune(store_settings, wanted, by="ann").values()) == {0}

    assert count(world, plan) == before


def test_an_interrupted_prune_is_gone_on_with(
    world: World, store_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "PIECE", 2)
    plan = ended(world, days=OLD, turns=9)
    assert world.database.write(lambda c: pruning.history_piece(c, plan.id)) == 2
    assert plan.row.history_pruned_at == pruning.BEGUN
    with world.database.read() as c:
        assert invariants.broken(c) == []

    assert prune(world, store_settings) == {"history": 1}
    assert count(world, plan)["messages"] == 0


def test_a_project_that_somebody_retries_meanwhile_is_left_alone(world: World, store_settings: Settings) -> None:
    plan = ended(world, days=OLD, status="failed")
    with world.database.read() as c:
        (row,) = pruning.due(c, "history", 30)
    world.database.write(lambda c: tasks.retry(c, plan.tasks["a"]))
    before = count(world, plan)

    assert world.database.write(lambda c: pruning.history_piece(c, row.id)) is None
    assert count(world, plan) == before


def test_a_whole_project_goes_with_its_folder_and_the_audit_log_keeps_its_name(
    world: World, store_settings: Settings
) -> None:
    old, young = ended(world, days=OLD, workspace="old"), ended(world, days=YOUNG, workspace="young")
    for name in ("old", "young"):
        (store_settings.workspaces / name).mkdir(parents=True)
        (store_settings.workspaces / name / "a.txt").write_text("seven")

    assert prune(world, store_settings, service.Policy(project=30)) == {"project": 1}

    assert set(count(world, old).values()) == {0}
    assert not (store_settings.workspaces / "old").exists()
    assert (store_settings.workspaces / "young" / "a.txt").exists()
    assert count(world, young)["projects"] == 1
    with world.database.read() as c:
        (line,) = audit.page(c, "local", 10, act="project")
        assert invariants.broken(c) == []
    assert (line.act, line.by, line.subject) == ("project.pruned", "ann", old.id)


def test_sums_over_all_runs_never_count_backwards(world: World, store_settings: Settings) -> None:
    for days, steps in ((OLD, 3), (OLD, 4), (YOUNG, 5)):
        plan = ended(world, days=days, workspace=f"w{steps}")
        world.set(t.runs, plan.run("a"), steps=steps, tokens=10 * steps, cost_micro=100 * steps)
    before = tallies.count(world.database)

    prune(world, store_settings, service.Policy(project=30))

    after = tallies.count(world.database)
    assert (before.sums["steps"], before.sums["cost_micro"], before.ended["completed"]) == (12, 1_200, 3)
    assert (after.sums, after.ended) == (before.sums, before.ended)


@pytest.mark.parametrize("workspace", ["", "..", "../other", "a/b", "."])
def test_no_row_makes_it_delete_anything_but_a_folder_of_the_root(
    world: World, store_settings: Settings, workspace: str
) -> None:
    kept = store_settings.workspaces.parent / "other"
    kept.mkdir(parents=True)
    (store_settings.workspaces / "a" / "b").mkdir(parents=True)
    ended(world, days=OLD, workspace=workspace)

    assert prune(world, store_settings, service.Policy(files=30)) == {"files": 1}

    assert kept.exists()
    assert (store_settings.workspaces / "a" / "b").exists()


def test_the_clock_takes_a_few_pieces_at_a_time(
    world: World, store_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "PIECE", 2)
    plan = ended(world, days=OLD, turns=9)
    keeping = store_settings.keeping.model_copy(update={"history_days": 30})
    settings = store_settings.model_copy(update={"keeping": keeping})

    assert service.prune_some(settings, 2), "there is more"
    assert count(world, plan)["messages"] + count(world, plan)["events"] > 0
    while service.prune_some(settings, 2):
        pass
    assert count(world, plan)["messages"] == 0
    assert not service.prune_some(store_settings, 2), "nothing is too old where nobody said so"


def test_nothing_but_fork_minds_a_history_that_is_gone(world: World, store_settings: Settings) -> None:
    from orchestrator.store import forks

    plan = ended(world, days=OLD, status="failed")
    run_id = plan.run("a")
    prune(world, store_settings)
    with pytest.raises(Refused, match="retry begins it anew"):
        world.database.write(lambda c: forks.fork(c, run_id, events.last(c, plan.id)))
    world.database.write(lambda c: tasks.retry(c, plan.tasks["a"]))
    world.end(world.claimed(plan.run("a")))
    assert plan.row.status == "completed"


def test_a_tree_of_runs_goes_whole(world: World, store_settings: Settings) -> None:
    plan = world.plan()
    for run_id in world.fan_out(world.claimed(plan.run("a")), 3):
        world.end_child(world.claimed(run_id))
    world.end(world.claimed(plan.run("a")), number=2)
    age(world, plan, OLD)
    assert prune(world, store_settings, service.Policy(project=30)) == {"project": 1}
    assert set(count(world, plan).values()) == {0}
