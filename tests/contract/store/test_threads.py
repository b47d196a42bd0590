"""Conversations in the rows: who may speak when, what a run carries on, and what waits (spec: engine 5, 15, 20)."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Connection, update

from orchestrator.records import MessageRecord, Park, RunRecord
from orchestrator.store import agents, definitions, invariants, money, runs, sends, threads
from orchestrator.store import tables as t
from orchestrator.store.claims import Claim
from registry.agents import AgentDefinition
from registry.errors import Refused
from tests.contract.store.talks import Talk, definition, words
from tests.contract.store.world import World, at, decision, together


@pytest.fixture(autouse=True)
def sound(world: World) -> Iterator[None]:
    """Whatever a test did, the rows keep their rules."""
    yield
    with world.database.read() as connection:
        assert [str(row) for row in invariants.broken(connection)] == []


def test_a_message_begins_a_run_that_is_ready_for_a_worker(world: World) -> None:
    talk = Talk.begun(world, mode="auto")

    sent = talk.send("What is new?")

    assert sent.is_new and [wake.run_id for wake in sent.wakes] == [sent.run_id]
    record = talk.load()
    assert record.input == {"text": "What is new?", "origin": "person"}
    assert (record.kind, record.thread_id, record.mode, record.task, record.carried) == (
        "thread",
        talk.id,
        "auto",
        None,
        [],
    )


def test_history_and_state_go_from_run_to_run(world: World) -> None:
    talk = Talk.begun(world)
    talk.send("one")
    record = talk.load()
    record.state = {"count": 1, "name": "x"}
    talk.end(record, [{"role": "user", "content": "one"}, {"role": "assistant", "content": "first"}])
    talk.send("two")
    talk.answer("second")
    talk.send("three")

    record = talk.load()

    assert words(record) == ["one", "first", "two", "second"]
    assert record.state == {"count": 1, "name": "x"}


def test_a_run_that_left_no_state_hands_on_the_one_before(world: World) -> None:
    talk = Talk.begun(world)
    talk.send()
    record = talk.load()
    record.state = {"kept": True}
    talk.end(record, [])
    talk.send()
    talk.stop()
    talk.send()

    assert talk.load().state == {"kept": True}


def test_the_same_key_gives_the_same_run_whether_it_is_under_way_or_over(world: World) -> None:
    talk = Talk.begun(world)
    first = talk.send(client_key="k")

    again = talk.send(client_key="k")
    talk.answer()
    later = talk.send(client_key="k")

    assert (again.run_id, again.is_new) == (later.run_id, later.is_new) == (first.run_id, False)
    assert len(talk.runs) == 1


def test_keys_are_those_of_one_thread(world: World) -> None:
    one, other = Talk.begun(world), Talk.begun(world)

    assert one.send(client_key="k").run_id != other.send(client_key="k").run_id


def test_a_busy_thread_refuses_another_message(world: World) -> None:
    talk = Talk.begun(world)
    talk.send()

    with pytest.raises(Refused) as refused:
        talk.send()

    assert refused.value.code == "thread_busy"


@pytest.mark.parametrize(
    ("park", "code"),
    [
        (Park("needs_input", "signals"), "pending_signal"),
        (Park("waiting", "gate"), "pending_signal"),
        (Park("waiting", "timer", due_in_ms=60_000), "thread_busy"),
        (Park("waiting", "backoff", due_in_ms=60_000), "thread_busy"),
    ],
)
def test_a_parked_thread_says_whether_it_waits_for_a_person(world: World, park: Park, code: str) -> None:
    talk = Talk.begun(world)
    sent = talk.send()
    asked = decision()
    park.signal_ids.append(asked.id)
    world.park(at(world.claimed(str(sent.run_id)), park=park, signals=[asked]))

    with pytest.raises(Refused) as refused:
        talk.send()

    assert refused.value.code == code


def test_a_run_that_ends_frees_its_thread_however_it_ends(world: World) -> None:
    talk = Talk.begun(world)
    for status in ("completed", "failed", "cancelled"):
        talk.send()
        talk.answer(status=status)
        assert talk.row.run_id is None

    assert [run.status for run in talk.runs] == ["completed", "failed", "cancelled"]


def test_a_thread_that_is_not_there_or_was_deleted_hears_nothing(world: World) -> None:
    talk = Talk.begun(world)
    talk.send()
    world.database.write(lambda c: sends.remove(c, talk.id, "deleted by a test"))

    for gone in (talk, Talk(world, "nowhere")):
        with pytest.raises(Refused) as refused:
            gone.send()
        assert refused.value.code == "unknown_thread"
    assert [run.status for run in talk.runs] == ["cancelled"]
    with world.database.read() as connection:
        assert threads.listed(connection, "local") == []


class TestTriggers:
    def test_on_a_free_thread_it_begins_a_run(self, world: World) -> None:
        talk = Talk.begun(world)

        sent = talk.trigger("look", source_id="s7", mode="ask")

        assert talk.load().input == {"text": "look", "origin": "schedule"}
        assert talk.kinds("schedule.fired") == [{"id": "s7", "threadId": talk.id, "runId": sent.run_id}]

    def test_on_a_busy_thread_it_waits_and_begins_in_the_transaction_that_frees_the_thread(self, world: World) -> None:
        talk = Talk.begun(world)
        talk.send()
        queued = [talk.trigger(f"{n}", source_id=f"s{n}") for n in range(3)]

        ready = talk.answer()

        assert [sent.queued for sent in queued] == [True] * 3
        assert len(talk.kinds("trigger.queued")) == 3
        assert [wake.run_id for wake in ready] == [talk.row.run_id]
        for expected in "012":
            assert talk.load().input["text"] == expected
            world.database.write(lambda c: runs.release(c, world.worker, refund=True))
            talk.answer()
        assert (talk.row.run_id, talk.queue, len(talk.runs)) == (None, [], 4)

    def test_a_schedule_waits_once(self, world: World) -> None:
        talk = Talk.begun(world)
        talk.send()
        talk.trigger("first")

        second = talk.trigger("second")

        assert second.dropped and len(talk.queue) == 1
        assert talk.kinds("trigger.dropped") == [{"id": "s1", "threadId": talk.id, "reason": "waiting_already"}]

    def test_a_full_queue_drops_a_schedule_and_refuses_a_webhook(self, world: World) -> None:
        talk = Talk.begun(world)
        talk.send()
        for n in range(sends.PENDING):
            talk.trigger(source_id=f"h{n}", origin="webhook")

        assert talk.trigger(source_id="late").dropped
        with pytest.raises(Refused) as refused:
            talk.trigger(source_id="hook", origin="webhook")

        assert refused.value.code == "queue_full"
        assert len(talk.queue) == sends.PENDING

    def test_a_delivery_that_comes_twice_waits_once_and_runs_once(self, world: World) -> None:
        talk = Talk.begun(world)
        talk.send()
        talk.trigger(origin="webhook", client_key="d1")

        again = talk.trigger(origin="webhook", client_key="d1")
        talk.answer()
        late = talk.trigger(origin="webhook", client_key="d1")

        assert (again.queued, again.is_new, late.is_new) == (True, False, False)
        assert late.run_id == talk.row.run_id

    def test_what_it_knows_of_the_thread_is_its_own_choice(self, world: World) -> None:
        talk = Talk.begun(world)
        for text in ("one", "two", "three"):
            talk.send(text)
            talk.answer(text.upper())
        known = []
        for choice in ({"history": "none"}, {"history": "last", "history_last": 2}, {}):
            talk.trigger("tick", **choice)
            known.append(words(talk.load()))
            world.database.write(lambda c: runs.release(c, world.worker, refund=True))
            talk.answer("tock")

        assert known[0] == []
        assert known[1] == ["three", "THREE", "tick", "tock"]
        assert known[2] == ["one", "ONE", "two", "TWO", "three", "THREE", "tick", "tock", "tick", "tock"]

    def test_what_waits_for_an_agent_that_is_gone_is_dropped(self, world: World) -> None:
        save(world, definition("bob"))
        talk = Talk.begun(world, definition("bob"), known_as="saved")
        talk.send()
        talk.trigger()
        world.database.write(lambda c: c.execute(t.agents.delete().where(t.agents.c.key == "bob")))

        talk.answer()

        assert talk.kinds("trigger.dropped") == [{"id": "s1", "threadId": talk.id, "reason": "unknown_agent"}]
        assert (talk.row.run_id, talk.queue) == (None, [])

    def test_a_deleted_schedule_takes_back_what_waits(self, world: World) -> None:
        talk = Talk.begun(world)
        talk.send()
        talk.trigger()

        assert world.database.write(lambda c: sends.withdraw(c, "s1")) == 1
        assert talk.queue == []


class TestSpeaker:
    def test_an_agent_edited_between_runs_speaks_as_it_is_now(self, world: World) -> None:
        save(world, definition("bob"))
        talk = Talk.begun(world, definition("bob"), known_as="saved")
        talk.send()
        edited = definition("bob", instructions="Talk otherwise.")

        edit(world, edited)
        under_way = talk.load()
        world.database.write(lambda c: runs.release(c, world.worker, refund=True))
        talk.answer()
        talk.send()

        assert under_way.definition_digest == definition("bob").definition_digest
        assert talk.load().definition_digest == edited.definition_digest

    @pytest.mark.parametrize("known_as", ["own", "preset"])
    def test_so_does_one_of_a_file_and_a_preset(self, world: World, known_as: str) -> None:
        talk = Talk.begun(world, known_as=known_as)
        edited = definition(instructions="Talk otherwise.")

        world.database.write(lambda c: threads.renew_agent(c, talk.id, edited))
        talk.send()

        assert talk.load().definition_digest == edited.definition_digest

    def test_a_handoff_changes_who_speaks_next(self, world: World) -> None:
        talk = Talk.begun(world)
        talk.send()
        other = definition("bea")
        handed = ("bea", "Bea", other.definition_digest, other.to_json())
        world.database.write(lambda c: definitions.keep(c, {other.definition_digest: other.to_json()}))

        talk.answer(speaker=handed)

        assert (talk.row.agent_id, talk.row.origin_agent_id) == ("bea", "ada")
        talk.send()
        assert talk.load().agent_id == "bea"

    def test_nobody_may_be_missing(self, world: World) -> None:
        talk = Talk.begun(world, known_as="saved")

        with pytest.raises(Refused) as refused:
            talk.send()

        assert refused.value.code == "unknown_agent"

    def test_whoever_speaks_somewhere_is_told_from_whoever_does_not(self, world: World) -> None:
        talk = Talk.begun(world)

        with world.database.read() as connection:
            assert threads.speaks_in(connection, "local", "ada") == talk.id
            assert threads.speaks_in(connection, "local", "bea") is None
            assert threads.speaks_in(connection, "somebody else", "ada") is None


class TestStop:
    def test_it_ends_the_run_and_the_thread_goes_on_with_what_waits(self, world: World) -> None:
        talk = Talk.begun(world)
        sent = talk.send()
        talk.load()
        talk.trigger("next")

        stopped, ready = talk.stop()

        assert stopped == sent.run_id
        assert [run.status for run in talk.runs] == ["cancelled", "queued"]
        assert [wake.run_id for wake in ready] == [talk.row.run_id]

    def test_a_call_left_open_has_a_result_before_anybody_reads_on(self, world: World) -> None:
        talk = Talk.begun(world)
        talk.send()
        record = talk.load()
        asks = {"role": "assistant", "content": "", "toolCalls": [{"id": "c1", "name": "x", "args": {}}]}
        messages = [MessageRecord(1, "messages", {"role": "user", "content": "go"}), MessageRecord(2, "messages", asks)]
        world.write(at(world_claim(record), messages=messages, messages_count=2, snapshot=True))

        talk.stop()
        talk.send()

        carried = talk.load().carried
        assert [(m.body["role"], m.body.get("toolCallId")) for m in carried][-1] == ("tool", "c1")
        assert talk.kinds("tool.result")[-1]["outcome"] == "skipped"

    def test_a_worker_that_has_the_run_cannot_write_any_more(self, world: World) -> None:
        talk = Talk.begun(world)
        talk.send()
        record = talk.load()

        talk.stop()

        assert world.write(at(world_claim(record))) == {record.id}

    def test_a_free_thread_has_nothing_to_stop(self, world: World) -> None:
        assert Talk.begun(world).stop() == (None, [])


class TestSummaries:
    def test_a_summary_covers_what_its_own_run_knew(self, world: World) -> None:
        talk = Talk.begun(world)
        for text in ("one", "two"):
            talk.send(text)
            talk.answer(text.upper())
        talk.send("three")
        record = talk.load()
        summary = {"role": "assistant", "content": "so far", "kind": "compaction", "coveredFrom": 1, "coveredUntil": 4}
        talk.end(record, [{"role": "user", "content": "three"}, summary, {"role": "assistant", "content": "THREE"}])

        def covered(**choice: Any) -> object:
            talk.trigger("tick", **choice)
            (found,) = [m.body for m in talk.load().carried if m.body.get("kind") == "compaction"]
            talk.stop()
            return found.get("coveredUntil")

        assert covered() == 4, "the same history, the same places"
        assert covered(history="last", history_last=3) == 2, "the first run is not in it"
        assert covered(history="last", history_last=3) == 0, "all it covers is before it"

    def test_one_that_knew_less_is_none_of_the_whole(self, world: World) -> None:
        talk = Talk.begun(world)
        talk.send("one")
        talk.answer("ONE")
        talk.trigger("tick", history="none")
        summary = {"role": "assistant", "content": "tick", "kind": "compaction", "coveredFrom": 1, "coveredUntil": 1}
        talk.end(talk.load(), [{"role": "user", "content": "tick"}, summary])
        talk.send("two")

        (found,) = [m.body for m in talk.load().carried if m.body.get("kind") == "compaction"]

        assert "coveredUntil" not in found


class TestMoney:
    def test_each_run_has_the_whole_cap(self, world: World) -> None:
        talk = Talk.begun(world, max_cost_micro=100)
        window = f"project:{talk.id}"
        for _ in range(2):
            run_id = str(talk.send().run_id)
            world.database.write(lambda c, r=run_id: money.reserve(c, r, "call", [money.Limit(window, 100)], 90))
            talk.answer(settled={"call": 90}, cost_micro=90)

        assert world.row(t.windows, window).spent_micro == 180
        assert world.row(t.projects, talk.id).cost_micro == 180


class TestRaces:
    def test_of_two_messages_at_once_one_is_taken(self, world: World) -> None:
        for _ in range(5):
            talk = Talk.begun(world)

            got = together(*(partial(talk.send, f"{n}", client_key=f"k{n}") for n in range(4)))

            refused = [one.code for one in got if isinstance(one, Refused)]
            assert refused == ["thread_busy"] * 3
            assert len(talk.runs) == 1

    def test_of_one_message_sent_twice_at_once_one_run_comes(self, world: World) -> None:
        for _ in range(5):
            talk = Talk.begun(world)

            got = together(*(partial(talk.send, client_key="k") for _ in range(4)))

            assert len({one.run_id for one in got}) == 1
            assert sum(one.is_new for one in got) == 1

    def test_a_message_that_comes_while_the_run_ends_is_refused_or_taken(self, world: World) -> None:
        for _ in range(8):
            talk = Talk.begun(world)
            talk.send()
            record = talk.load()

            _, got = together(partial(talk.end, record, []), partial(talk.send, "again"))

            busy = isinstance(got, Refused) and got.code == "thread_busy"
            assert busy or got.is_new
            assert (talk.row.run_id is None) == busy

    def test_a_trigger_that_comes_while_the_run_ends_is_never_lost(self, world: World) -> None:
        for _ in range(8):
            talk = Talk.begun(world)
            talk.send()
            record = talk.load()

            together(partial(talk.end, record, []), talk.trigger)

            assert (talk.row.run_id is not None, talk.queue) == (True, [])
            assert talk.load().input["text"] == "tick"

    def test_a_stop_and_an_end_at_once_end_the_run_once(self, world: World) -> None:
        for _ in range(8):
            talk = Talk.begun(world)
            talk.send()
            record = talk.load()
            talk.trigger()

            together(partial(talk.end, record, []), talk.stop)

            assert len(talk.runs) in (2,), "what waited began once"
            assert talk.runs[0].status in ("completed", "cancelled")

    def test_a_stop_and_a_message_at_once_leave_one_run_or_none(self, world: World) -> None:
        for _ in range(8):
            talk = Talk.begun(world)
            talk.send()

            together(talk.stop, partial(talk.send, "again"))

            assert len(talk.runs) in (1, 2)


def test_a_message_costs_the_same_however_long_the_thread_is(world: World) -> None:
    talk = Talk.begun(world)
    talk.send()
    talk.answer()
    early = world.counted(talk.send)
    talk.answer()
    for n in range(40):
        talk.send(f"{n}")
        talk.answer()

    late = world.counted(talk.send)

    assert len(late) == len(early)
    loading = world.counted(talk.load)
    assert sum("FROM messages" in statement for statement in loading) == 2, "its own, and all before, in one each"


def world_claim(record: RunRecord) -> Claim:
    return Claim(record.id, record.fence, 1)


def save(world: World, agent: AgentDefinition) -> None:
    world.database.write(lambda c: agents.save(c, "local", agent, name_key=agent.id, call_key=None))


def edit(world: World, agent: AgentDefinition) -> None:
    def move(connection: Connection) -> None:
        definitions.keep(connection, {agent.definition_digest: agent.to_json()})
        mine = t.agents.c.key == agent.id
        connection.execute(update(t.agents).where(mine).values(definition_digest=agent.definition_digest))

    world.database.write(move)
