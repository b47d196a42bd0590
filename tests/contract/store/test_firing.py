"""Schedules that are due: each due time once, late ones by rule, in one transaction with what they start (spec: skills
19)."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import delete, insert, select, update

from orchestrator import firing, queue
from orchestrator.clock import Clock
from orchestrator.settings import Settings
from orchestrator.store import definitions, kept, threads
from orchestrator.store import schedules as moves
from orchestrator.store import tables as t
from orchestrator.store.database import get_database, now_ms
from orchestrator.store.kept import firings, generators, schedules
from orchestrator.store.threads import NewThread
from registry.agents import AgentDefinition
from registry.errors import Unavailable
from registry.ids import new_id

MINUTE = 60_000
PROMPT = {"kind": "prompt", "text": "Write the digest."}
CALL = {"kind": "skill", "skill": "math.evaluate", "input": {"expression": "$input.text + 1"}}


class House:
    """Schedules in a database, and a clock that ticks when told."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.database = settings, get_database(settings)

    def schedule(self, due_ago_ms: int = 1, **columns: Any) -> str:
        row = {
            "id": new_id(),
            "owner_id": "local",
            "title": "Digest",
            "kind": "every",
            "spec": "60",
            "timezone": "UTC",
            "action": PROMPT,
            "status": "active",
        } | columns
        times = {"created_at": now_ms() - 90 * MINUTE, "next_run_at": now_ms() - due_ago_ms}
        self.database.write(lambda c: c.execute(insert(schedules).values(**times, **row)))
        return str(row["id"])

    def due_again(self, schedule_id: str) -> None:
        again = update(schedules).where(schedules.c.id == schedule_id).values(next_run_at=now_ms() - 1)
        self.database.write(lambda c: c.execute(again))

    def tick(self) -> int:
        return Clock(self.settings, self.database, new_id()).tick().schedules

    def row(self, schedule_id: str) -> Any:
        return self.all(select(schedules).where(schedules.c.id == schedule_id))[0]

    def firings(self, schedule_id: str) -> list[Any]:
        return self.all(select(firings).where(firings.c.schedule_id == schedule_id).order_by(firings.c.due_at))

    @property
    def projects(self) -> list[Any]:
        return self.all(select(t.projects).order_by(t.projects.c.created_at))

    def all(self, query: Any) -> list[Any]:
        with self.database.read() as connection:
            return list(connection.execute(query))

    def set(self, table: Any, **columns: Any) -> None:
        self.database.write(lambda c: c.execute(update(table).values(**columns)))


@pytest.fixture
def house(store_settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    monkeypatch.setattr(queue, "advance", lambda *_: True)
    monkeypatch.setattr(queue, "send", lambda *_: 0)
    monkeypatch.setattr("orchestrator.clock.LEASE_MS", 0)  # every clock of these tests is elected
    made = House(store_settings)
    yield made
    made.database.dispose()


def test_a_due_schedule_starts_a_project_and_moves_on(house: House) -> None:
    due = house.schedule()

    assert house.tick() == 1
    assert house.tick() == 0

    row, (project,), (firing_row,) = house.row(due), house.projects, house.firings(due)
    assert (row.status, row.runs, row.last_result) == ("active", 1, "fired")
    assert row.next_run_at > row.last_run_at
    assert (project.status, project.title, project.owner_id) == ("running", "Digest", "local")
    assert (firing_row.result, firing_row.project_id) == ("fired", project.id)
    (task,) = house.all(select(t.tasks))
    assert (task.instruction, task.role, task.status) == ("Write the digest.", "generalist", "queued")
    kinds = [line.kind for line in house.all(select(t.events).where(t.events.c.trace_id == project.id))]
    assert "schedule.fired" in kinds


def test_what_is_not_due_or_not_active_waits(house: House) -> None:
    house.schedule(due_ago_ms=-MINUTE)
    house.schedule(status="paused")

    assert house.tick() == 0
    assert house.projects == []


def test_many_clocks_fire_a_due_time_once(house: House) -> None:
    due = house.schedule()
    threads = [threading.Thread(target=firing.fire_due, args=(house.settings, house.database, 10)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert len(house.projects) == len(house.firings(due)) == house.row(due).runs == 1


def test_up_to_fifteen_minutes_late_runs_once_and_later_is_missed(house: House) -> None:
    late = house.schedule(due_ago_ms=14 * MINUTE, spec="5")
    missed = house.schedule(due_ago_ms=16 * MINUTE, spec="5")

    assert house.tick() == 2
    assert house.tick() == 0

    assert [row.result for row in house.firings(late)] == ["fired"]
    assert [row.result for row in house.firings(missed)] == ["missed"]
    assert "16 minutes" in house.firings(missed)[0].reason
    assert house.row(missed).status == "active" and house.row(missed).next_run_at > 0
    assert len(house.projects) == 1


def test_a_time_that_comes_while_the_last_one_works_is_skipped(house: House) -> None:
    due = house.schedule()
    house.tick()
    house.due_again(due)
    assert house.tick() == 1
    assert [row.result for row in house.firings(due)] == ["fired", "skipped"]

    house.set(t.projects, status="completed")
    house.due_again(due)
    house.tick()
    assert [row.result for row in house.firings(due)] == ["fired", "skipped", "fired"]
    assert house.row(due).runs == 2


def test_it_is_done_after_its_last_run(house: House) -> None:
    once = house.schedule(kind="at", spec="1")
    twice = house.schedule(max_runs=2, runs=1)
    ended = house.schedule(end_at=1)

    assert house.tick() == 3
    assert [house.row(one).status for one in (once, twice, ended)] == ["done", "done", "done"]
    assert house.row(twice).next_run_at is None


def test_five_failures_in_a_row_pause_it_and_tell_its_owner(house: House) -> None:
    due = house.schedule()
    for _ in range(5):
        house.tick()
        house.set(t.projects, status="failed")
        house.due_again(due)
    assert house.row(due).runs == 5

    assert house.tick() == 1

    (alert,) = house.all(select(t.signals))
    assert (house.row(due).status, house.row(due).next_run_at, len(house.projects)) == ("paused", None, 5)
    assert (alert.kind, alert.status, alert.owner_id) == ("alert", "open", "local")
    assert "Digest" in alert.title and "5 times" in alert.body

    house.set(schedules, status="active")
    house.due_again(due)
    house.tick()
    assert len(house.projects) == 6, "a person who lets it run again gives it a new start"


def test_a_success_in_between_forgives(house: House) -> None:
    due = house.schedule()
    for status in ("failed", "failed", "completed", "failed", "failed", "failed"):
        house.tick()
        newest = house.projects[-1].id
        house.database.write(
            lambda c, newest=newest, status=status: c.execute(  # type: ignore[misc]
                update(t.projects).where(t.projects.c.id == newest).values(status=status)
            )
        )
        house.due_again(due)

    house.tick()
    assert house.row(due).status == "active" and len(house.projects) == 7


def test_a_skill_is_called_by_a_run_of_its_own_with_its_input_as_data(house: House) -> None:
    house.schedule(action=CALL)
    house.tick()

    (task,) = house.all(select(t.tasks))
    assert task.input == CALL["input"] and task.retries == 0
    with house.database.read() as connection:
        agent = AgentDefinition.model_validate(definitions.get(connection, task.definition_digest))
    assert agent.skills == ["math.evaluate"]
    call = agent.effective_graph().nodes["call"]
    assert (call.type, call.name, call.args) == ("tool:call", "math.evaluate", "$input.data")  # type: ignore[union-attr]


def test_a_prompt_of_a_saved_agent_is_done_by_that_agent(house: House) -> None:
    body = {"id": "scribe", "name": "Scribe", "role": "writer", "tier": "deep", "skills": ["math.evaluate"]}
    saved = AgentDefinition.model_validate(body)
    row = {"id": "scribe", "owner_id": "local", "key": "scribe", "name": "Scribe", "role": "writer", "created_at": 1}

    def write(connection: Any) -> None:
        definitions.keep(connection, {saved.definition_digest: saved.to_json()})
        connection.execute(insert(t.agents).values(row | {"definition_digest": saved.definition_digest}))

    house.database.write(write)
    house.schedule(agent_id="scribe")
    house.schedule(agent_id="gone")
    house.tick()

    tasks = house.all(select(t.tasks.c.agent_id, t.tasks.c.role, t.tasks.c.tier).order_by(t.tasks.c.agent_id))
    assert [tuple(task) for task in tasks] == [("generalist", "generalist", "standard"), ("scribe", "writer", "deep")]


GENERATOR = {
    "id": "g",
    "owner_id": "local",
    "name": "Report",
    "name_key": "report",
    "description": "",
    "inputs": [{"key": "topic", "label": "Topic", "type": "text", "required": True}],
    "steps": [
        {"key": "look", "title": "Look", "role": "researcher", "instruction": "Look up {{topic}}."},
        {"key": "write", "title": "Write", "role": "writer", "instruction": "Write.", "dependsOn": ["look"]},
    ],
    "version": 1,
    "created_at": 1,
}


def test_a_generator_becomes_its_plan_and_one_that_is_gone_fails_the_schedule(house: House) -> None:
    house.database.write(lambda c: c.execute(insert(generators).values(GENERATOR)))
    action = {"kind": "generator", "generatorId": "g", "inputs": {"topic": "{{key}} $input"}}
    due = house.schedule(action=action)
    house.tick()

    tasks = house.all(select(t.tasks).order_by(t.tasks.c.position))
    assert [(task.key, task.instruction) for task in tasks] == [
        ("look", "Look up {{key}} $input."),
        ("write", "Write."),
    ]

    house.set(t.projects, status="completed")
    house.database.write(lambda c: c.execute(delete(generators)))
    house.due_again(due)
    house.tick()
    assert house.row(due).status == "failed"
    assert [signal.kind for signal in house.all(select(t.signals))] == ["alert"]


def test_one_that_cannot_be_fired_moves_on_and_rests_when_that_goes_on(house: House) -> None:
    """However many there are of them, none keeps another from its time."""
    bad = house.schedule(due_ago_ms=2 * MINUTE, action={"kind": "nonsense"})
    good = house.schedule()

    house.tick()
    assert (house.row(bad).runs, house.row(good).runs) == (0, 1)
    assert [row.result for row in house.firings(bad)] == ["failed"]
    assert house.tick() == 0, "it is not at the head of the queue for ever"

    for _ in range(4):
        assert house.row(bad).status == "active"
        house.due_again(bad)
        house.tick()
    (alert,) = house.all(select(t.signals))
    assert (house.row(bad).status, house.row(bad).next_run_at, alert.kind) == ("failed", None, "alert")


@pytest.mark.parametrize("columns", [{"kind": "at", "spec": "1", "action": {}}, {"kind": "cron", "spec": "never"}])
def test_one_that_has_no_other_time_fails_at_once(house: House, columns: dict[str, Any]) -> None:
    due = house.schedule(**columns)
    house.tick()

    assert (house.row(due).status, [row.result for row in house.firings(due)]) == ("failed", ["failed"])
    assert len(house.all(select(t.signals))) == 1


def test_a_database_that_is_away_leaves_it_due(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    due = house.schedule()

    def away(*_: Any) -> None:
        raise Unavailable("gone")

    with monkeypatch.context() as patched:
        patched.setattr("orchestrator.starting.start", away)
        house.tick()
    assert (house.firings(due), house.row(due).status) == ([], "active")
    house.tick()
    assert house.row(due).runs == 1


GATES = {"fs.read": "allow", "fs.write": "deny", "process": "ask", "network": "allow"}


def test_what_it_starts_has_its_makers_mode_and_never_more_rights(house: House) -> None:
    maker = {"agentId": "ada", "mode": "plan", "permissions": {"fs.write": "allow"}, "gates": GATES}
    house.schedule(maker=maker)
    house.tick()

    (project,) = house.projects
    assert project.mode == "plan"
    assert project.permissions == {"fs.write": "deny"}, "a team agent asks for process, and may use the network"


# in a thread


def thread(house: House, **about: Any) -> str:
    agent = AgentDefinition.model_validate({"id": "ada", "name": "Ada", "instructions": "Talk."})
    new = NewThread(id=new_id(), owner_id="local", title="Talk", agent=agent, kind="schedule", known_as="own", **about)
    return house.database.write(lambda c: threads.create(c, new))


def ended(house: House, thread_id: str, status: str = "completed") -> None:
    """The run under way has ended, and the thread is free."""

    def end(connection: Any) -> None:
        (run_id,) = connection.execute(select(kept.threads.c.run_id).where(kept.threads.c.id == thread_id)).one()
        connection.execute(update(t.runs).where(t.runs.c.id == run_id).values(status=status, due_at=None))
        connection.execute(update(kept.threads).where(kept.threads.c.id == thread_id).values(run_id=None))

    house.database.write(end)


def test_one_with_a_thread_says_its_text_there(house: House) -> None:
    room = thread(house)
    due = house.schedule(thread_id=room, mode="ask", history="last", history_last=2)
    assert house.tick() == 1
    assert house.tick() == 0

    (run,) = house.all(select(t.runs))
    (firing_row,) = house.firings(due)
    assert (run.project_id, run.kind, run.mode, run.agent_id) == (room, "thread", "ask", "ada")
    assert (firing_row.result, firing_row.run_id, firing_row.project_id) == ("fired", run.id, None)
    assert (house.row(due).runs, house.row(due).last_result) == (1, "fired")
    (said,) = house.all(select(t.checkpoints.c.input))
    assert said.input == {"text": "Write the digest.", "origin": "schedule"}
    lines = house.all(select(t.events).where(t.events.c.trace_id == room))
    assert [line.data for line in lines if line.kind == "schedule.fired"] == [
        {"id": due, "threadId": room, "runId": run.id}
    ]


def test_a_busy_thread_takes_it_later_and_once(house: House) -> None:
    room = thread(house)
    due = house.schedule(thread_id=room)
    for _ in range(3):
        house.tick()
        house.due_again(due)

    assert [row.result for row in house.firings(due)] == ["fired", "queued", "dropped"]
    assert len(house.all(select(kept.triggers))) == 1


def test_one_with_nothing_to_say_only_moves_on(house: House) -> None:
    due = house.schedule(thread_id=thread(house), action={"kind": "prompt", "text": " "})
    house.tick()

    assert [row.result for row in house.firings(due)] == ["empty"]
    assert house.row(due).next_run_at > now_of(house) and house.all(select(t.runs)) == []


def now_of(house: House) -> int:
    return int(house.all(select(now_ms().label("now")))[0].now)


def test_late_and_missed_hold_in_a_thread_too(house: House) -> None:
    due = house.schedule(thread_id=thread(house), due_ago_ms=16 * MINUTE, spec="1")
    house.tick()
    assert [row.result for row in house.firings(due)] == ["missed"]
    assert house.row(due).next_run_at > now_of(house), "never a burst"


def test_five_failed_runs_pause_it_until_somebody_lets_it_go_on(house: House) -> None:
    room = thread(house)
    due = house.schedule(thread_id=room)
    for _ in range(5):
        house.tick()
        ended(house, room, "failed")
        house.due_again(due)
    house.tick()

    (alert,) = house.all(select(t.signals))
    assert (house.row(due).status, alert.kind, len(house.all(select(t.runs)))) == ("paused", "alert", 5)

    house.database.write(lambda c: moves.let_go_on(c, due, 1))
    house.due_again(due)
    house.tick()
    assert (house.row(due).status, len(house.all(select(t.runs)))) == ("active", 6)


@pytest.mark.parametrize("gone", ["thread", "agent"])
def test_without_its_thread_or_its_agent_it_fails_and_says_so(house: House, gone: str) -> None:
    room = thread(house)
    due = house.schedule(thread_id=room)
    if gone == "thread":
        house.set(t.projects, status="cancelled")
    else:
        house.database.write(lambda c: c.execute(delete(t.agents)))
    house.tick()

    (alert,) = house.all(select(t.signals))
    assert (house.row(due).status, alert.kind) == ("failed", "alert")
    assert house.all(select(t.runs)) == []


def test_many_clocks_say_it_once(house: House) -> None:
    due = house.schedule(thread_id=thread(house))
    together = [threading.Thread(target=firing.fire_due, args=(house.settings, house.database, 10)) for _ in range(6)]
    for one in together:
        one.start()
    for one in together:
        one.join(30)

    assert len(house.firings(due)) == len(house.all(select(t.runs))) == house.row(due).runs == 1
