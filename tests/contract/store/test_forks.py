"""Forks: a new run from a checkpoint of an earlier one, which needs nothing of it any more."""

from typing import Any

import pytest
from sqlalchemy import delete, select

from orchestrator.records import CallRecord, Ending, Event, MessageRecord, Park
from orchestrator.store import endings, forks, loading, runs
from orchestrator.store import tables as t
from orchestrator.store.claims import Claim
from registry.errors import Refused
from tests.contract.store.world import BODY, Plan, World, at, decision, failure


def fork(world: World, run_id: str, seq: int) -> str:
    return world.database.write(lambda c: forks.fork(c, run_id, seq))[0]


def load(world: World, run_id: str) -> Any:
    with world.database.read() as connection:
        return loading.load(connection, run_id, 0)


def message(number: int) -> MessageRecord:
    return MessageRecord(number, "messages", {"role": "user", "content": f"m{number}"})


def call(call_id: str, status: str, checkpoint: int, *, step: int = 3, position: int = 0) -> CallRecord:
    result = {"id": call_id, "result": "sent"} if status == "done" else None
    return CallRecord(
        call_id,
        "next",
        step,
        position,
        "mail",
        {},
        status,
        signal_id="s",
        result=result,
        checkpoint=checkpoint,  # type: ignore[arg-type]
    )


def worked(world: World, plan: Plan, key: str = "a") -> Claim:
    """A run with three checkpoints: at each a message, a step, and a larger `n` in its state."""
    claim = world.claimed(plan.run(key))
    for number in (1, 2, 3):
        facts: dict[str, Any] = {
            "patch": {"set": {"n": number}},
            "messages": [message(number)],
            "steps": number,
            "turns": number,
        }
        first = {"snapshot": True, "input": "go"} if number == 1 else {}
        world.write(at(claim, number, messages_count=number, memo={"m": number}, **facts, **first))
    return claim


def seqs(world: World, run_id: str) -> list[int]:
    """Events of the run's checkpoints, in order."""
    query = select(t.checkpoints.c.event_seq).where(t.checkpoints.c.run_id == run_id)
    return [row.event_seq for row in world.all(query.order_by(t.checkpoints.c.number))]


def test_every_checkpoint_names_the_last_of_its_events(world: World) -> None:
    plan = world.plan({"a": [], "b": []})
    claims = [world.claimed(plan.run(key)) for key in "ab"]
    two = [Event("think", {}, run_id=claims[1].run_id), Event("node.completed", {}, run_id=claims[1].run_id)]

    world.write(at(claims[0]), at(claims[1], events=two))
    ends = {line.run_id: line.seq for line in plan.trace if line.kind == "node.completed"}
    world.write(at(claims[0], 2, events=[]))
    world.park(at(claims[1], 2, park=Park("waiting", "timer", due_in_ms=9_000)))

    assert [seqs(world, claim.run_id)[0] for claim in claims] == [ends[claim.run_id] for claim in claims]
    assert seqs(world, claims[0].run_id)[1] == max(ends.values()), "one without events: what there was when it was made"
    assert seqs(world, claims[1].run_id)[1] == plan.trace[-1].seq, "the park's last line is the task's"


def test_a_fork_begins_where_the_run_stood_at_the_event(world: World) -> None:
    plan = world.plan()
    claim = worked(world, plan)
    world.end(claim, "failed", number=4, steps=4, tokens=700, cost_micro=9)
    cut = seqs(world, claim.run_id)[1]

    new_id = fork(world, claim.run_id, cut)

    run, record = world.run(new_id), load(world, new_id)
    assert (run.status, run.kind, run.attempt, run.task_id) == ("queued", "root", 2, plan.tasks["a"])
    assert (record.state, record.input, record.memo, record.node_id) == ({"n": 2}, "go", {"m": 2}, "next")
    assert [m.body["content"] for m in record.messages] == ["m1", "m2"]
    assert (record.checkpoint, record.steps, record.turns, record.window["steps"]) == (2, 2, 2, 2)
    assert (record.tokens, record.cost_micro, record.running_ms) == (0, 0, 0), "what it uses is its own"
    assert (plan.status("a"), plan.row.status, plan.row.open_tasks) == ("queued", "running", 1)
    (told,) = [d for d in plan.kinds("task.status") if d.get("reason", "").startswith("forked")]
    assert told == {"status": "queued", "from": "failed", "reason": f"forked from run {claim.run_id} at event {cut}"}


def test_an_event_between_two_checkpoints_means_the_earlier_and_the_end_is_none(world: World) -> None:
    plan = world.plan()
    claim = worked(world, plan)
    world.end(claim, "failed", number=4, steps=4)

    new_id = fork(world, claim.run_id, plan.trace[-1].seq)

    assert world.run(new_id).checkpoint == 3, "nothing goes on from an end"


def test_a_fork_needs_no_row_of_the_earlier_run(world: World) -> None:
    plan = world.plan()
    claim = worked(world, plan)
    world.write(at(claim, 4, steps=4, messages_count=3, calls=[call("c1", "done", 4)], output_ref={"calls": 3}))
    world.end(claim, "failed", number=5, steps=5)
    new_id = fork(world, claim.run_id, seqs(world, claim.run_id)[3])
    before = load(world, new_id)

    for table in (t.checkpoints, t.messages, t.calls):
        world.database.write(lambda c, table=table: c.execute(delete(table).where(table.c.run_id == claim.run_id)))

    assert load(world, new_id) == before
    assert [c.id for c in before.calls.values()] == ["c1"]


def test_calls_recorded_before_the_cut_stay_recorded_and_later_ones_are_forgotten(world: World) -> None:
    plan = world.plan()
    claim = worked(world, plan)
    made = f"{claim.run_id}:next:3:1"  # as the engine names a call that has no id of its own
    early = [call("c0", "done", 4), call(made, "done", 4, position=1), call("c2", "asked", 4, position=2)]
    question = Park("needs_input", "signals")
    world.park(at(claim, 4, calls=early, park=question, steps=3, messages_count=3))
    world.set(t.runs, claim.run_id, status="queued")
    again = world.claimed(claim.run_id)
    world.write(at(again, None, calls=[call("c2", "done", 5, position=2)], steps=3, messages_count=3))
    world.end(again, "failed", number=5, steps=3)

    new_id = fork(world, claim.run_id, seqs(world, claim.run_id)[3])

    record = load(world, new_id)
    renamed = f"{new_id}:next:3:1"
    assert {c.id: c.status for c in record.calls.values()} == {"c0": "done", renamed: "done"}
    assert record.calls[renamed].result == {"id": renamed, "result": "sent"}
    assert {c.signal_id for c in record.calls.values()} == {None}, "questions of the earlier run are not its own"


def test_a_fork_speaks_as_whoever_spoke_at_the_cut(world: World) -> None:
    plan = world.plan()
    claim = worked(world, plan)
    world.write(at(claim, 4, steps=4, messages_count=3, speaker=("other", "Other", "o" * 64, BODY | {"id": "other"})))
    world.end(claim, "failed", number=5, steps=5)
    before, after = seqs(world, claim.run_id)[2:4]

    first = fork(world, claim.run_id, before)
    assert world.run(first).agent_id == "hand"
    world.end(world.claimed(first), "failed", number=4, steps=4)
    second = fork(world, claim.run_id, after)
    assert (world.run(second).agent_id, load(world, second).definition["id"]) == ("other", "other")
    world.end(world.claimed(second), "failed", number=5, steps=5)
    third = fork(world, second, before)
    assert world.run(third).agent_id == "hand", "a fork of a fork knows who spoke before"


def test_a_gate_under_way_begins_anew_and_a_sleep_goes_on(world: World) -> None:
    plan = world.plan({"a": [], "b": []})
    for key, wait in (("a", {"step": 1, "signal": "s"}), ("b", {"step": 1, "fireAt": 5, "signal": None})):
        wait = {k: v for k, v in wait.items() if v is not None}
        claim = world.claimed(plan.run(key))
        world.write(at(claim, 1, steps=1, snapshot=True, input=None, memo={"wait": wait, "kept": 1}))
        world.end(claim, "failed", number=2, steps=1)
        memo = load(world, fork(world, claim.run_id, plan.trace[-1].seq)).memo
        assert memo == ({"kept": 1} if key == "a" else {"kept": 1, "wait": wait})


def test_what_has_not_begun_waits_for_a_forked_task_again(world: World) -> None:
    plan = world.plan({"a": [], "b": [], "c": ["a", "b"], "d": ["a"]})
    claim = worked(world, plan)
    world.end(claim, number=4, steps=4)
    assert plan.status("d") == "queued"

    new_id = fork(world, claim.run_id, seqs(world, claim.run_id)[0])

    assert world.row(t.tasks, plan.tasks["c"]).open_dependencies == 2
    assert plan.status("d") == "queued", "what went on with the earlier output stays as it is"
    world.end(world.claimed(plan.run("b")))
    assert plan.status("c") == "pending"
    world.end(world.claimed(new_id), number=2, steps=2)
    assert plan.status("c") == "queued"
    for key in "cd":
        world.end(world.claimed(plan.run(key)))
    assert (plan.row.status, plan.row.completed_tasks, plan.row.open_tasks) == ("completed", 4, 0)


def test_what_was_skipped_for_a_task_opens_again_with_its_fork(world: World) -> None:
    plan = world.plan({"a": [], "b": ["a"]})
    claim = worked(world, plan)
    world.end(claim, "failed", number=4, steps=4)
    assert (plan.status("b"), plan.row.status) == ("skipped", "failed")

    new_id = fork(world, claim.run_id, seqs(world, claim.run_id)[2])
    world.end(world.claimed(new_id), number=4, steps=4)
    world.end(world.claimed(plan.run("b")))

    assert plan.row.status == "completed"


def test_questions_of_the_earlier_run_stay_closed(world: World) -> None:
    plan = world.plan()
    claim = worked(world, plan)
    asked = decision()
    world.park(
        at(claim, 4, steps=3, messages_count=3, signals=[asked], park=Park("needs_input", "signals", [asked.id]))
    )
    world.set(t.runs, claim.run_id, status="queued")
    world.end(world.claimed(claim.run_id), "failed", number=5, steps=3)

    new_id = fork(world, claim.run_id, seqs(world, claim.run_id)[3])

    assert world.row(t.signals, asked.id).status == "expired"
    assert load(world, new_id).signals == {}


def refused(world: World, run_id: str, seq: int) -> str:
    before = [world.all(select(table)) for table in (t.runs, t.tasks, t.events, t.checkpoints)]
    with pytest.raises(Refused) as error:
        fork(world, run_id, seq)
    assert [world.all(select(table)) for table in (t.runs, t.tasks, t.events, t.checkpoints)] == before
    return error.value.code


def test_what_cannot_be_forked_is_refused_and_nothing_is_written(world: World) -> None:
    plan = world.plan({"a": [], "b": [], "c": []})
    claim = worked(world, plan)
    assert refused(world, "nobody", 1) == "unknown_run"
    assert refused(world, claim.run_id, seqs(world, claim.run_id)[0]) == "task_running"
    (kid,) = world.fan_out(world.claimed(plan.run("c")), 1)
    assert refused(world, kid, 1) == "not_root"
    world.end(claim, "failed", number=5, steps=5)
    assert refused(world, claim.run_id, seqs(world, claim.run_id)[0] - 1) == "unknown_checkpoint"
    assert refused(world, claim.run_id, 10_000) == "unknown_checkpoint"
    world.end(world.claimed(plan.run("b")), "failed", number=None)
    assert refused(world, plan.run("b"), plan.trace[-1].seq) == "unknown_checkpoint"


def test_a_person_ends_a_sleep_and_nothing_but_a_sleep(world: World) -> None:
    plan = world.plan({"a": [], "b": [], "c": []})
    asleep, asks = (world.claimed(plan.run(key)) for key in "ab")
    world.park(at(asleep, park=Park("waiting", "timer", due_in_ms=600_000)))
    world.park(at(asks, park=Park("needs_input", "signals")))

    (wake,) = world.database.write(lambda c: runs.wake(c, asleep.run_id))

    assert wake.run_id == asleep.run_id
    assert world.run(asleep.run_id).resumed_by == "answer"
    world.end(world.claimed(plan.run("c")))
    for run_id, code in (
        (asleep.run_id, "not_sleeping"),
        (asks.run_id, "not_sleeping"),
        (plan.run("c"), "run_ended"),
        ("nobody", "unknown_run"),
    ):
        with pytest.raises(Refused) as error:
            world.database.write(lambda c, run_id=run_id: runs.wake(c, run_id))
        assert error.value.code == code


def test_a_woken_run_stays_woken_when_its_worker_dies_before_it_got_anywhere(world: World) -> None:
    plan = world.plan()
    claim = world.claimed(plan.run("a"))
    world.park(at(claim, park=Park("waiting", "timer", due_in_ms=600_000)))
    world.database.write(lambda c: runs.wake(c, claim.run_id))
    world.claimed(claim.run_id, lease_ms=0)

    world.database.write(lambda c: runs.expire_leases(c, 10))
    again = world.claimed(claim.run_id, lease_ms=0)
    assert load(world, claim.run_id).resumed_by == "answer"

    world.write(at(again, 2))
    world.set(t.runs, claim.run_id, due_at=0)
    world.database.write(lambda c: runs.expire_leases(c, 10))
    assert world.run(claim.run_id).resumed_by == "lease", "what was acted on is told once"


def test_an_ending_names_no_next_node(world: World) -> None:
    plan = world.plan()
    claim = worked(world, plan)
    ending = Ending("failed", error=failure())
    world.database.write(lambda c: endings.end(c, at(claim, 4, ending=ending)))
    rows = world.all(select(t.checkpoints.c.node_id).order_by(t.checkpoints.c.number))
    assert [row.node_id for row in rows] == ["next"] * 3 + [None]
