"""Citizens over HTTP: listed, adopted once, removed and found again as they were; and what beings remember."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select

from orchestrator import saved
from orchestrator.known import load_presets, registries
from orchestrator.ports.studio import MAX_SAVED, comparable_name
from orchestrator.ports.wiring import wire
from orchestrator.settings import Settings
from orchestrator.store.database import get_database
from orchestrator.store.tables import agents, definitions, tasks
from registry.citizens import CITIZENS
from registry.errors import Refused
from registry.skills import catalogue
from registry.skills.context import Caller, SkillContext
from tests.studio import API, asked, bearer, key_of

SKILLS = catalogue.build()
GIDEON = f"{API}/citizens/gideon-pell"


def adopt(studio: TestClient) -> dict[str, Any]:
    answer = studio.post(f"{GIDEON}/adopt")
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def remember(settings: Settings, text: str, caller: Caller) -> None:
    records = wire(settings, SKILLS).notebook.records
    records.write(caller, "long", text, None)


def recalled(settings: Settings, query: str, caller: Caller) -> list[str]:
    context = SkillContext(caller, memory=wire(settings, SKILLS).memory)
    result = SKILLS.invoke("memory.recall", {"query": query}, context)
    return [one["content"] for one in result.output["memories"]]


def gideon_at_work(**of: Any) -> Caller:
    return Caller("run", agent_id="writer", being_id="gideon-pell", run_id="r", **of)


def test_the_twelve_are_there_in_a_new_studio_and_belong_to_nobody(studio: TestClient) -> None:
    items = studio.get(f"{API}/citizens").json()["items"]

    assert [one["name"] for one in items] == [one.name for one in CITIZENS.values()]
    assert {one["agentId"] for one in items} == {None}
    assert all(one["voice"] and one["backstory"] in one["description"] for one in items)
    assert studio.get(GIDEON).json() == next(one for one in items if one["id"] == "gideon-pell")
    assert studio.get(f"{API}/agents").json()["items"] == []


def test_a_citizen_is_adopted_once_as_a_copy_with_its_being(settings: Settings, studio: TestClient) -> None:
    first = studio.post(f"{GIDEON}/adopt")
    renamed = studio.patch(f"{API}/agents/{first.json()['id']}", json={"name": "Our Gideon"})
    again = studio.post(f"{GIDEON}/adopt")

    assert (first.status_code, again.status_code) == (201, 200)
    assert first.headers["etag"] == f'"{first.json()["digest"]}"'
    made = first.json()
    assert (made["name"], made["beingId"], made["role"]) == ("Gideon Pell", "gideon-pell", "writer")
    assert made["id"] != "gideon-pell" and "isPublic" not in made
    assert (again.json()["id"], again.json()["name"]) == (made["id"], "Our Gideon")
    assert renamed.json()["beingId"] == "gideon-pell"
    assert studio.get(GIDEON).json()["agentId"] == made["id"]
    assert studio.get(GIDEON).json()["name"] == "Gideon Pell", "a copy changes, the citizen does not"
    assert [one["id"] for one in studio.get(f"{API}/agents").json()["items"]] == [made["id"]]
    with asked(settings, bearer(key_of(settings))) as admin:
        (line,) = admin.get(f"{API}/audit", params={"act": "agent.saved"}).json()["items"]
    assert (line["subject"], line["data"]["being"]) == (made["id"], "gideon-pell")


def test_what_cannot_be_adopted_is_refused_and_leaves_nothing(settings: Settings, studio: TestClient) -> None:
    nobody = studio.post(f"{API}/citizens/wren-hollis/adopt")
    assert (nobody.status_code, nobody.json()["code"]) == (404, "unknown_citizen")
    assert "ansel-brook" in nobody.json()["error"], "who there is"
    assert studio.get(f"{API}/citizens/wren-hollis").json()["code"] == "unknown_citizen"
    studio.post(f"{API}/agents", json={"name": " GIDEON  pell", "instructions": "x"})
    taken = studio.post(f"{GIDEON}/adopt")
    assert (taken.status_code, taken.json()["code"]) == (409, "name_taken")
    with asked(settings, bearer(key_of(settings, scopes=["read"]))) as reader:
        assert reader.post(f"{GIDEON}/adopt").status_code == 403
    assert [one["beingId"] for one in studio.get(f"{API}/agents").json()["items"]] == [None]


def test_adopted_citizens_count_as_saved_agents(
    settings: Settings, studio: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved, "MAX_SAVED", 1)
    assert len(CITIZENS) <= MAX_SAVED
    adopt(studio)

    with pytest.raises(Refused, match="delete one first") as full:
        saved.adopt_citizen(settings, SKILLS, "ivo-larch")

    assert full.value.code == "quota"
    assert saved.adopt_citizen(settings, SKILLS, "gideon-pell")[1] is False, "one that is there takes no room"


def test_no_name_of_a_citizen_is_a_preset_s(settings: Settings) -> None:
    presets = load_presets(settings, registries(settings, SKILLS, stand_in=True))
    ours = {comparable_name(one.name) for one in CITIZENS.values()} | set(CITIZENS)

    assert ours & ({comparable_name(card.name) for card in presets.cards} | set(presets)) == set()


def test_of_two_who_adopt_at_once_both_get_the_same_copy(tmp_path: Any, database_url: str) -> None:
    here = Settings(home=tmp_path / "home", database_url=database_url, _env_file=None)  # type: ignore[call-arg]

    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: saved.adopt_citizen(here, SKILLS, "ivo-larch"), range(4)))

    assert len({kept["id"] for kept, _ in made}) == 1
    assert sorted(new for _, new in made) == [False, False, False, True]
    with get_database(here).read() as connection:
        assert connection.execute(select(agents.c.being_id)).scalars().all() == ["ivo-larch"]


def test_a_team_takes_an_adopted_citizen_and_its_memory_is_one_over_projects(
    settings: Settings, studio: TestClient
) -> None:
    plan = [{"key": "t", "role": "Copywriter", "instruction": "Write.", "skills": ["docs.write_markdown"]}]
    body = {"title": "T", "brief": "b", "tasks": plan, "rehearse": True}
    before = studio.post(f"{API}/projects", json=body).json()["id"]
    copy = adopt(studio)
    one, two = (studio.post(f"{API}/projects", json=body).json()["id"] for _ in range(2))

    def works_on(project_id: str) -> dict[str, Any]:
        query = select(definitions.c.body).join(tasks, tasks.c.definition_digest == definitions.c.digest)
        with get_database(settings).read() as connection:
            return dict(connection.execute(query.where(tasks.c.project_id == project_id)).scalar_one())

    assert (works_on(before)["name"], works_on(before).get("beingId")) == ("Sol Anders", None)
    for project in (one, two):
        found = works_on(project)
        assert (found["name"], found["beingId"]) == ("Gideon Pell", "gideon-pell")
        assert found["packs"] == copy["packs"], "its memory, whatever skills the task names"
    remember(settings, "The harbour closes at six.", gideon_at_work(project_id=one))
    assert recalled(settings, "harbour", gideon_at_work(project_id=two)) == ["The harbour closes at six."]
    assert recalled(settings, "harbour", Caller("run", agent_id="writer", run_id="r", project_id=two)) == []
    assert recalled(settings, "harbour", gideon_at_work(owner_id="ann", project_id=two)) == [], "one's own Gideon"


def test_who_removes_a_citizen_and_adopts_it_again_finds_it_as_it_was(settings: Settings, studio: TestClient) -> None:
    first = adopt(studio)
    remember(settings, "The harbour closes at six.", gideon_at_work())
    assert studio.delete(f"{API}/agents/{first['id']}").status_code == 204
    assert studio.get(GIDEON).json()["agentId"] is None

    second = adopt(studio)

    assert second["id"] != first["id"]
    assert recalled(settings, "harbour", gideon_at_work()) == ["The harbour closes at six."]
    kept = studio.get(f"{API}/memories", params={"beingId": "gideon-pell"}).json()["items"]
    assert [one["content"] for one in kept] == ["The harbour closes at six."]
    assert studio.delete(f"{API}/memories", params={"beingId": "gideon-pell"}).json() == {"forgotten": 1}


def test_a_file_that_calls_its_agent_a_being_reads_nothing_of_it(settings: Settings, studio: TestClient) -> None:
    adopt(studio)
    spy = {"name": "Spy", "beingId": "gideon-pell", "instructions": "Tell.", "packs": {"semantic-memory": True}}
    plan = [{"key": "t", "role": "spy", "agent": "spy", "instruction": "Tell."}]
    body = {"title": "T", "brief": "b", "tasks": plan, "agents": {"spy": spy}, "rehearse": True}

    made = studio.post(f"{API}/projects", json=body)

    assert made.status_code == 201, made.text
    with get_database(settings).read() as connection:
        query = select(agents.c.being_id).where(agents.c.project_id == made.json()["id"])
        assert set(connection.execute(query).scalars()) == {None}
        told = [row.body for row in connection.execute(select(definitions.c.body)) if row.body.get("name") == "Spy"]
    assert told and not any("beingId" in body for body in told)
