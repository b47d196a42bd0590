"""Agents that agents write, over real rows: where they live, whose they are, once for each call (spec: engine 15)."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from orchestrator.ports import agents as port
from orchestrator.ports.agents import StoredAgents
from orchestrator.ports.wiring import wire
from orchestrator.settings import Settings
from orchestrator.store import agents as moves
from orchestrator.store import threads
from orchestrator.store.database import Database, get_database
from orchestrator.store.tables import agents, projects
from orchestrator.store.threads import NewThread
from registry.agents import AgentDefinition
from registry.errors import SkillError
from registry.ids import new_id
from registry.skills import catalogue
from registry.skills.context import Caller, SkillContext

SKILLS = catalogue.build()
BODY: dict[str, Any] = {"id": "new", "name": "Checker", "role": "checker", "instructions": "Check."}


@pytest.fixture
def settings(tmp_path: Path, database_url: str) -> Settings:
    return Settings(home=tmp_path / "home", database_url=database_url, stand_in=True, _env_file=None)  # type: ignore[call-arg]


@pytest.fixture
def database(settings: Settings) -> Iterator[Database]:
    made = get_database(settings)
    yield made
    made.dispose()


@pytest.fixture
def ours(settings: Settings, database: Database) -> StoredAgents:
    return wire(settings, SKILLS).agents


def caller(call_id: str = "c", *, agent: str = "lead", project: str | None = None, owner: str = "local") -> Caller:
    return Caller("run", owner, project, run_id="r", agent_id=agent, call_id=call_id)


def project(database: Database, id_: str) -> str:
    row = {
        "id": id_,
        "owner_id": "local",
        "file_digest": "d",
        "title": id_,
        "brief": "",
        "status": "running",
        "permissions": {},
        "approvals": "park",
        "max_parallel": 1,
        "priority": 5,
        "skills": [],
        "workspace": "",
        "created_at": 1,
    }
    database.write(lambda c: c.execute(projects.insert().values(row)))
    return id_


def seen(database: Database, project_id: str | None = None, owner: str = "local") -> list[tuple[str, str | None]]:
    """(name, whose delegate) of everybody a run of the project finds."""
    with database.read() as connection:
        return [(row.name, row.creator_key) for row in moves.at_hand(connection, owner, project_id)]


def test_a_created_agent_is_its_owners_in_every_project(ours: StoredAgents, database: Database) -> None:
    one, two = project(database, "one"), project(database, "two")
    made = ours.create(caller(project=one), BODY, delegate=False)

    assert made | {"id": ""} == {
        "id": "",
        "name": "Checker",
        "role": "checker",
        "level": "top",
        "packs": [],
        "skills": [],
    }
    assert seen(database, one) == seen(database, two) == seen(database) == [("Checker", None)]
    assert seen(database, owner="somebody else") == []


def test_a_delegate_lives_where_its_maker_does(ours: StoredAgents, database: Database) -> None:
    one, two = project(database, "one"), project(database, "two")
    saved = ours.create(caller("a"), BODY | {"name": "Saved"}, delegate=False)["id"]
    ours.create(caller("b", project=one), BODY, delegate=True)
    ours.create(caller("c", project=one, agent=saved), BODY, delegate=True)

    assert set(seen(database, one)) == {("Saved", None), ("Checker", "lead"), ("Checker", saved)}
    assert set(seen(database, two)) == {("Saved", None), ("Checker", saved)}
    with database.read() as connection:
        assert [agent.name for agent in moves.all_saved(connection, "local")] == ["Saved"], "nobody gives those work"


def test_a_call_that_runs_again_finds_its_first_row(ours: StoredAgents, database: Database) -> None:
    for delegate in (False, True):
        body = BODY | {"name": f"N{delegate}"}
        first = ours.create(caller(str(delegate)), body, delegate=delegate)
        assert ours.create(caller(str(delegate)), body, delegate=delegate) == first
    assert len(seen(database)) == 2


@pytest.mark.parametrize("delegate", [False, True])
def test_of_many_that_take_a_name_at_once_one_gets_it(ours: StoredAgents, database: Database, delegate: bool) -> None:
    codes: list[str] = []

    def create(n: int) -> None:
        try:
            ours.create(caller(str(n)), BODY, delegate=delegate)
            codes.append("made")
        except SkillError as error:
            codes.append(error.code)

    threads = [threading.Thread(target=create, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)

    assert sorted(codes) == ["conflict"] * 5 + ["made"]
    assert len(seen(database)) == 1


def test_a_preset_and_another_owner_share_no_name_and_all_names(ours: StoredAgents) -> None:
    with pytest.raises(SkillError, match="explorer") as refused:
        ours.create(caller(), BODY | {"name": "explorer"}, delegate=False)
    assert refused.value.code == "conflict"
    for owner in ("one", "two"):
        ours.create(caller(owner, owner=owner), BODY, delegate=False)


def test_there_is_an_end_to_them(ours: StoredAgents, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(port, "MAX_SAVED", 1)
    monkeypatch.setattr(port, "MAX_DELEGATES", 1)
    for delegate in (False, True):
        ours.create(caller(f"a{delegate}"), BODY | {"name": f"A{delegate}"}, delegate=delegate)
        with pytest.raises(SkillError) as refused:
            ours.create(caller(f"b{delegate}"), BODY | {"name": f"B{delegate}"}, delegate=delegate)
        assert refused.value.code == "quota"


def test_only_an_agent_has_delegates_and_no_delegate_has_any(ours: StoredAgents) -> None:
    made = ours.create(caller("a"), BODY, delegate=True)["id"]
    for who, words in ((Caller("person"), "agents_create"), (caller("b", agent=made), "report back")):
        with pytest.raises(SkillError, match=words) as refused:
            ours.create(who, BODY | {"name": "Other"}, delegate=True)
        assert refused.value.code == "denied"


def test_a_fault_of_either_level_is_named_with_its_place_and_nothing_is_written(
    ours: StoredAgents, database: Database
) -> None:
    for change, path in (({"skills": ["no.such"]}, "skills[0]"), ({"budget": {"maxSteps": 0}}, "budget.maxSteps")):
        with pytest.raises(SkillError) as refused:
            ours.create(caller(), BODY | change, delegate=False)
        assert refused.value.code == "invalid_input" and refused.value.details[0].path == path
    assert seen(database) == []


def test_a_delegate_is_changed_and_deleted_by_its_maker_alone(ours: StoredAgents, database: Database) -> None:
    made = ours.create(caller("a"), BODY, delegate=True)["id"]
    for who in (caller(agent="other"), caller(owner="else"), Caller("person")):
        for move in (lambda w: ours.update(w, made, {"role": "x"}), lambda w: ours.delete(w, made)):
            with pytest.raises(SkillError) as refused:
                move(who)
            assert refused.value.code == "not_found"

    for _ in range(2):
        changed = ours.update(caller(), made, {"name": "Auditor", "instructions": "Audit.", "budget": {"maxSteps": 9}})
        assert (changed["name"], changed["level"]) == ("Auditor", "delegate")
    with database.read() as connection:
        body = moves.by_key(connection, "local", None, made).body  # type: ignore[union-attr]
    agent = AgentDefinition.model_validate(body)
    assert (agent.prompts["main"].instructions, agent.budget and agent.budget.max_steps) == ("Audit.", 9)
    with pytest.raises(SkillError) as refused:
        ours.update(caller(), made, {"budget": {"maxTokens": 9}})
    assert refused.value.code == "invalid_input", "a loop needs a limit that ends it"

    assert ours.delete(caller(), made) == (made, "Auditor")
    with pytest.raises(SkillError):
        ours.delete(caller(), made)
    with database.read() as connection:
        assert connection.execute(select(agents)).all() == []


def test_who_speaks_in_a_thread_stays(ours: StoredAgents, database: Database) -> None:
    made = ours.create(caller("a"), BODY, delegate=True)["id"]
    agent = AgentDefinition.model_validate({"id": made, "instructions": "Talk."})
    new = NewThread(id=new_id(), owner_id="local", title="Talk", agent=agent, known_as="own")
    database.write(lambda c: threads.create(c, new))
    with pytest.raises(SkillError) as refused:
        ours.delete(caller(), made)
    assert refused.value.code == "conflict"


@pytest.mark.parametrize(
    ("own", "asked", "made"),
    [("fast", None, "fast"), ("standard", None, "standard"), ("deep", None, "standard"), ("deep", "deep", "deep")],
)
def test_an_authored_agent_has_at_most_its_authors_tier(
    settings: Settings, database: Database, own: str, asked: str | None, made: str
) -> None:
    author = Caller("run", run_id="r", call_id="c", tier=own)
    given = {"name": "A", "role": "writer", "skills": ["math.evaluate"]} | ({"tier": asked} if asked else {})
    result = SKILLS.invoke("studio.author_agent", given, SkillContext(author, studio=wire(settings, SKILLS).studio))

    assert result.ok
    with database.read() as connection:
        (agent,) = moves.all_saved(connection, "local")
    assert agent.tier == made


def test_a_tier_above_the_authors_is_refused_with_what_may_be(settings: Settings, database: Database) -> None:
    studio = wire(settings, SKILLS).studio
    given = {"name": "A", "role": "writer", "skills": ["math.evaluate"], "tier": "deep"}
    author = Caller("run", run_id="r", call_id="c", tier="standard")
    refused = SKILLS.invoke("studio.author_agent", given, SkillContext(author, studio=studio))

    assert refused.code == "invalid_input" and "fast or standard" in str(refused.error)
    assert seen(database) == []
    assert SKILLS.invoke("studio.author_agent", given, SkillContext(Caller("person"), studio=studio)).ok
