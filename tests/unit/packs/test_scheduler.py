"""The pack `scheduler` over real rows (spec: engine 15, 20): every tool of it, and each thing it refuses."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert, select, update

from orchestrator.ports import scheduler as port
from orchestrator.ports.wiring import RowPorts, wire
from orchestrator.settings import Settings
from orchestrator.store import schedules as moves
from orchestrator.store import sends, threads
from orchestrator.store import tables as t
from orchestrator.store.database import Database, get_database, now_ms
from orchestrator.store.kept import firings, schedules, triggers
from orchestrator.store.threads import NewThread
from registry.agents import AgentDefinition
from registry.graph.targets import AgentCard
from registry.ids import new_id
from registry.packs.scheduler import PACK
from registry.permissions import Policy
from registry.skills import catalogue
from registry.skills.context import Caller, Colleague, SkillContext
from registry.skills.registry import SkillRegistry, SkillResult

TOOLS = SkillRegistry(PACK.tools)
ADA = AgentDefinition.model_validate({"id": "ada", "name": "Ada", "instructions": "Talk."})
BOB = AgentDefinition.model_validate({"id": "bob", "name": "Bob", "permissions": {"process": "allow"}})
NEW = {"name": "Morning", "cron": "0 7 * * *", "detail": "Read the news."}


@pytest.fixture
def settings(tmp_path: Path, database_url: str) -> Settings:
    return Settings(home=tmp_path / "home", database_url=database_url, stand_in=True, _env_file=None)  # type: ignore[call-arg]


@pytest.fixture
def database(settings: Settings) -> Iterator[Database]:
    made = get_database(settings)
    yield made
    made.dispose()


@pytest.fixture
def ports(settings: Settings, database: Database) -> RowPorts:
    return wire(settings, catalogue.build())


class Desk:
    """Ada, who calls tools."""

    def __init__(self, ports: RowPorts, database: Database) -> None:
        self.ports, self.database, self.calls = ports, database, 0

    def __call__(self, tool: str, /, **args: Any) -> SkillResult:
        return self.by(ADA, Policy({}, {}), tool, args)

    def by(
        self,
        agent: AgentDefinition,
        policy: Policy,
        tool: str,
        args: dict[str, Any],
        *,
        call: str | None = None,
        project: str | None = None,
    ) -> SkillResult:
        self.calls += 1
        caller = Caller(
            "run", "local", project, run_id="r", agent_id=agent.id, call_id=call or str(self.calls), thread_id=project
        )
        roster = [
            *(Colleague(AgentCard(a.id, a.name)) for a in (ADA, BOB)),
            Colleague(AgentCard("helper", "Helper", "delegate")),
        ]
        context = SkillContext(caller, policy, scheduler=self.ports.scheduler, agent=agent, roster=roster)
        return TOOLS.invoke(tool, args, context)

    def made(self, **args: Any) -> dict[str, Any]:
        result = self("schedule_set", **(NEW | args))
        assert result.ok, result
        return dict(result.output)

    def talk(self, agent: AgentDefinition = ADA, owner: str = "local") -> str:
        new = NewThread(id=new_id(), owner_id=owner, title="Talk", agent=agent, known_as="own")
        return self.database.write(lambda c: threads.create(c, new))

    def all(self, query: Any) -> list[Any]:
        with self.database.read() as connection:
            return list(connection.execute(query))


@pytest.fixture
def desk(ports: RowPorts, database: Database) -> Desk:
    def save(connection: Any) -> None:
        from orchestrator.store import agents

        agents.save(connection, "local", BOB, name_key="bob", call_key=None)

    database.write(save)
    return Desk(ports, database)


def refused(result: SkillResult, code: str, words: str) -> None:
    assert (result.ok, result.code) == (False, code), result
    assert words in str(result.error)


# schedule_set, schedule_list


def test_a_new_schedule_has_a_thread_of_its_own_and_a_time_to_come(desk: Desk) -> None:
    made = desk.made(timezone="Europe/Warsaw")
    schedule, thread = made["schedule"], made["thread"]

    assert schedule | {"id": "", "threadId": "", "nextRunAt": 0} == {
        "id": "",
        "name": "Morning",
        "status": "active",
        "cron": "0 7 * * *",
        "timezone": "Europe/Warsaw",
        "detail": "Read the news.",
        "agentId": "ada",
        "mode": None,
        "history": "none",
        "historyLast": None,
        "nextRunAt": 0,
        "threadId": "",
        "lastFiredAt": None,
    }
    assert schedule["nextRunAt"] > desk.all(select(now_ms().label("now")))[0].now
    assert thread == {"id": schedule["threadId"], "title": "Morning", "kind": "schedule", "agentId": "ada"}
    assert desk("schedule_list").output == [schedule]


def test_its_first_time_is_after_now_in_its_zone(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    noon = 1_764_504_000_000  # 2025-11-30T12:00:00Z, 13:00 in Warsaw
    monkeypatch.setattr(port, "_now", lambda _connection: noon)
    at_one = desk.made(cron="0 13 * * *", timezone="Europe/Warsaw")["schedule"]
    in_utc = desk.made(name="B", cron="0 13 * * *")["schedule"]

    assert at_one["nextRunAt"] == noon + 24 * 3_600_000, "strictly after: not at the moment it is set"
    assert in_utc["nextRunAt"] == noon + 3_600_000


def test_a_call_that_runs_again_finds_its_schedule(desk: Desk) -> None:
    first = desk.by(ADA, Policy({}, {}), "schedule_set", NEW, call="same")
    again = desk.by(ADA, Policy({}, {}), "schedule_set", NEW, call="same")

    assert first.ok and first.output == again.output
    assert len(desk.all(select(schedules))) == len(desk.all(select(t.projects))) == 1


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"cron": "0 7 * * *"}, "needs name"),
        ({"name": "A"}, "needs cron"),
        ({"name": " ", "cron": "0 7 * * *"}, "name"),
        (NEW | {"cron": "0 7 * *"}, "five fields"),
        (NEW | {"cron": "@daily"}, "five fields"),
        (NEW | {"cron": "61 * * * *"}, "cron"),
        (NEW | {"cron": "0 0 30 2 *"}, "day-of-month"),
        (NEW | {"timezone": "Mars/Base"}, "timezone"),
        (NEW | {"mode": "plan"}, "mode"),
        (NEW | {"history": "some"}, "history"),
        (NEW | {"historyLast": 0}, "historyLast"),
        (NEW | {"historyLast": 3, "history": "all"}, "historyLast"),
        (NEW | {"agentId": "nobody"}, "no agent is meant"),
        (NEW | {"agentId": "helper"}, "can only be spawned"),
        (NEW | {"threadId": "nowhere"}, "there is no thread"),
        (NEW | {"threadId": "self"}, "this run is in no thread"),
        (NEW | {"approved": True}, "approved"),
    ],
)
def test_what_makes_no_schedule_is_refused_and_nothing_is_written(desk: Desk, args: Any, words: str) -> None:
    refused(desk("schedule_set", **args), "invalid_input", words)
    assert desk.all(select(schedules)) == desk.all(select(t.projects)) == []


def test_it_may_speak_in_the_calling_thread(desk: Desk) -> None:
    room = desk.talk()
    result = desk.by(ADA, Policy({}, {}), "schedule_set", NEW | {"threadId": "self"}, project=room)

    assert result.ok and result.output["schedule"]["threadId"] == room
    taken = desk("schedule_set", **(NEW | {"threadId": room}))
    refused(taken, "conflict", "speaks in that thread already")


def test_a_thread_of_somebody_else_is_foreign(desk: Desk) -> None:
    refused(desk("schedule_set", **(NEW | {"threadId": desk.talk(owner="else")})), "invalid_input", "no thread")
    refused(desk("schedule_set", **(NEW | {"threadId": desk.talk(BOB)})), "invalid_input", "Bob speaks in that thread")


def test_a_schedule_is_changed_by_its_id(desk: Desk) -> None:
    made = desk.made()["schedule"]
    changes = {"name": "Noon", "cron": "0 12 * * 1-5", "timezone": "Asia/Tokyo", "detail": "Eat.", "historyLast": 4}
    for _ in range(2):
        changed = desk("schedule_set", id=made["id"], **changes)
        assert changed.ok, changed
    assert changed.output["schedule"] == made | changes | {
        "history": "last",
        "nextRunAt": changed.output["schedule"]["nextRunAt"],
    }
    refused(desk("schedule_set", id=made["id"]), "invalid_input", "nothing to change")
    refused(desk("schedule_set", id="gone", name="A"), "not_found", "schedule_list")


def test_another_agent_gets_a_thread_of_its_own(desk: Desk) -> None:
    made = desk.made()["schedule"]
    changed = desk("schedule_set", id=made["id"], agentId="Bob").output

    assert changed["schedule"]["agentId"] == changed["thread"]["agentId"] == "bob"
    assert changed["schedule"]["threadId"] != made["threadId"]


@pytest.mark.parametrize(
    ("own", "wanted", "made"),
    [
        (None, None, None),
        (None, "ask", "ask"),
        (None, "dont_ask", "dont_ask"),
        (None, "auto", "denied"),
        (None, "bypass", "denied"),
        ("ask", None, "ask"),
        ("ask", "dont_ask", "denied"),
        ("plan", None, "plan"),
        ("plan", "ask", "denied"),
        ("auto", "auto", "auto"),
        ("auto", "ask", "ask"),
        ("auto", "bypass", "denied"),
        ("dont_ask", "ask", "ask"),
        ("bypass", "bypass", "bypass"),
        ("bypass", "auto", "auto"),
    ],
)
def test_nobody_schedules_a_mode_that_allows_more_than_its_own(desk: Desk, own: Any, wanted: Any, made: Any) -> None:
    args = NEW | ({"mode": wanted} if wanted else {})
    result = desk.by(ADA, Policy({}, {}, own), "schedule_set", args)

    assert (result.output["schedule"]["mode"] if result.ok else result.code) == made


def test_another_agent_may_do_no_more_than_who_lets_it_begin(desk: Desk) -> None:
    """Bob may run programs unasked. Ada has to ask for that, so what she lets Bob do later asks as well."""
    result = desk.by(ADA, Policy({"network": "deny"}, {"fs.write": "allow"}), "schedule_set", NEW | {"agentId": "bob"})

    (project,) = desk.all(select(t.projects).where(t.projects.c.id == result.output["schedule"]["threadId"]))
    assert project.permissions == {"process": "ask", "network": "deny"}


def test_the_makers_own_runs_keep_the_map_of_its_run(desk: Desk) -> None:
    result = desk.by(ADA, Policy({}, {"fs.write": "allow", "process": "deny"}), "schedule_set", NEW)

    (project,) = desk.all(select(t.projects).where(t.projects.c.id == result.output["schedule"]["threadId"]))
    assert project.permissions == {"fs.write": "allow", "process": "deny"}


def test_a_thread_that_may_do_more_is_not_a_way_round(desk: Desk) -> None:
    wide = desk.talk()
    desk.database.write(
        lambda c: c.execute(update(t.projects).where(t.projects.c.id == wide).values(permissions={"process": "allow"}))
    )
    refused(desk("schedule_set", **(NEW | {"threadId": wide})), "denied", "may do more than you")


def test_there_is_an_end_to_them(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(port, "MAX_ACTIVE", 1)
    desk.made()
    refused(desk("schedule_set", **(NEW | {"name": "B"})), "quota", "delete one first")


# schedule_pause, schedule_delete


def test_a_paused_schedule_goes_on_from_its_next_time(desk: Desk) -> None:
    made = desk.made()["schedule"]
    paused = desk("schedule_pause", id=made["id"], paused=True)
    assert paused.output == made | {"status": "paused", "nextRunAt": None}
    for _ in range(2):
        assert desk("schedule_pause", id=made["id"], paused=False).output == made
    (row,) = desk.all(select(schedules))
    assert row.watched_from is not None and row.reason is None


def test_one_that_is_over_cannot_go_on(desk: Desk) -> None:
    made = desk.made()["schedule"]
    desk.database.write(lambda c: c.execute(update(schedules).values(status="done", next_run_at=None, end_at=1)))
    refused(desk("schedule_pause", id=made["id"], paused=False), "conflict", "no time left")


def test_a_deleted_schedule_takes_what_waits_along_and_leaves_the_rest(desk: Desk) -> None:
    made = desk.made()["schedule"]
    for key in ("a", "b"):
        message = sends.Message("x", "schedule", source_id=made["id"], client_key=key)
        desk.database.write(lambda c, m=message: sends.trigger(c, made["threadId"], m))  # type: ignore[misc]
    assert len(desk.all(select(triggers))) == 1

    assert desk("schedule_delete", id=made["id"]).output == {"id": made["id"]}
    assert desk.all(select(triggers)) == desk.all(select(schedules)) == []
    assert len(desk.all(select(t.runs))) == 1
    refused(desk("schedule_delete", id=made["id"]), "not_found", "schedule_list")


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("schedule_peek", {}),
        ("schedule_pause", {"paused": True}),
        ("schedule_delete", {}),
        ("schedule_set", {"name": "Mine now"}),
    ],
)
def test_what_is_not_the_callers_is_not_there(desk: Desk, tool: str, args: Any) -> None:
    made = desk.made()["schedule"]

    for result in (
        desk.by(BOB, Policy({}, {}), tool, {"id": made["id"]} | args),
        desk(tool, id="gone", **args),
    ):
        refused(result, "not_found", "schedule_list")
    assert desk.by(BOB, Policy({}, {}), "schedule_list", {}).output == []
    assert desk("schedule_list").output == [made]


# schedule_peek


def test_peek_shows_what_was_said_done_and_wrong_the_latest_first(desk: Desk) -> None:
    made = desk.made()["schedule"]
    (row,) = desk.all(select(schedules))
    message = sends.Message("x", "schedule", source_id=row.id, client_key=f"schedule:{row.id}:1000")
    run_id = desk.database.write(lambda c: sends.trigger(c, made["threadId"], message)).run_id

    def worked(c: Any) -> None:
        body = {"role": "assistant", "content": "y" * 3_000}
        c.execute(insert(t.messages).values(run_id=run_id, number=1, history="messages", body=body))
        call = {"id": "c1", "node_id": "act", "step": 1, "position": 0, "name": "math.evaluate", "input": {}}
        c.execute(insert(t.calls).values(run_id=run_id, status="done", checkpoint=1, **call))
        failed = {"status": "failed", "error": {"code": "model_failed", "message": "it was away"}}
        c.execute(update(t.runs).where(t.runs.c.id == run_id).values(failed))
        c.execute(insert(firings).values(schedule_id=row.id, due_at=1_000, at=1_001, result="fired", run_id=run_id))
        c.execute(insert(firings).values(schedule_id=row.id, due_at=2_000, at=9_000, result="missed", reason="late"))

    desk.database.write(worked)
    (latest,) = desk("schedule_peek", id=row.id).output
    assert (latest["dueAt"], latest["result"], latest["reason"], latest["texts"]) == (2_000, "missed", "late", [])
    _, first = desk("schedule_peek", id=row.id, last=5).output
    assert (first["runId"], first["status"], first["tools"]) == (run_id, "failed", ["math.evaluate"])
    assert first["errors"] == ["model_failed: it was away"]
    assert [len(text) for text in first["texts"]] == [2_000]


@pytest.mark.parametrize("last", [0, 100, "1"])
def test_peek_looks_at_ninety_nine_at_most(desk: Desk, last: Any) -> None:
    refused(desk("schedule_peek", id="x", last=last), "invalid_input", "last")


def test_without_the_port_nothing_is_claimed() -> None:
    for tool, args in (
        ("schedule_list", {}),
        ("schedule_peek", {"id": "x"}),
        ("schedule_set", NEW),
        ("schedule_pause", {"id": "x", "paused": True}),
        ("schedule_delete", {"id": "x"}),
    ):
        refused(TOOLS.invoke(tool, args, SkillContext(Caller("person"))), "not_wired", "nothing was done")


def test_schedule_create_after_a_crash_is_told_of_its_schedule_though_its_time_is_past(
    ports: RowPorts, database: Database
) -> None:
    from datetime import UTC, datetime

    now = 1_800_000_000_000
    at = datetime.fromtimestamp((now + 60_000) / 1000, tz=UTC).isoformat()
    given = {"title": "Once", "at": at, "action": {"kind": "prompt", "text": "Go."}}
    caller = Caller("run", run_id="r", agent_id="ada", call_id="c")
    skills = catalogue.build()
    policy = Policy({"fs.write": "deny"}, {"process": "allow"}, "auto")

    def create(at_ms: int) -> SkillResult:
        context = SkillContext(caller, policy, schedules=ports.schedules, now_ms=lambda: at_ms)
        return skills.invoke("schedule.create", given, context)

    first, again = create(now), create(now + 90_000)
    assert first.ok and again.ok, again
    assert again.output["scheduleId"] == first.output["scheduleId"]
    with database.read() as connection:
        row = moves.get(connection, "local", first.output["scheduleId"])
    assert row is not None and row.maker["mode"] == "auto"
    assert (row.maker["gates"]["fs.write"], row.maker["permissions"]) == ("deny", {"process": "allow"})
