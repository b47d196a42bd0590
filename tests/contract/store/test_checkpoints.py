"""Checkpoints: what comes back is what was in memory, at the same price however long the history is."""

import copy
import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from sqlalchemy import func, select

from orchestrator.notify import Silence
from orchestrator.records import CallRecord, MessageRecord, RunRecord
from orchestrator.store import loading
from orchestrator.store import tables as t
from orchestrator.store.committer import Committer
from orchestrator.store_journal import StoreJournal
from registry.agents import AgentDefinition
from registry.errors import LeaseStale, Refused
from registry.skills.registry import SkillRegistry
from tests.contract.store.world import BODY, LEASE_MS, World, at, decision, together
from tests.support import eventually
from workers.engine import restore
from workers.engine.services import Services
from workers.engine.session import Session

KEYS = st.sampled_from(["a", "b", "c", "ä"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
ACTS = st.one_of(
    st.tuples(st.just("write"), KEYS, VALUES),
    st.tuples(st.just("remove"), KEYS),
    st.tuples(st.just("say"), st.text(max_size=5)),
    st.tuples(st.just("save")),
    st.tuples(st.just("die")),
)


@dataclass
class Worked:
    """A run under execution, with what its memory was at the last checkpoint."""

    world: World
    journal: StoreJournal
    run_id: str
    kept: Any = None
    session: Session = field(init=False)

    def __post_init__(self) -> None:
        self.take()
        self.save()

    def take(self) -> None:
        """Claims it and reads it back, as a worker does after another one's death."""
        claim = self.world.claimed(self.run_id)
        with self.world.database.read() as connection:
            record = loading.load(connection, self.run_id, claim.fence)
        self.session = session_of(record, self.journal)

    def save(self) -> None:
        self.session.steps += 1
        self.session.save()
        self.kept = self.memory

    @property
    def memory(self) -> Any:
        s = self.session
        return copy.deepcopy((s.state, s.steps, s.messages, s.resume, s.output, s.input))

    def do(self, act: str, *given: Any) -> None:
        if act == "write":
            self.session.write(*given)
        elif act == "remove":
            self.session.remove(*given)
        elif act == "say":
            self.session.append({"role": "user", "content": given[0]})
        elif act == "save":
            self.session.output = self.session.resume = len(self.session.state)
            self.save()
        else:
            self.world.set(t.runs, self.run_id, status="queued")
            self.take()
            assert self.memory == self.kept, "what comes back is what the last checkpoint had"


def session_of(record: RunRecord, journal: StoreJournal) -> Session:
    services = Services(SkillRegistry(), {}, journal, model=lambda _run: None)  # type: ignore[arg-type,return-value]
    return Session(record, AgentDefinition.model_validate(BODY), services)


@given(acts=st.lists(ACTS, max_size=25), reading=st.sampled_from([0, 0, 48]))
@hypothesis_settings(
    deadline=None, max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_a_run_read_back_is_as_it_was_in_memory(world: World, acts: list[tuple[Any, ...]], reading: int) -> None:
    plan = world.plan()
    worked = Worked(world, StoreJournal(world.database, lease_ms=LEASE_MS, notifier=Silence()), plan.run("a"))
    for number in range(reading):  # so that some begin just before a snapshot, and some long after
        worked.do("write", "n", number)
        worked.save()

    for act in acts:
        worked.do(*act)
    worked.do("die")


def test_every_fiftieth_checkpoint_holds_the_whole_state_and_the_others_only_what_changed(world: World) -> None:
    plan = world.plan()
    worked = Worked(world, StoreJournal(world.database, lease_ms=LEASE_MS, notifier=Silence()), plan.run("a"))
    worked.do("write", "kept", "x" * 100)
    for number in range(101):
        worked.do("write", "n", number)
        worked.save()

    rows = world.all(select(t.checkpoints).order_by(t.checkpoints.c.number))

    assert [row.number for row in rows if row.snapshot] == [1, 51, 101]
    assert rows[50].patch == {"set": {"kept": "x" * 100, "n": 49}}
    assert rows[49].patch == {"set": {"n": 48}}


def test_a_checkpoint_costs_the_same_at_turn_2_and_at_turn_200(world: World) -> None:
    plan = world.plan()
    worked = Worked(world, StoreJournal(world.database, lease_ms=LEASE_MS, notifier=Silence()), plan.run("a"))
    sent: dict[int, list[str]] = {}
    for turn in range(1, 201):
        worked.do("say", f"turn {turn}")
        worked.do("write", "n", turn)
        call = CallRecord(f"c{turn}", "act", turn, 0, "tool", {}, "done", outcome="ok", result={"id": f"c{turn}"})
        worked.session.keep_call(call)
        worked.session.emit("node.completed", type="tool:call", step=turn)
        sent[turn] = [s.split()[0] for s in world.counted(worked.save) if "BEGIN" not in s]

    assert sent[2] == sent[200]
    assert Counter(sent[200]) == {"UPDATE": 2, "INSERT": 4}, "as docs/architecture.md says"


def test_checkpoints_that_come_together_share_transactions(world: World) -> None:
    plan = world.plan({f"t{n}": [] for n in range(24)})
    claims = [world.claimed(plan.run(key)) for key in plan.tasks]
    committer = Committer(world.database, lease_ms=LEASE_MS)
    commits = Commits(world)

    with commits.counted():
        results = together(*(lambda claim=claim: committer.save(at(claim)) for claim in claims))

    assert results == [None] * 24
    assert {world.run(claim.run_id).checkpoint for claim in claims} == {1}
    assert commits.number < 24, "24 checkpoints at once, fewer commits"
    assert [line.seq for line in plan.trace] == list(range(1, len(plan.trace) + 1))


def test_a_checkpoint_that_cannot_be_written_does_not_spoil_its_neighbours(world: World) -> None:
    plan = world.plan({f"t{n}": [] for n in range(12)})
    claims = [world.claimed(plan.run(key)) for key in plan.tasks]
    world.write(at(claims[3], messages=[MessageRecord(1, "messages", {"role": "user"})]))
    broken = {
        3: {"number": 2, "messages": [MessageRecord(1, "messages", {"role": "user"})]},  # the number is taken
        5: {"consume": {"no such signal": "started"}},
    }
    stale = 7
    world.set(t.runs, claims[stale].run_id, fence=9)
    committer = Committer(world.database, lease_ms=LEASE_MS)

    works = [lambda n=n, claim=claim: committer.save(at(claim, **broken.get(n, {}))) for n, claim in enumerate(claims)]
    results = together(*works)

    assert {n for n, result in enumerate(results) if result is not None} == {3, 5, 7}
    assert type(results[3]).__name__ == "IntegrityError"
    assert isinstance(results[5], Refused)
    assert results[5].code == "already_executed"
    assert isinstance(results[7], LeaseStale)
    good = [claim for n, claim in enumerate(claims) if n not in (3, 5, 7)]
    assert {world.run(claim.run_id).checkpoint for claim in good} == {1}


def test_a_group_that_is_torn_down_tells_every_one_of_its_threads(world: World, monkeypatch: Any) -> None:
    plan = world.plan({f"t{n}": [] for n in range(4)})
    claims = [world.claimed(plan.run(key)) for key in plan.tasks]
    committer = Committer(world.database, lease_ms=LEASE_MS)

    def torn(_work: Any) -> None:
        if not torn_before:  # the first leads alone, and a group forms behind it
            torn_before.append(True)
            eventually(lambda: len(committer._waiting) == 3)
        raise KeyboardInterrupt

    torn_before: list[bool] = []

    monkeypatch.setattr(world.database, "write", torn)
    ended: list[type[BaseException] | None] = []

    def save(claim: Any) -> None:
        try:
            committer.save(at(claim))
            ended.append(None)
        except BaseException as error:
            ended.append(type(error))

    threads = [threading.Thread(target=save, args=(claim,)) for claim in claims]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)

    assert len(ended) == 4
    assert None not in ended, "nobody believes that its checkpoint stands"


@pytest.mark.parametrize("number", [1, None])
def test_a_refused_grant_takes_the_whole_checkpoint_back(world: World, number: int | None) -> None:
    plan = world.plan()
    claim = world.claimed(plan.run("a"))
    signal = decision()
    world.write(at(claim, number=None, signals=[signal]))
    before = world.run(claim.run_id)

    with pytest.raises(Refused, match="used already"):
        world.write(at(claim, number, consume={signal.id: "started"}, tokens=5))

    assert world.run(claim.run_id) == before, "an open question is no grant"
    assert world.all(select(func.count()).select_from(t.checkpoints))[0][0] == 0


def test_what_output_refers_to_comes_back_from_its_rows(world: World) -> None:
    plan = world.plan()
    worked = Worked(world, StoreJournal(world.database, lease_ms=LEASE_MS, notifier=Silence()), plan.run("a"))
    session = worked.session
    number = session.append({"role": "assistant", "content": "hello", "finishReason": "stop", "usage": {}})
    session.output, session.output_ref = restore.answer(session.state["messages"][-1]), {"message": number}
    worked.save()
    worked.do("die")
    assert worked.session.output["text"] == "hello"

    session = worked.session
    entries = [{"id": f"c{n}", "name": "tool", "result": n, "isError": False} for n in range(3)]
    for n in (2, 0, 1):  # in whatever order they finish
        done = CallRecord(f"c{n}", "act", session.steps, n, "tool", {}, "done", outcome="ok", result=entries[n])
        session.keep_call(done)
    session.output, session.output_ref = {"results": entries}, {"calls": session.steps}
    worked.save()
    worked.do("die")
    assert worked.session.output == {"results": entries}


class Commits:
    """Counts what reaches the disk."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.number = 0

    def counted(self) -> Any:
        from contextlib import contextmanager

        from sqlalchemy import event

        def note(_connection: Any) -> None:
            self.number += 1

        @contextmanager
        def counting() -> Any:
            event.listen(self._world.database.engine, "commit", note)
            yield
            event.remove(self._world.database.engine, "commit", note)

        return counting()
