"""Ends: the last transaction of a run closes its task, frees or skips dependents, and closes the project."""

from functools import partial
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from sqlalchemy import event, func, select

from orchestrator.records import Ending
from orchestrator.states import RUN_ENDED, TASK_ENDED
from orchestrator.store import endings, projects, runs, tasks
from orchestrator.store import tables as t
from orchestrator.store.database import now_ms
from registry.errors import LeaseStale, Refused
from tests.contract.store.world import Plan, World, at, failure, live, together

OUTCOMES = st.sampled_from(["completed", "completed", "completed", "failed"])


@st.composite
def graphs(draw: Any) -> dict[str, list[str]]:
    """Random plans: every task may depend on any before it."""
    size = draw(st.integers(1, 8))
    return {
        f"t{n}": sorted(draw(st.sets(st.sampled_from([f"t{m}" for m in range(n)]))) if n else []) for n in range(size)
    }


def drained(world: World, plan: Plan, outcome: Any) -> None:
    """Carries every run of a project to its end, in whatever order `outcome` chooses."""
    numbers = count(1)
    while queued := [run for run in live(world, plan) if run.status == "queued"]:
        run = queued[next(numbers) % len(queued)]
        world.end(world.claimed(run.id), outcome(run.task_id))
        check_counters(world, plan)


def check_counters(world: World, plan: Plan) -> None:
    """What the project counts is what its tasks are."""
    ended = select(func.count()).where(t.tasks.c.project_id == plan.id, t.tasks.c.status.not_in(sorted(TASK_ENDED)))
    done = select(func.count()).where(t.tasks.c.project_id == plan.id, t.tasks.c.status == "completed")
    assert plan.row.open_tasks == world.all(ended)[0][0]
    assert plan.row.completed_tasks == world.all(done)[0][0]


def expected(after: dict[str, list[str]], outcomes: dict[str, str]) -> dict[str, str]:
    """How tasks end, by the rule: one runs when everything it depends on has completed."""
    found: dict[str, str] = {}
    for key, on in after.items():
        found[key] = outcomes[key] if all(found[one] == "completed" for one in on) else "skipped"
    return found


@given(after=graphs(), data=st.data())
@hypothesis_settings(
    deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_every_plan_ends_with_every_task_in_its_right_state(
    world: World, after: dict[str, list[str]], data: Any
) -> None:
    plan = world.plan(after)
    outcomes = {key: data.draw(OUTCOMES, label=key) for key in after}
    by_task = {plan.tasks[key]: outcome for key, outcome in outcomes.items()}

    drained(world, plan, by_task.get)

    states = {key: plan.status(key) for key in after}
    assert states == expected(after, outcomes)
    completed = sum(state == "completed" for state in states.values())
    right = "completed" if completed == len(after) else "partial" if completed else "failed"
    assert plan.row.status == right
    told = plan.kinds("project.status")[-1]
    assert (told["status"], told["from"]) == (right, "running")
    assert [line.seq for line in plan.trace] == list(range(1, len(plan.trace) + 1))


@given(after=graphs(), data=st.data())
@hypothesis_settings(
    deadline=None, max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_trying_failed_tasks_again_never_leaves_a_plan_hanging(
    world: World, after: dict[str, list[str]], data: Any
) -> None:
    plan = world.plan(after)
    keys = {task_id: key for key, task_id in plan.tasks.items()}
    drained(world, plan, lambda task_id: data.draw(OUTCOMES, label=keys[task_id]))
    for _ in range(data.draw(st.integers(1, 4), label="times")):
        failed = [key for key in after if plan.status(key) == "failed"]
        if not failed:
            break
        again = data.draw(st.sampled_from(failed), label="again")
        world.database.write(lambda c, again=again: tasks.retry(c, plan.tasks[again]))
        check_counters(world, plan)
        assert plan.row.status == "running"
        drained(world, plan, lambda task_id: data.draw(OUTCOMES, label=keys[task_id]))

    assert plan.row.ended_at is not None, "whatever was tried, it ends"
    assert {plan.status(key) for key in after} <= TASK_ENDED
    for key, on in after.items():
        if plan.status(key) == "skipped":
            assert any(plan.status(one) != "completed" for one in on)


def test_a_skipped_task_waits_again_only_when_nothing_else_bars_it(world: World) -> None:
    plan = world.plan({"a": [], "b": [], "c": ["a", "b"], "d": ["a"]})
    for key in "ab":
        world.end(world.claimed(plan.run(key)), "failed")

    world.database.write(lambda c: tasks.retry(c, plan.tasks["a"]))

    assert [plan.status(key) for key in "abcd"] == ["queued", "failed", "skipped", "pending"]
    world.end(world.claimed(plan.run("a")))
    world.end(world.claimed(plan.run("d")))
    assert plan.row.status == "partial", "nobody waits for ever for a task that failed for good"

    world.database.write(lambda c: tasks.retry(c, plan.tasks["b"]))
    assert plan.status("c") == "pending"
    world.end(world.claimed(plan.run("b")))
    world.end(world.claimed(plan.run("c")))
    assert plan.row.status == "completed"


def test_only_a_task_that_failed_or_was_cancelled_can_be_tried_again(world: World) -> None:
    plan = world.plan({"a": [], "b": ["a"]})

    def code(task_id: str) -> str:
        with pytest.raises(Refused) as refused:
            world.database.write(lambda c: tasks.retry(c, task_id))
        return refused.value.code

    assert code(plan.tasks["a"]) == "not_failed"
    assert code("no such task") == "unknown_task"
    world.end(world.claimed(plan.run("a")), "failed")
    assert code(plan.tasks["b"]) == "not_failed", "a skipped task has nothing of its own to try again"


def test_trying_again_tells_where_the_task_comes_from(world: World) -> None:
    plan = world.plan()
    world.database.write(lambda c: projects.cancel(c, plan.id, "enough"))

    world.database.write(lambda c: tasks.retry(c, plan.tasks["a"]))

    assert [(e["from"], e["status"]) for e in plan.kinds("task.status")][-2:] == [
        ("queued", "cancelled"),
        ("cancelled", "queued"),
    ]
    assert world.run(plan.run("a")).attempt == 2
    world.end(world.claimed(plan.run("a")))
    assert plan.row.status == "completed"


def test_a_failure_that_may_pass_gives_a_new_root_run_until_the_retries_are_used(world: World) -> None:
    plan = world.plan({"a": [], "b": ["a"]}, retries=1)
    broken = {"code": "model_failed", "message": "no answer"}
    for attempt in (1, 2):
        claim = world.claimed(plan.run("a"))
        assert world.run(claim.run_id).attempt == attempt
        world.database.write(lambda c, claim=claim: endings.end(c, at(claim, ending=Ending("failed", error=broken))))

    assert (plan.status("a"), plan.status("b"), plan.row.status) == ("failed", "skipped", "failed")
    assert world.row(t.tasks, plan.tasks["a"]).error == broken


@pytest.mark.parametrize("rounds", [pytest.param(15, id="short"), pytest.param(200, id="long", marks=pytest.mark.long)])
def test_a_cancel_and_an_end_in_the_same_moment_leave_one_of_the_two(world: World, rounds: int) -> None:
    ends = set()
    for _ in range(rounds):
        plan = world.plan({"a": [], "b": ["a"]})
        claim = world.claimed(plan.run("a"))

        ended, cancelled = together(
            partial(world.end, claim),
            partial(world.database.write, lambda c, plan=plan: projects.cancel(c, plan.id, "enough")),
        )

        assert cancelled is True
        assert plan.row.status == "cancelled"
        assert plan.row.open_tasks == 0
        states = (world.run(claim.run_id).status, plan.status("a"), plan.status("b"))
        if isinstance(ended, LeaseStale):
            assert states == ("cancelled",) * 3
        else:
            assert states == ("completed", "completed", "cancelled")
        assert not live(world, plan)
        ends.add(states)
    assert ends


def test_a_cancel_reaches_everything_and_what_was_spent_stays_spent(world: World) -> None:
    plan = world.plan({"a": [], "b": ["a"]})
    parent = world.claimed(plan.run("a"))
    first = world.claimed(world.fan_out(parent, 2)[0])

    world.write(at(first, cost_micro=40))

    world.database.write(lambda c: projects.cancel(c, plan.id, "enough"))

    assert not live(world, plan)
    assert {row.status for row in world.all(select(t.runs).where(t.runs.c.project_id == plan.id))} == {"cancelled"}
    assert (plan.row.cost_micro, world.row(t.tasks, plan.tasks["a"]).cost_micro) == (40, 40)
    assert world.database.write(lambda c: projects.cancel(c, plan.id, "again")) is False


def test_the_cost_of_every_attempt_reaches_task_and_project(world: World) -> None:
    plan = world.plan()
    world.end(world.claimed(plan.run("a")), "failed", cost_micro=5)
    world.database.write(lambda c: tasks.retry(c, plan.tasks["a"]))
    world.end(world.claimed(plan.run("a")), cost_micro=7, cost_incomplete=True)

    for row in (plan.row, world.row(t.tasks, plan.tasks["a"])):
        assert (row.cost_micro, row.cost_incomplete) == (12, True)


def test_no_run_is_left_open_when_a_project_ends(world: World) -> None:
    plan = world.plan({"a": [], "b": []})
    for key in "ab":
        world.end(world.claimed(plan.run(key)))

    assert plan.row.status == "completed"
    assert {run.status for run in world.all(select(t.runs).where(t.runs.c.project_id == plan.id))} <= RUN_ENDED
    assert failure()["code"] not in str(plan.trace)


@pytest.mark.parametrize("rounds", [pytest.param(12, id="short"), pytest.param(100, id="long", marks=pytest.mark.long)])
def test_a_cancel_and_a_fan_out_in_the_same_moment_never_block_each_other(world: World, rounds: int) -> None:
    blocked: list[str] = []

    def note(context: Any) -> None:
        blocked.append(str(context.original_exception))

    event.listen(world.database.engine, "handle_error", note)
    for _ in range(rounds):
        plan = world.plan({f"t{n}": [] for n in range(6)})
        claims = [world.claimed(plan.run(key)) for key in plan.tasks]

        results = together(
            *(partial(world.fan_out, claim, 5) for claim in claims),
            partial(world.database.write, lambda c, plan=plan: projects.cancel(c, plan.id, "enough")),
        )

        assert results[-1] is True
        assert not live(world, plan), "children that were made in time were cancelled with the others"
        assert all(isinstance(r, list | LeaseStale) for r in results[:-1])
    event.remove(world.database.engine, "handle_error", note)
    assert not blocked


def test_a_task_that_is_tried_again_waits_as_a_row_longer_each_time(world: World) -> None:
    plan = world.plan(retries=3)
    waits = []
    for attempt in (1, 2, 3):
        claim = world.claimed(plan.run("a"))
        before = world.all(select(now_ms()))[0][0]
        ending = Ending("failed", error=failure("model_failed"), backoff_ms=1_000)
        world.database.write(lambda c, claim=claim, ending=ending: endings.end(c, at(claim, ending=ending)))

        run = world.run(plan.run("a"))
        assert (run.status, run.waiting_on, run.worker_id, run.attempt) == ("waiting", "backoff", None, attempt + 1)
        assert plan.status("a") == "waiting"
        assert world.claim(run.id) is None, "its time has not come"
        waits.append(round((run.due_at - before) / 1_000))
        world.set(t.runs, run.id, due_at=1)
        assert world.database.write(lambda c: runs.wake_due(c, 10)) == [run.id]

    assert waits == [1, 2, 4]
    assert plan.kinds("task.status")[-1]["reason"] == "tried again after model_failed, in 4 s"
    world.end(world.claimed(plan.run("a")))
    assert plan.row.status == "completed"


def test_a_wait_between_two_tries_has_an_end_and_can_be_cancelled(world: World) -> None:
    plan = world.plan(retries=5)
    ending = Ending("failed", error=failure("model_failed"), backoff_ms=10**9)
    claim = world.claimed(plan.run("a"))
    world.database.write(lambda c: endings.end(c, at(claim, ending=ending)))
    waits = world.run(plan.run("a")).due_at - world.all(select(now_ms()))[0][0]
    assert waits <= endings.MOST_BACKOFF_MS

    world.database.write(lambda c: projects.cancel(c, plan.id, "enough"))

    assert not live(world, plan)
    assert world.database.write(lambda c: runs.wake_due(c, 10)) == []
