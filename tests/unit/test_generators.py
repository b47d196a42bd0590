"""Generators that ship, over HTTP, by webhook: a plan with blanks becomes a project (spec: skills 16)."""

import json
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select

from orchestrator import queue, saved
from orchestrator.ports.wiring import wire
from orchestrator.receiving import receive, sign
from orchestrator.settings import Settings
from orchestrator.store import tables as t
from orchestrator.store.database import get_database
from registry.errors import Refused
from registry.generators import Generator, built_in, faults, plan, unused
from registry.skills import catalogue
from registry.skills.context import Caller
from registry.skills.triggers import Hand, Hooked
from tests.studio import API, asked, bearer, key_of

SKILLS = catalogue.build()
CATALOGUED = frozenset(one.name for one in SKILLS if one.catalogued)
FILLED = {"text": "bees", "longtext": "bees\nand wasps", "number": 3, "boolean": True, "url": "https://example.org/x"}


def filled(one: Generator) -> dict[str, Any]:
    return {i.key: i.options[0] if i.type == "choice" else FILLED[i.type] for i in one.inputs}


def test_five_ship_among_them_the_crew_and_its_pipeline() -> None:
    assert [one.name for one in built_in().values()] == [
        "Agent crew & pipeline",
        "Article",
        "Data report",
        "Landing page",
        "Research brief",
    ]
    used = {skill for step in built_in()["agent-crew-pipeline"].steps for skill in step.skills}
    assert {"studio.author_agent", "studio.author_generator", "studio.author_skill_bundle"} <= used


@pytest.mark.parametrize("generator_id", built_in())
def test_what_ships_is_sound_and_uses_every_input(generator_id: str) -> None:
    one = built_in()[generator_id]
    assert (faults(one, CATALOGUED), unused(one)) == ([], [])
    required = {
        key: value for key, value in filled(one).items() if any(i.key == key and i.required for i in one.inputs)
    }
    for inputs in (filled(one), required):
        tasks = plan(one, inputs)
        assert len(tasks) == len(one.steps)
        assert not [task for task in tasks if "{{" in task.instruction + task.title]


@pytest.fixture
def studio(settings: Settings) -> Any:
    with asked(settings, bearer(key_of(settings))) as client:
        yield client


def test_over_http_they_are_shown_and_run_and_cannot_be_deleted_or_doubled(studio: TestClient) -> None:
    listed = studio.get(f"{API}/generators").json()
    assert (listed["items"], len(listed["builtIn"])) == ([], 5)
    where = f"{API}/generators/article"
    assert studio.get(where).json()["builtIn"] is True
    assert (studio.delete(where).status_code, studio.delete(f"{API}/generators/none").status_code) == (409, 404)
    body = {"name": "ARTICLE", "steps": [{"key": "a", "title": "t", "role": "writer", "instruction": "w"}]}
    assert studio.post(f"{API}/generators", json=body).json()["code"] == "name_taken"
    run = studio.post(f"{where}/run", json={"inputs": {"topic": "bees"}, "rehearse": True}).json()
    shown = studio.get(f"{API}/projects/{run['id']}").json()
    assert [task["key"] for task in shown["tasks"]] == ["outline", "draft", "edit"]


def test_an_input_that_no_step_uses_is_told_when_it_is_saved(studio: TestClient) -> None:
    steps = [{"key": "a", "title": "t", "role": "writer", "instruction": "w"}]
    inputs = [{"key": "idle", "label": "Idle", "type": "text"}]
    made = studio.post(f"{API}/generators", json={"name": "G", "inputs": inputs, "steps": steps}).json()
    assert made["warnings"] == ["no step uses the input idle"]
    assert studio.get(f"{API}/generators/{made['id']}").json().get("warnings") is None


def test_a_delivery_fills_a_generator_and_one_that_does_not_fit_starts_nothing(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "send", lambda *_: 0)
    monkeypatch.setattr(queue, "advance", lambda *_: True)
    database, port = get_database(settings), wire(settings, SKILLS).webhooks
    made = port.save(Hand(Caller("person")), Hooked(name="Door", agent_id="explorer"))
    port.set_mode("local", str(made["id"]), "ask", {"kind": "generator", "generatorId": "article"})
    secret = str(port.reveal("local", str(made["id"])))

    def knock(body: Any, second: int) -> dict[str, Any]:
        raw = json.dumps(body).encode()
        signed = {"x-officina-timestamp": str(second), "x-officina-signature": sign(secret, second, raw)}
        return receive(settings, str(made["id"]), signed, raw, second * 1000)[1]

    answer = knock({"inputs": {"topic": "{{topic}} bees"}}, 1_796_000_000)
    with database.read() as connection:
        tasks = connection.execute(select(t.tasks).where(t.tasks.c.project_id == answer["projectId"])).all()
    assert "{{topic}} bees" in next(task.instruction for task in tasks if task.key == "outline")
    refused = knock({"inputs": {"tone": "shrill"}}, 1_796_000_001)
    assert refused["code"] == "invalid_inputs" and "inputs.topic" in refused["error"]


def test_one_owners_generator_is_not_there_for_another(settings: Settings) -> None:
    steps = [{"key": "a", "title": "t", "role": "writer", "instruction": "w"}]
    made = saved.create_generator(settings, SKILLS, Generator.model_validate({"name": "G", "steps": steps}))
    other = settings.model_copy(update={"owner": "bob"})
    for look in (
        lambda: saved.generator(other, str(made["id"])),
        lambda: saved.run_generator(other, SKILLS, str(made["id"]), {}),
        lambda: saved.remove_generator(other, str(made["id"])),
    ):
        with pytest.raises(Refused, match="no generator"):
            look()


def test_the_files_that_ship_are_read_from_the_package() -> None:
    assert {path.stem for path in (Path(__file__).parents[2] / "registry/generators").glob("*.json")} == set(built_in())
