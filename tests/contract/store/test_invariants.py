"""The rules that every move keeps: a busy database breaks none, and each finds the row that was spoiled for it."""

from collections.abc import Callable
from typing import Any

from sqlalchemy import delete, insert, text, update

from orchestrator.records import CallRecord, Limit, MessageRecord, Park
from orchestrator.store import invariants, kept, money, projects, signals
from orchestrator.store import tables as t
from orchestrator.store.database import now_ms
from registry.ids import new_id
from tests.contract.store.talks import Talk
from tests.contract.store.world import YES, Plan, World, at, decision

LONG_AGO = 1


class Busy:
    """A world in the middle of everything: at work, parked on all there is, ended in every way."""

    def __init__(self, world: World) -> None:
        self.world = world
        after = {"done": [], "asks": [], "work": [], "spread": [], "queue": [], "next": ["asks"], "fails": []}
        self.plan = world.plan(after)
        self.over = world.plan({"only": []})
        run = self.plan.run
        world.end(world.claimed(self.over.run("only")))
        done = world.claimed(run("done"))
        world.write(at(done, messages=[MessageRecord(n, "messages", {}) for n in (1, 2)], messages_count=2))
        self._money(done.run_id)
        world.end(done, messages_count=2, cost_micro=7, settled={"c": 7}, number=2)
        world.end(world.claimed(run("fails")), "failed")
        self.question = decision()
        self._ask(run("asks"))
        self.work = world.claimed(run("work"))
        parent = world.claimed(run("spread"))
        self.children = world.fan_out(parent, 3)
        world.end_child(world.claimed(self.children[0]))
        self.child = world.claimed(self.children[1])
        self.talk = Talk.begun(world)
        self.talk.send()
        self.talk.answer()
        self.talk.send()
        self.talk.trigger()
        self.sequence = world.fan_out(world.claimed(run("queue")), 2, sequential=True)

    def _ask(self, run_id: str) -> None:
        claim = self.world.claimed(run_id)
        park = Park("needs_input", "signals", [self.question.id])
        call = CallRecord("c1", "n", 1, 0, "email.send", {}, "asked", "d", self.question.id, checkpoint=1)
        self.question.call_id, self.question.action = "c1", {"skill": "email.send", "input": {}}
        self.world.park(at(claim, park=park, signals=[self.question], calls=[call]))

    def _money(self, run_id: str) -> None:
        windows = [Limit(f"project:{self.plan.id}", 100), Limit(f"task:{self.plan.tasks['done']}", 100)]
        self.world.database.write(lambda c: money.reserve(c, run_id, "c", windows, 9))

    def thread(self, **columns: Any) -> None:
        self.world.set(kept.threads, self.talk.id, **columns)

    def acted(self, **columns: Any) -> str:
        """A call of the run at work that a yes let run; `columns` of its signal."""
        signal = decision()
        call = CallRecord("c9", "n", 1, 0, "email.send", {}, "done", "d", signal.id, outcome="ok", checkpoint=1)
        signal.call_id, signal.action = "c9", {"skill": "email.send", "input": {}}
        self.world.write(at(self.work, signals=[signal], calls=[call]))
        said = {"status": "answered", "answered_by": "me", "answered_at": LONG_AGO, "execution": "succeeded"}
        self.world.set(t.signals, signal.id, **said | columns)
        return signal.id

    def run(self, key: str, **columns: Any) -> None:
        self.world.set(t.runs, self.plan.run(key), **columns)

    def task(self, key: str, **columns: Any) -> None:
        self.world.set(t.tasks, self.plan.tasks[key], **columns)

    def project(self, plan: Plan, **columns: Any) -> None:
        self.world.set(t.projects, plan.id, **columns)

    def do(self, statement: Any) -> None:
        self.world.database.write(lambda c: c.execute(statement))


def _call(busy: Busy, **columns: Any) -> None:
    row = {"run_id": busy.plan.run("done"), "id": "x", "node_id": "n", "step": 1, "position": 0, "checkpoint": 1}
    busy.do(insert(t.calls).values(row | {"name": "email.send", "status": "done", "digest": "other"} | columns))


def _schedule(busy: Any, **columns: Any) -> str:
    row = {"id": new_id(), "owner_id": "local", "title": "s", "kind": "every", "spec": "5", "timezone": "UTC"}
    about = {"action": {}, "status": "paused", "created_at": 1}
    busy.do(insert(kept.schedules).values(row | about | columns))
    return row["id"]


def _hook(busy: Any) -> str:
    row = {"id": new_id(), "owner_id": "local", "name": "h", "status": "active", "detail": "", "mode": "ask"}
    busy.do(insert(kept.webhooks).values(row | {"secret": "", "created_at": 1, "updated_at": 1}))
    return row["id"]


SPOILED: dict[str, Callable[[Busy], Any]] = {
    "lease_over": lambda b: b.run("work", due_at=LONG_AGO),
    "unowned": lambda b: b.run("work", worker_id=None),
    "unseen": lambda b: b.world.set(t.runs, b.children[2], due_at=None),
    "timer_over": lambda b: b.run("spread", due_at=LONG_AGO),
    "park_held": lambda b: b.run("asks", worker_id="somebody"),
    "wait_unnamed": lambda b: b.run("done", waiting_on="timer"),
    "asks_nobody": lambda b: b.do(delete(t.signals).where(t.signals.c.id == b.question.id)),
    "answer_unheard": lambda b: b.world.set(
        t.signals, b.question.id, status="answered", answered_by="me", answered_at=LONG_AGO
    ),
    "children_over": lambda b: b.do(
        update(t.runs).where(t.runs.c.id.in_(b.sequence)).values(status="failed", waiting_on=None, due_at=None)
    ),
    "children_miscounted": lambda b: b.run("spread", open_children=3),
    "turn_lost": lambda b: b.do(
        update(t.runs).where(t.runs.c.id == b.sequence[0]).values(status="failed", due_at=None)
    ),
    "child_outlives": lambda b: b.run("spread", status="failed", waiting_on=None),
    "checkpoint_lost": lambda b: b.run("done", checkpoint=9),
    "history_broken": lambda b: b.do(
        delete(t.messages).where(t.messages.c.run_id == b.plan.run("done"), t.messages.c.number == 1)
    ),
    "asks_for_the_dead": lambda b: b.run("asks", status="failed", waiting_on=None),
    "asks_for_the_cancelled": lambda b: b.project(b.plan, status="cancelled"),
    "signal_over": lambda b: b.world.set(t.signals, b.question.id, expires_at=LONG_AGO),
    "answer_anonymous": lambda b: b.world.set(t.signals, b.question.id, answered_by="me"),
    "yes_not_acted_on": lambda b: b.acted(carry_on=True, execution="none"),
    "act_unfinished": lambda b: b.acted(carry_on=True, execution="started", acted_at=LONG_AGO),
    "asked_twice": lambda b: b.acted(status="open", run_id=b.plan.run("asks"), call_id="c1", execution="none"),
    "done_without_yes": lambda b: b.acted(rejected=True),
    "grant_unused": lambda b: b.acted(execution="none"),
    "grant_used_twice": lambda b: _call(b, run_id=b.work.run_id, signal_id=b.acted(), digest="d", outcome="ok"),
    "world_without_yes": lambda b: _call(b, outcome="ok"),
    "outcome_missing": lambda b: _call(b, status="started", name="files.write"),
    "task_without_run": lambda b: b.task("fails", status="running"),
    "run_without_task": lambda b: b.task("work", status="failed"),
    "task_at_odds": lambda b: b.task("asks", status="running"),
    "dependencies_miscounted": lambda b: b.task("next", open_dependencies=2),
    "ready_not_queued": lambda b: b.task("next", open_dependencies=0),
    "waits_in_vain": lambda b: b.task("asks", status="failed"),
    "project_idle": lambda b: b.project(b.over, status="running", held=True),
    "project_over": lambda b: b.project(b.plan, status="partial"),
    "tasks_miscounted": lambda b: b.project(b.plan, open_tasks=1),
    "project_at_odds": lambda b: b.project(b.over, status="partial"),
    "reservations_miscounted": lambda b: b.world.set(t.windows, f"project:{b.plan.id}", reserved_micro=5),
    "reserved_for_the_dead": lambda b: b.do(
        insert(t.reservations).values(
            run_id=b.plan.run("done"), call_key="late", window_id=f"project:{b.plan.id}", micro=0
        )
    ),
    "project_cost_at_odds": lambda b: b.project(b.plan, cost_micro=8),
    "task_cost_at_odds": lambda b: b.task("done", cost_micro=8),
    "project_window_at_odds": lambda b: b.world.set(t.windows, f"project:{b.plan.id}", spent_micro=8),
    "task_window_at_odds": lambda b: b.world.set(t.windows, f"task:{b.plan.tasks['done']}", spent_micro=8),
    "thread_at_odds": lambda b: b.thread(run_id=b.talk.runs[0].id),
    "thread_runs_aside": lambda b: b.thread(run_id=None),
    "thread_miscounted": lambda b: b.thread(runs=3),
    "thread_run_astray": lambda b: b.do(
        update(kept.thread_runs).where(kept.thread_runs.c.thread_id == b.talk.id).values(history_from=3)
    ),
    "trigger_unheard": lambda b: b.thread(run_id=None),
    "thread_homeless": lambda b: b.world.set(t.projects, b.talk.id, kind="project"),
    "due_time_lost": lambda b: _schedule(b, status="active", next_run_at=1),
    "schedule_timeless": lambda b: _schedule(b, status="active", next_run_at=None),
    "firing_without_run": lambda b: b.do(
        insert(kept.firings).values(schedule_id=_schedule(b), due_at=1, at=1, result="fired", run_id="gone")
    ),
    "delivery_without_work": lambda b: b.do(
        insert(kept.deliveries).values(hook_id=_hook(b), key="id:1", at=1, run_id="gone")
    ),
    "trace_gap": lambda b: b.do(delete(t.events).where(t.events.c.trace_id == b.plan.id, t.events.c.seq == 2)),
}


def found(world: World, **options: Any) -> dict[str, list[str]]:
    """The rows that break each rule."""
    rules: dict[str, list[str]] = {}
    with world.database.read() as connection:
        for row in invariants.broken(connection, **options):
            rules.setdefault(row.rule, []).append(row.id)
    return rules


def test_a_busy_world_breaks_no_rule(world: World) -> None:
    busy = Busy(world)
    assert found(world) == {}

    busy.acted()
    assert found(world) == {}

    world.database.write(lambda c: signals.answer(c, busy.question.id, YES, rejected=False, by="me"))
    assert found(world) == {}

    world.database.write(lambda c: projects.cancel(c, busy.plan.id, "enough"))
    assert found(world) == {}


def test_each_rule_finds_the_row_that_was_spoiled_for_it(world: World) -> None:
    assert set(SPOILED) == {rule.name for rule in invariants.INVARIANTS}
    silent = []
    for rule, spoil in SPOILED.items():
        busy, before = Busy(world), set(found(world).get(rule, ()))
        spoil(busy)
        if not set(found(world).get(rule, ())) - before:
            silent.append(rule)

    assert not silent


def test_what_is_late_is_a_fault_only_after_its_grace(world: World) -> None:
    busy = Busy(world)
    busy.run("work", due_at=now_ms() - 5_000)

    assert "lease_over" not in found(world)
    assert found(world, grace_ms=1_000)["lease_over"] == [busy.work.run_id]


def test_a_rule_names_so_many_rows_and_no_more(world: World) -> None:
    busy = Busy(world)
    for number in range(invariants.MOST + 5):
        _call(busy, id=f"x{number}", outcome="ok")

    assert len(found(world)["world_without_yes"]) == invariants.MOST


def test_a_broken_row_says_what_it_is(world: World) -> None:
    busy = Busy(world)
    busy.run("spread", open_children=3)
    with world.database.read() as connection:
        (row,) = invariants.broken(connection)

    assert str(row) == f"children_miscounted: {busy.plan.run('spread')} (counted 3, found 2)"
    assert row.to_json()["says"] == "a parent counts its open children right"


def test_every_rule_is_one_statement(world: World) -> None:
    with world.database.read() as connection:
        for rule in invariants.INVARIANTS:
            assert ";" not in rule.sql
            connection.execute(
                text(f"SELECT * FROM ({rule.sql}) x LIMIT 0"), {"late": 0} if ":late" in rule.sql else {}
            )
