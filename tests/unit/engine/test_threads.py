"""A conversation through the engine: what each run of a thread begins with, and leaves (spec: engine 5, 19, 20)."""

from typing import Any

import pytest

from orchestrator.limits import Limits
from orchestrator.store import invariants, sends, threads
from orchestrator.store.sends import Message
from orchestrator.store.threads import NewThread
from registry.agents import AgentDefinition
from registry.packs import PACKS
from tests.unit.engine.stages import Recorder, call, turn
from workers.inprocess.conductor import Conductor
from workers.inprocess.script import read_script
from workers.inprocess.stage import stage

ADA: dict[str, Any] = {"id": "ada", "name": "Ada", "instructions": "Talk.", "permissions": {"agents": "allow"}}


class Talk:
    """One thread in memory, whose model says what the turns say."""

    def __init__(self, turns: list[Any], definition: dict[str, Any] | None = None, **script: Any) -> None:
        definition = definition or ADA
        ready = stage(definition, read_script(script), PACKS, Limits())
        self.database, self.services = ready.database, ready.services
        self.hears(*turns)
        agent = AgentDefinition.model_validate(definition)
        new = NewThread(id="talk", owner_id="local", title="A talk", agent=agent, known_as="own")
        self.id = self.database.write(lambda c: threads.create(c, new))

    def hears(self, *turns: Any) -> None:
        """What the model says from here on."""
        self.model = Recorder([turn(each) for each in turns])
        self.services.model = lambda _run: self.model

    def say(self, text: str, *answers: Any, **about: Any) -> Conductor:
        sent = self.database.write(lambda c: sends.send(c, self.id, Message(text, **about)))
        return self.go_on(str(sent.run_id), *answers)

    def go_on(self, run_id: str, *answers: Any) -> Conductor:
        conductor = Conductor(self.database, self.services, run_id, list(answers))
        conductor.carry_on()
        return conductor

    def stop(self) -> None:
        self.database.write(lambda c: sends.stop(c, self.id, "enough"))

    @property
    def asked(self) -> list[list[tuple[str, str]]]:
        """What the model was shown at each call: role and words, notes left out."""
        return [
            [(m["role"], str(m.get("content"))) for m in request.messages if not str(m["content"]).startswith("<note")]
            for request in self.model.requests
        ]

    @property
    def row(self) -> Any:
        with self.database.read() as connection:
            return threads.get(connection, self.id)

    def sound(self) -> bool:
        with self.database.read() as connection:
            return invariants.broken(connection) == []


def status(conductor: Conductor) -> tuple[str, str | None]:
    assert conductor.root is not None
    return conductor.root.status, conductor.root.code


def test_the_second_run_reads_what_the_first_said() -> None:
    talk = Talk(["Hello.", "You said hi."])

    talk.say("hi")
    done = talk.say("what did I say?")

    assert status(done) == ("completed", None)
    assert talk.asked[1] == [("user", "hi"), ("assistant", "Hello."), ("user", "what did I say?")]
    assert talk.sound()


def test_state_goes_from_run_to_run_and_the_definitions_first_values_do_not_come_back() -> None:
    counting = ADA | {
        "state": {"initial": {"count": "$input.text"}, "reducers": {"seen": "merge"}},
        "graph": {
            "nodes": {
                "start": {"type": "core:start"},
                "note": {"type": "control:assign", "patch": {"seen": ["$input.text"]}},
                "end": {"type": "core:end", "output": {"first": "$state.count", "seen": "$state.seen"}},
            },
            "edges": [{"from": "start", "to": "note"}, {"from": "note", "to": "end"}],
        },
    }
    talk = Talk([], counting)
    for text in ("one", "two", "three"):
        done = talk.say(text)

    assert done.root is not None and done.root.final == {"first": "one", "seen": ["one", "two", "three"]}


def test_a_stopped_run_leaves_no_open_call_and_no_plan_of_its_own() -> None:
    talk = Talk(
        [[call("agents_spawn", calls=[{"agentId": "bob", "input": "x"}]), call("send")], "And now?"],
        ADA | {"packs": {"agents": True}},
        tools={"send": {"operations": ["world"]}},
        agents={"bob": {"id": "bob", "name": "Bob", "instructions": "Help."}},
    )
    parked = talk.say("go")
    assert status(parked) == ("needs_input", None)

    talk.stop()
    done = talk.say("and?")

    assert status(done) == ("completed", None)
    assert done.root is not None and "spawns" not in done.root.state
    shown = talk.asked[1]
    assert [role for role, _ in shown] == ["user", "assistant", "tool", "tool", "user"]
    assert shown[3][1].startswith("skipped:")
    assert talk.sound()


def test_a_failed_run_is_no_end_of_the_conversation() -> None:
    talk = Talk(["Hello."], ADA)
    talk.say("hi")
    failed = talk.say("more")
    talk.hears("Here again.")

    done = talk.say("and now?")

    assert status(failed) == ("failed", "model_script_exhausted")
    assert status(done) == ("completed", None)
    assert talk.asked[0] == [
        *(("user", "hi"), ("assistant", "Hello."), ("user", "more"), ("user", "and now?")),
    ]


def test_after_a_handoff_the_other_speaks() -> None:
    talk = Talk(
        [[call("agents_handoff", agentId="bea")], "Bea here.", "Bea still."],
        ADA | {"packs": {"agents": True}},
        agents={"bea": {"id": "bea", "name": "Bea", "instructions": "You are Bea."}},
    )

    talk.say("get Bea")
    talk.say("still there?")

    assert (talk.row.agent_id, talk.row.agent_name, talk.row.origin_agent_id) == ("bea", "Bea", "ada")
    assert talk.model.requests[2].system.startswith("You are Bea.")


def test_ids_of_calls_stay_single_in_the_whole_conversation() -> None:
    look = {"calls": [{"id": "c1", "name": "look", "args": {}}]}
    talk = Talk([look, "One.", look, "Two."], tools={"look": {"returns": 1}})

    talk.say("first")
    done = talk.say("second")

    assert done.root is not None
    calls = [c["id"] for m in done.root.state["messages"] for c in m.get("toolCalls") or []]
    assert len(set(calls)) == len(calls) == 2
    assert status(done) == ("completed", None)


class TestByHand:
    def test_everything_is_summed_up_and_the_next_run_reads_the_summary(self) -> None:
        talk = Talk(["A.", "B.", "All of it, in short.", "C."])
        talk.say("one")
        talk.say("two")

        sent = talk.database.write(lambda c: sends.compact(c, talk.id))
        done = talk.go_on(str(sent.run_id))
        talk.say("three")

        assert done.root is not None and done.root.final == {"summedUp": True, "messages": 4}
        assert talk.asked[3] == [("user", "three")]
        assert "All of it, in short." in talk.model.requests[3].system
        assert talk.row.runs == 4 and talk.sound()

    def test_it_keeps_the_thread_busy_and_state_goes_on(self) -> None:
        talk = Talk(["A."])
        talk.say("one")
        talk.database.write(lambda c: sends.compact(c, talk.id))

        with pytest.raises(Exception, match="is at work"):
            talk.say("two")

    def test_where_nothing_was_said_nothing_happens(self) -> None:
        talk = Talk([])

        sent = talk.database.write(lambda c: sends.compact(c, talk.id))
        done = talk.go_on(str(sent.run_id))

        assert done.root is not None and done.root.final == {"summedUp": False, "messages": 0}


def test_the_pack_lists_the_conversations_and_says_which_is_this() -> None:
    talk = Talk([[call("thread_list")], "Listed."], ADA | {"packs": {"threads": True}})

    done = talk.say("which are there?")

    assert done.root is not None
    (told,) = [m["content"] for m in done.root.state["messages"] if m["role"] == "tool"]
    assert '"id":"talk"' in told and '"current":true' in told and '"hasSchedule":false' in told
