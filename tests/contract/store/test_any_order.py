"""The store's moves in any order: after each of them the rows are what a plain ledger of the same moves says.

Hypothesis chooses: runs are submitted, claimed, parked, answered, fanned out, ended, cancelled; workers die, leases run
out, and whoever lost a run comes back and writes. Beside the ledger, what `officina doctor --deep` looks for is looked
for after every move, no wait is ever over without its run being queued, what has ended stays so, a fence only rises,
and no answer is used and no line of a trace is written twice.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import select

from orchestrator.records import Checkpoint, Ending, Event, Fanout, Park
from orchestrator.states import RUN_ENDED
from orchestrator.store import checkpoints, children, endings, invariants, projects, runs, signals, stuck, tasks
from orchestrator.store import tables as t
from orchestrator.store.claims import Claim
from orchestrator.store.memory import MemoryDatabase
from registry.errors import LeaseStale, Refused
from registry.ids import new_id
from tests.contract.store.ledger import PASSING, Ledger, Run
from tests.contract.store.world import LEASE_MS, YES, Plan, World, child, decision

#: Far enough away that nothing is due unless the test says so.
LATER_MS = 3_600_000
SHAPES: tuple[dict[str, list[str]], ...] = (
    {"a": []},
    {"a": [], "b": ["a"], "c": ["b"]},
    {"a": [], "b": [], "c": ["a", "b"], "d": ["c"]},
)
TASK_LIVE = ("queued", "running", "needs_input", "waiting")
#: Moves between two looks at all the rules of the doctor: there are dozens.
EVERY = 7
#: Any of whatever there is: a number, taken around the end of a list.
ANY = st.integers(0, 1_000)


class AnyOrder(RuleBasedStateMachine):
    """Both sides of it: every rule makes one move on the rows and in the ledger."""

    #: Where a story happens: each in a world of its own, or all in one.
    begin: Callable[[], World]

    def __init__(self) -> None:
        super().__init__()
        self.world = self.begin()
        self.ledger = Ledger()
        self.plans: dict[str, Plan] = {}
        #: Whoever was ever given a run: some of them have it, the others only think so.
        self.claims: list[Claim] = []
        self.looks = 0
        self.numbers: Counter[str] = Counter()
        self.written: Counter[str] = Counter()
        self.fences: dict[str, int] = {}
        self.ended: dict[str, str] = {}

    # What is there to choose from

    def pick(self, among: list[Any], n: int) -> Any:
        return among[n % len(among)]

    def of(self, fits: Callable[[Run], bool]) -> list[Run]:
        return [run for run in self.ledger.runs.values() if fits(run)]

    @property
    def owners(self) -> list[Claim]:
        return [c for c in self.claims if self.ledger.owns(c.run_id, c.fence)]

    @property
    def losers(self) -> list[Claim]:
        return [c for c in self.claims if not self.ledger.owns(c.run_id, c.fence)]

    @property
    def questions(self) -> list[str]:
        return [signal for run in self.ledger.runs.values() for signal in run.asked]

    # Moves of a project

    @initialize(shape=st.sampled_from(SHAPES), places=st.integers(1, 4), retries=st.integers(0, 1))
    def first(self, shape: dict[str, list[str]], places: int, retries: int) -> None:
        self.submit(shape, places, retries)

    @precondition(lambda self: len(self.plans) < 3)
    @rule(shape=st.sampled_from(SHAPES), places=st.integers(1, 4), retries=st.integers(0, 1))
    def submit(self, shape: dict[str, list[str]], places: int, retries: int) -> None:
        plan = self.world.plan(shape, cap=places, retries=retries)
        self.plans[plan.id] = plan
        self.ledger.submit(plan.id, shape, places, retries)
        self.name_roots()

    @precondition(lambda self: self.looks % 9 == 0)  # it ends most of what there is: other things are to happen, too
    @rule(n=ANY)
    def cancel(self, n: int) -> None:
        plan = self.pick(list(self.plans.values()), n)
        done = self.world.database.write(lambda c: projects.cancel(c, plan.id, "enough"))
        assert done == self.ledger.cancel(plan.id)

    @precondition(lambda self: self.looks % 3 == 0)
    @rule(n=ANY, m=ANY)
    def retry(self, n: int, m: int) -> None:
        plan = self.pick(list(self.plans.values()), n)
        key = self.pick(sorted(plan.tasks), m)
        if self.ledger.retry(plan.id, key):
            self.world.database.write(lambda c: tasks.retry(c, plan.tasks[key]))
            self.name_roots()
        else:
            with pytest.raises(Refused, match="failed or cancelled"):
                self.world.database.write(lambda c: tasks.retry(c, plan.tasks[key]))

    # Moves of a worker

    @precondition(lambda self: self.of(lambda run: run.status == "queued"))
    @rule(n=ANY)
    def claim(self, n: int) -> None:
        self.claim_one(self.pick(self.of(lambda run: run.status == "queued"), n))

    @precondition(lambda self: self.looks % 5 == 0)
    @rule(n=ANY)
    def claim_whatever_it_is(self, n: int) -> None:
        self.claim_one(self.pick(list(self.ledger.runs.values()), n))

    def claim_one(self, run: Run) -> None:
        promised = select(t.runs.c.id).where(t.runs.c.status == "queued", t.runs.c.wakes > 0)
        marked = {row.id for row in self.world.all(promised)} & set(self.ledger.runs)
        claim = self.world.claim(run.id)
        assert (claim.fence if claim else None) == self.ledger.claim(run.id, marked)
        if claim is not None:
            assert claim not in self.claims, "a fence is given once"
            self.claims.append(claim)

    @precondition(lambda self: self.owners)
    @rule(n=ANY, row=st.booleans(), asks=st.integers(0, 2))
    def checkpoint(self, n: int, row: bool, asks: int) -> None:
        claim = self.pick(self.owners, n)
        raised = [decision() for _ in range(asks)] if self.is_root(claim) else []
        assert not self.world.write(self.at(claim, row=row, signals=raised))
        self.wrote(claim, raised)

    @precondition(lambda self: self.owners)
    @rule(n=ANY, on=st.sampled_from(["timer", "backoff"]))
    def sleep(self, n: int, on: Any) -> None:
        claim = self.pick(self.owners, n)
        self.world.park(self.at(claim, park=Park("waiting", on, due_in_ms=LATER_MS)))
        self.wrote(claim, [])
        self.ledger.park(claim.run_id, "waiting", on)

    @precondition(lambda self: any(self.is_root(c) for c in self.owners))
    @rule(n=ANY, gate=st.booleans(), soon=st.booleans())
    def ask(self, n: int, gate: bool, soon: bool) -> None:
        """Parks on all its questions, a new one among them; somebody may be so quick as to answer before that."""
        claim = self.pick([c for c in self.owners if self.is_root(c)], n)
        raised = [decision()]
        if soon:
            assert not self.world.write(self.at(claim, row=False, signals=raised))
            self.wrote(claim, raised)
            self.answer_one(raised.pop().id)
        waits = [*self.ledger.runs[claim.run_id].unused, *(one.id for one in raised)]
        park = Park("waiting", "gate", waits, due_in_ms=LATER_MS) if gate else Park("needs_input", "signals", waits)
        self.world.park(self.at(claim, signals=raised, park=park))
        self.wrote(claim, raised)
        self.ledger.park(claim.run_id, park.status, park.waiting_on)

    @precondition(lambda self: any(self.ledger.runs[c.run_id].asked for c in self.owners))
    @rule(n=ANY, m=ANY, said=st.booleans())
    def use_an_answer(self, n: int, m: int, said: bool) -> None:
        """Once it has been given, and once only."""
        claim = self.pick([c for c in self.owners if self.ledger.runs[c.run_id].asked], n)
        signal_id = self.pick(list(self.ledger.runs[claim.run_id].asked), m)
        if said:
            self.answer_one(signal_id)
        for _ in range(2):
            write = self.at(claim, row=False, consume={signal_id: "succeeded"})
            if self.ledger.use(claim.run_id, signal_id):
                assert not self.world.write(write)
                self.wrote(claim, [])
            else:
                with pytest.raises(Refused, match="used already"):
                    self.world.write(write)

    @precondition(lambda self: any(not self.busy(c) for c in self.owners))
    @rule(n=ANY, count=st.integers(1, 3), sequential=st.booleans())
    def fan_out(self, n: int, count: int, sequential: bool) -> None:
        claim = self.pick([c for c in self.owners if not self.busy(c)], n)
        if self.depth(claim.run_id) >= 2:
            return
        made = [child(position) for position in range(count)]
        fanout = Fanout("spread", self.numbers[claim.run_id], 1, sequential=sequential, children=made)
        self.world.park(self.at(claim, park=Park("waiting", "children"), fanout=fanout))
        self.wrote(claim, [])
        self.ledger.fan_out(claim.run_id, [one.id for one in made], sequential=sequential)

    @precondition(lambda self: any(self.busy(c) for c in self.owners))
    @rule(n=ANY, cancels=st.booleans())
    def go_on_with_children(self, n: int, cancels: bool) -> None:
        """A parent whose time was over before theirs: it waits for them again, or does without them."""
        claim = self.pick([c for c in self.owners if self.busy(c)], n)
        open_ones = self.ledger.open_children(self.ledger.runs[claim.run_id])
        if cancels:
            assert not self.world.write(self.at(claim, cancel=open_ones))
            self.ledger.cancel_children(claim.run_id)
        else:
            self.world.park(self.at(claim, park=Park("waiting", "children", due_in_ms=LATER_MS)))
            self.ledger.park(claim.run_id, "waiting", "children")
        self.wrote(claim, [])

    @precondition(lambda self: self.owners)
    @rule(n=ANY, how=st.sampled_from(["completed", "completed", "failed", PASSING]), later=st.booleans())
    def end(self, n: int, how: str, later: bool) -> None:
        claim = self.pick(self.owners, n)
        status: Any = "completed" if how == "completed" else "failed"
        code = None if how == "completed" else PASSING if how == PASSING else "unknown_path"
        error = None if code is None else {"code": code, "message": "it broke"}
        ending = Ending(status, error=error, result={"output": None}, backoff_ms=LATER_MS if later else 0)
        open_ones = self.ledger.open_children(self.ledger.runs[claim.run_id])
        self.world.database.write(lambda c: endings.end(c, self.at(claim, ending=ending, cancel=open_ones)))
        self.wrote(claim, [])
        self.ledger.cancel_children(claim.run_id)
        self.ledger.end(claim.run_id, status, code, later=later)
        self.name_roots()

    @precondition(lambda self: self.owners)
    @rule(n=ANY)
    def give_back(self, n: int) -> None:
        claim = self.pick(self.owners, n)
        assert self.world.database.write(lambda c: runs.release_run(c, claim.run_id, claim.fence))
        self.ledger.lose(claim.run_id)

    @precondition(lambda self: self.looks % 5 == 0)
    @rule()
    def renew(self) -> None:
        ids = {claim.run_id for claim in self.claims}
        lost = self.world.database.write(lambda c: runs.renew(c, self.world.worker, ids, LEASE_MS))
        assert lost == {one for one in ids if self.ledger.runs[one].status != "running"}

    @precondition(lambda self: self.losers)
    @rule(n=ANY, how=st.sampled_from(["save", "note", "park", "fan out", "end", "give back"]))
    def write_as_one_who_lost_it(self, n: int, how: str) -> None:
        claim = self.pick(self.losers, n)
        raised = [decision()]
        if how in ("save", "note"):
            assert self.world.write(self.at(claim, row=how == "save", signals=raised)) == {claim.run_id}
        elif how == "give back":
            assert not self.world.database.write(lambda c: runs.release_run(c, claim.run_id, claim.fence))
        elif how == "end":
            ending = Ending("completed", result={"output": "late"})
            with pytest.raises(LeaseStale):
                self.world.database.write(lambda c: endings.end(c, self.at(claim, ending=ending)))
        else:
            made = Fanout("spread", 1, 1, sequential=False, children=[child(0)]) if how == "fan out" else None
            waits = Park("waiting", "children" if made else "timer", due_in_ms=LATER_MS)
            with pytest.raises(LeaseStale):
                self.world.park(self.at(claim, signals=raised, park=waits, fanout=made))

    # Moves of people and of time

    @precondition(lambda self: self.questions)
    @rule(n=ANY)
    def answer(self, n: int) -> None:
        self.answer_one(self.pick(self.questions, n))

    def answer_one(self, signal_id: str) -> None:
        def move() -> Any:
            return self.world.database.write(lambda c: signals.answer(c, signal_id, YES, rejected=False, by="me"))

        if self.ledger.answer(signal_id):
            move()
        else:
            with pytest.raises(Refused):
                move()

    @precondition(lambda self: self.questions)
    @rule(n=ANY)
    def let_a_question_expire(self, n: int) -> None:
        signal_id = self.pick(self.questions, n)
        self.world.set(t.signals, signal_id, expires_at=0)
        closed = self.world.database.write(lambda c: signals.expire_due(c, 100))
        assert [one.signal_id for one in closed] == ([signal_id] if self.ledger.answer(signal_id) else [])

    @precondition(lambda self: self.of(lambda run: run.on in runs.TIMED))
    @rule(n=ANY)
    def let_a_time_come(self, n: int) -> None:
        run = self.pick(self.of(lambda run: run.on in runs.TIMED), n)
        self.world.set(t.runs, run.id, due_at=0)
        assert self.world.database.write(lambda c: runs.wake_due(c, 100)) == [run.id]
        self.ledger.due(run.id)

    @precondition(lambda self: self.of(lambda run: run.status == "running"))
    @rule(n=ANY)
    def let_a_worker_die(self, n: int) -> None:
        run = self.pick(self.of(lambda run: run.status == "running"), n)
        self.world.set(t.runs, run.id, due_at=0)
        assert self.world.database.write(lambda c: runs.expire_leases(c, 100)) == [run.id]
        self.ledger.lose(run.id)

    @precondition(lambda self: self.of(lambda run: run.on == "timer"))
    @rule(n=ANY)
    def wake_a_sleeper(self, n: int) -> None:
        run = self.pick(self.of(lambda run: run.on == "timer"), n)
        self.world.database.write(lambda c: runs.wake(c, run.id))
        self.ledger.due(run.id)

    @precondition(lambda self: self.looks % 5 == 0)
    @rule()
    def let_the_clock_look(self) -> None:
        """Whatever it repairs, nothing of it changes where a run stands."""
        for repair in (runs.expire_leases, runs.wake_due, runs.overdue_wakes, runs.unsent_wakes, stuck.wake):
            self.world.database.write(lambda c, repair=repair: repair(c, 100))

    # What holds after each

    @invariant()
    def the_rows_are_what_the_ledger_says(self) -> None:
        mine = list(self.plans)
        found = {row.id: row for row in self.world.all(select(t.runs).where(t.runs.c.project_id.in_(mine)))}
        said = {run.id: (run.status, run.on, run.fence) for run in self.ledger.runs.values()}
        if self.plans:
            assert {row.id: (row.status, row.waiting_on, row.fence) for row in found.values()} == said
        about = {row.id: row.status for row in self.world.all(select(t.projects.c.id, t.projects.c.status))}
        assert {one: about[one] for one in mine} == {one.id: one.status for one in self.ledger.projects.values()}
        states = {
            (row.project_id, row.key): "live" if row.status in TASK_LIVE else row.status
            for row in self.world.all(select(t.tasks).where(t.tasks.c.project_id.in_(mine)))
        }
        assert states == {
            (project.id, key): task.status
            for project in self.ledger.projects.values()
            for key, task in project.tasks.items()
        }
        self.what_has_ended_stays_so_and_fences_rise(found)

    def what_has_ended_stays_so_and_fences_rise(self, found: dict[str, Any]) -> None:
        for row in found.values():
            assert row.fence >= self.fences.get(row.id, 0)
            assert row.status == self.ended.get(row.id, row.status)
            self.fences[row.id] = row.fence
            if row.status in RUN_ENDED:
                self.ended[row.id] = row.status
            looked_at = row.status in ("queued", "running") or row.waiting_on in ("timer", "backoff", "gate")
            assert (row.due_at is not None) == looked_at or row.waiting_on == "children"

    @invariant()
    def nobody_waits_in_vain(self) -> None:
        with self.world.database.read() as connection:
            assert stuck.find(connection, 10) == [], "a move queues whom it sets free, in its own transaction"

    @invariant()
    def nothing_breaks_a_rule(self) -> None:
        self.looks += 1
        if self.looks % EVERY == 0:
            self.look()

    def look(self) -> None:
        with self.world.database.read() as connection:
            assert [str(one) for one in invariants.broken(connection)] == []

    @invariant()
    def every_write_is_in_a_trace_once(self) -> None:
        lines = select(t.events.c.data).where(t.events.c.trace_id.in_(list(self.plans)), t.events.c.kind == "think")
        assert Counter(row.data["mark"] for row in self.world.all(lines)) == self.written

    def teardown(self) -> None:
        self.look()
        for plan in self.plans.values():
            self.world.database.write(lambda c, plan=plan: projects.cancel(c, plan.id, "the end"))

    # Small things

    def name_roots(self) -> None:
        """Tells the ledger what the store called the runs it has made."""
        for project_id, key, waits in self.ledger.owed:
            run_id = self.plans[project_id].run(key)
            assert run_id not in self.ledger.runs, "a task that begins has a new run"
            self.ledger.add_root(run_id, project_id, key, waits=waits)
        self.ledger.owed.clear()

    def at(self, claim: Claim, *, row: bool = True, **fields: Any) -> Checkpoint:
        """A write with a line of its own, which counts as written when it was."""
        self.mark = new_id()
        line = Event("think", {"mark": self.mark}, run_id=claim.run_id)
        number = self.numbers[claim.run_id] + 1 if row else None
        steps = self.numbers[claim.run_id]
        return Checkpoint(claim.run_id, claim.fence, number=number, node_id="n", steps=steps, events=[line], **fields)

    def wrote(self, claim: Claim, raised: list[Any]) -> None:
        self.written[self.mark] += 1
        self.numbers[claim.run_id] += 1
        for one in raised:
            self.ledger.raise_question(claim.run_id, one.id)

    def is_root(self, claim: Claim) -> bool:
        return self.ledger.runs[claim.run_id].parent is None

    def busy(self, claim: Claim) -> bool:
        return bool(self.ledger.open_children(self.ledger.runs[claim.run_id]))

    def depth(self, run_id: str) -> int:
        parent = self.ledger.runs[run_id].parent
        return 0 if parent is None else 1 + self.depth(parent)


def play(begin: Callable[[], World], examples: int, steps: int) -> None:
    """So many stories of so many moves; raises what the first that goes wrong raises."""
    chosen = hypothesis_settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    run_state_machine_as_test(type("Story", (AnyOrder,), {"begin": staticmethod(begin)}), settings=chosen)


@pytest.mark.parametrize(
    ("examples", "steps"),
    [
        pytest.param(5, 40, id="short"),
        pytest.param(60, 120, id="long", marks=[pytest.mark.long, pytest.mark.timeout(1800)]),
    ],
)
def test_the_moves_in_any_order_do_what_a_plain_ledger_says(world: World, examples: int, steps: int) -> None:
    play(lambda: world, examples, steps)


def without_the_fence() -> Any:
    move = checkpoints.move

    def anybody(connection: Any, checkpoint: Checkpoint, *columns: Any) -> str | None:
        fence = connection.execute(select(t.runs.c.fence).where(t.runs.c.id == checkpoint.run_id)).scalar_one()
        return move(connection, replace(checkpoint, fence=fence), *columns)

    return patch.object(checkpoints, "move", anybody)


Story = Callable[[AnyOrder], Any]
#: A rule of the store that is switched off, and the shortest story that shows it.
FAULTS: dict[str, tuple[Callable[[], Any], list[Story]]] = {
    "writes are not fenced": (
        without_the_fence,
        [
            lambda s: s.claim(n=0),
            lambda s: s.let_a_worker_die(n=0),
            lambda s: s.claim(n=0),
            lambda s: s.write_as_one_who_lost_it(n=0, how="save"),
        ],
    ),
    "a park does not look for answers": (
        lambda: patch.object(signals, "any_closed", lambda *_: False),
        [lambda s: s.claim(n=0), lambda s: s.ask(n=0, gate=False, soon=True)],
    ),
    "an answer can be used again": (
        lambda: patch.object(signals, "consume", lambda *_: None),
        [
            lambda s: s.claim(n=0),
            lambda s: s.checkpoint(n=0, row=True, asks=1),
            lambda s: s.use_an_answer(n=0, m=0, said=True),
        ],
    ),
    "the end of a child wakes nobody": (
        lambda: patch.object(children, "counted_down", lambda *_: False),
        [
            lambda s: s.claim(n=0),
            lambda s: s.fan_out(n=0, count=1, sequential=False),
            lambda s: s.claim(n=0),
            lambda s: s.end(n=0, how="completed", later=False),
        ],
    ),
    "an end closes no question": (
        lambda: patch.object(signals, "close_of_run", lambda *_, **__: []),
        [
            lambda s: s.claim(n=0),
            lambda s: s.checkpoint(n=0, row=True, asks=1),
            lambda s: s.end(n=0, how="completed", later=False),
        ],
    ),
}


def tell(story: list[Story]) -> None:
    """One story in a world of its own, with everything looked at after each move."""
    told = type("Told", (AnyOrder,), {"begin": staticmethod(lambda: World(MemoryDatabase()))})()
    told.first(shape={"a": []}, places=2, retries=0)
    for move in story:
        move(told)
        told.the_rows_are_what_the_ledger_says()
        told.nobody_waits_in_vain()
        told.every_write_is_in_a_trace_once()
        told.look()


@pytest.mark.parametrize("fault", list(FAULTS))
def test_a_store_with_a_fault_does_not_pass(fault: str) -> None:
    """The test above, tested: each story is one it may come upon, and is told without a word when nothing is wrong."""
    switched_off, story = FAULTS[fault]

    tell(story)
    with switched_off(), pytest.raises((AssertionError, pytest.fail.Exception)):
        tell(story)
