"""studio.author_agent and studio.author_generator over real rows (spec: skills 7.27, 7.28)."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from orchestrator.known import saved_agents
from orchestrator.ports import studio as port
from orchestrator.ports.studio import StoredStudio, comparable_name
from orchestrator.producer import submit
from orchestrator.settings import Settings
from orchestrator.store import generators as generator_moves
from orchestrator.store.database import Database, get_database
from orchestrator.store.kept import generators
from orchestrator.store.tables import agents, tasks
from registry.errors import WrongUse
from registry.generators import Generator, Unusable, plan
from registry.skills import catalogue
from registry.skills.context import Caller, SkillContext
from registry.skills.registry import SkillResult

SKILLS = catalogue.build()
PERSON = Caller("person")
AGENT: dict[str, Any] = {"name": "Case reader", "role": "researcher", "skills": ["math.evaluate", "files.read"]}
GENERATOR: dict[str, Any] = {
    "name": "Weekly note",
    "inputs": [
        {"key": "topic", "label": "Topic", "type": "text", "required": True},
        {"key": "tone", "label": "Tone", "type": "choice", "options": ["dry", "warm"], "default": "dry"},
    ],
    "steps": [
        {"key": "look", "title": "Look up {{topic}}", "role": "researcher", "instruction": "Read of {{topic}}."},
        {
            "key": "write",
            "title": "Write",
            "role": "writer",
            "instruction": "Write it, {{tone}}.",
            "dependsOn": ["look"],
            "skills": ["docs.write_markdown"],
        },
    ],
}


@pytest.fixture
def settings(tmp_path: Path, database_url: str) -> Settings:
    return Settings(home=tmp_path / "home", database_url=database_url, stand_in=True, _env_file=None)  # type: ignore[call-arg]


@pytest.fixture
def database(settings: Settings) -> Iterator[Database]:
    made = get_database(settings)
    yield made
    made.dispose()


def call(database: Database, what: str, caller: Caller = PERSON, /, **arguments: Any) -> SkillResult:
    about = SkillContext(caller, studio=StoredStudio(database, SKILLS))
    base = AGENT if what == "agent" else GENERATOR
    return SKILLS.invoke(f"studio.author_{what}", base | arguments, about)


def rows(database: Database, table: Any) -> list[Any]:
    with database.read() as connection:
        return list(connection.execute(select(table)))


# Agents


def test_an_agent_is_saved_privately_for_the_callers_owner(database: Database, settings: Settings) -> None:
    made = call(database, "agent", systemPrompt="Read twice. {$state.secret}", tier="deep", avatar="eye").output

    (row,) = rows(database, agents)
    assert made == {
        "agentId": row.id,
        "name": "Case reader",
        "role": "researcher",
        "skills": ["math.evaluate", "files.read"],
        "created": True,
        "wired": True,
        "note": None,
    }
    assert (row.owner_id, row.project_id, row.being_id) == ("local", None, None)
    (agent,) = saved_agents(settings).values()
    assert (agent.id, agent.tier, agent.avatar, agent.is_public) == (row.id, "deep", "eye", None)
    assert agent.prompts["main"].instructions == "Read twice. { $state.secret}", "no part of it is filled in"
    assert agent.permissions == {}, "it has the defaults, whatever its author may do"


def test_without_a_prompt_it_works_by_its_roles(database: Database, settings: Settings) -> None:
    call(database, "agent")

    (agent,) = saved_agents(settings).values()
    assert "source of every claim" in agent.prompts["main"].instructions


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"name": ""}, "name"),
        ({"name": "\u200b \u2060"}, "name"),
        ({"name": "x" * 61}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"role": ""}, "role"),
        ({"role": "r" * 41}, "role"),
        ({"description": "x" * 501}, "description"),
        ({"skills": []}, "skills"),
        ({"skills": ["math.evaluate"] * 2}, "twice"),
        ({"skills": [f"a.b{n}" for n in range(31)]}, "skills"),
        ({"tier": "huge"}, "tier"),
        ({"systemPrompt": "x" * 8001}, "systemPrompt"),
        ({"avatar": "x" * 9}, "avatar"),
        ({"ownerId": "someone-else"}, "ownerId"),
        ({"beingId": "b"}, "beingId"),
        ({"isPublic": True}, "isPublic"),
        ({"permissions": {"world": "allow"}}, "permissions"),
    ],
)
def test_a_bad_agent_is_refused_and_no_row_is_left(database: Database, arguments: dict[str, Any], word: str) -> None:
    refused = call(database, "agent", **arguments)

    assert refused.code == "invalid_input" and word in str(refused.error)
    assert rows(database, agents) == []


def test_one_unknown_skill_refuses_the_whole_and_each_unknown_is_named(database: Database) -> None:
    refused = call(database, "agent", skills=["math.evaluate", "no.such", "files.read", "no-document"])

    assert refused.code == "invalid_input"
    assert [d.path for d in refused.details] == ["skills[1]", "skills[3]"]
    assert "no.such" in str(refused.error) and "no-document" in str(refused.error)
    assert rows(database, agents) == []


def test_world_acting_skills_may_be_named_and_stay_behind_their_gate(database: Database) -> None:
    assert call(database, "agent", skills=["code.execute"]).ok


@pytest.mark.parametrize("name", ["case  READER ", "Case\u200b reader", "Case reader\u2060", "CASE READER"])
def test_a_name_that_reads_the_same_is_taken(database: Database, name: str) -> None:
    call(database, "agent")

    assert call(database, "agent", name=name).code == "conflict"
    assert call(database, "agent", Caller("person", owner_id="else"), name=name).ok


def test_names_compare_as_people_read_them() -> None:
    assert comparable_name("Ｅ") != comparable_name("E"), "NFC keeps what looks different"
    assert comparable_name("É") == comparable_name("E\u0301") == comparable_name("é")


def test_an_owner_has_room_for_a_hundred(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(port, "MAX_SAVED", 1)
    for what in ("agent", "generator"):
        assert call(database, what).ok
        assert call(database, what, name="Another").code == "quota"


@pytest.mark.parametrize("what", ["agent", "generator"])
def test_a_call_that_runs_again_after_a_crash_finds_its_first_row(database: Database, what: str) -> None:
    caller = Caller("run", run_id="r", call_id="c")
    first, again = call(database, what, caller), call(database, what, caller)

    assert first.ok and again.output == first.output


@pytest.mark.parametrize(("what", "table"), [("agent", agents), ("generator", generators)])
def test_of_many_that_take_a_name_at_once_one_gets_it(database: Database, what: str, table: Any) -> None:
    results: list[SkillResult] = []
    threads = [
        threading.Thread(
            target=lambda n=n: results.append(call(database, what, Caller("run", run_id="r", call_id=str(n))))
        )  # type: ignore[misc]
        for n in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)

    assert sorted(str(result.code) for result in results) == ["None"] + ["conflict"] * 5
    assert len(rows(database, table)) == 1


@pytest.mark.parametrize("what", ["agent", "generator"])
def test_without_a_studio_nothing_is_claimed(what: str) -> None:
    result = SKILLS.invoke(f"studio.author_{what}", AGENT if what == "agent" else GENERATOR, SkillContext(PERSON))

    assert result.ok and result.output["wired"] is False and result.output["note"]
    assert result.output.get("agentId") is result.output.get("generatorId") is None
    assert not result.output.get("created")


def project(folder: Path, agent: str) -> Path:
    file = folder / "project.yaml"
    file.write_text(f"title: T\ntasks:\n  - {{key: a, role: reader, agent: {agent!r}, instruction: Read.}}\n")
    return file


def test_a_task_names_a_saved_agent_by_name_or_id(database: Database, settings: Settings, tmp_path: Path) -> None:
    agent_id = call(database, "agent", tier="deep").output["agentId"]

    for text in ("Case reader", "case READER", agent_id):
        submit(project(tmp_path, text), settings=settings)

    assert {(row.agent_id, row.agent_name, row.tier) for row in rows(database, tasks)} == {
        (agent_id, "Case reader", "deep")
    }
    with pytest.raises(WrongUse, match="no agent"):
        submit(project(tmp_path, "Case writer"), settings=settings)


def test_nobody_names_the_agents_of_another_owner(database: Database, settings: Settings, tmp_path: Path) -> None:
    call(database, "agent", Caller("person", owner_id="else"))

    with pytest.raises(WrongUse, match="no agent"):
        submit(project(tmp_path, "Case reader"), settings=settings)


# Generators


def test_a_generator_is_saved_and_its_plan_is_filled_once(database: Database) -> None:
    made = call(database, "generator").output

    assert (made["steps"], made["warnings"], made["wired"]) == (["look", "write"], [], True)
    (row,) = rows(database, generators)
    assert (row.id, row.owner_id, row.version, row.is_public) == (made["generatorId"], "local", 1, False)
    with database.read() as connection:
        stored = generator_moves.get(connection, "local", row.id)
        assert generator_moves.get(connection, "else", row.id) is None
    assert stored is not None
    look, write = plan(stored, {"topic": "{{tone}} & $input"})
    assert (look.title, look.instruction) == ("Look up {{tone}} & $input", "Read of {{tone}} & $input.")
    assert (write.instruction, write.depends_on, write.skills) == ("Write it, dry.", ["look"], ["docs.write_markdown"])


def step(**fields: Any) -> dict[str, Any]:
    return {"key": "a", "title": "A", "role": "writer", "instruction": "Do."} | fields


def blank(**fields: Any) -> dict[str, Any]:
    return {"key": "k", "label": "K", "type": "text"} | fields


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"name": "x" * 61}, "name"),
        ({"description": "x" * 501}, "description"),
        ({"steps": []}, "steps"),
        ({"steps": [step(key=f"s{n}") for n in range(13)]}, "steps"),
        ({"inputs": [blank(key=f"k{n}") for n in range(13)]}, "inputs"),
        ({"inputs": [], "steps": [step(), step()]}, "steps[1].key"),
        ({"inputs": [], "steps": [step(dependsOn=["b"])]}, "steps[0].dependsOn[0]"),
        ({"inputs": [], "steps": [step(dependsOn=["a"])]}, "steps[0].dependsOn[0]"),
        ({"inputs": [], "steps": [step(dependsOn=["b"]), step(key="b", dependsOn=["a"])]}, "wait for each other"),
        ({"inputs": [], "steps": [step(skills=["docs.write_pdf"])]}, "docs.write_pdf"),
        ({"inputs": [], "steps": [step(skills=["http.json"])]}, "http.json"),
        ({"inputs": [], "steps": [step(skills=["no.such"])]}, "no.such"),
        ({"inputs": [], "steps": [step(instruction="x" * 4001)]}, "instruction"),
        ({"inputs": [], "steps": [step(instruction=" ")]}, "instruction"),
        ({"inputs": [], "steps": [step(instruction="{{topic}}")]}, "topic"),
        ({"inputs": [blank()], "steps": [step(instruction="{{k.x}}")]}, "k.x"),
        ({"inputs": [blank()], "steps": [step(instruction="{{ k }}")]}, "no input"),
        ({"inputs": [blank()], "steps": [step(title="{{other}}")]}, "steps[0].title"),
        ({"inputs": [blank(), blank()], "steps": [step()]}, "inputs[1].key"),
        ({"inputs": [blank(key="K")], "steps": [step()]}, "key"),
        ({"inputs": [blank(type="date")], "steps": [step()]}, "type"),
        ({"inputs": [blank(type="choice")], "steps": [step()]}, "options"),
        ({"inputs": [blank(options=["a"])], "steps": [step()]}, "options"),
        ({"inputs": [blank(type="choice", options=["a", "a"])], "steps": [step()]}, "same"),
        ({"inputs": [blank(type="number", default="1")], "steps": [step()]}, "number"),
        ({"inputs": [blank(type="number", default=True)], "steps": [step()]}, "number"),
        ({"inputs": [blank(type="number", default=10**400)], "steps": [step()]}, "number"),
        ({"inputs": [blank(type="boolean", default=1)], "steps": [step()]}, "true or false"),
        ({"inputs": [blank(type="choice", options=["a"], default="b")], "steps": [step()]}, "one of a"),
        ({"inputs": [blank(type="url", default="file:///etc/passwd")], "steps": [step()]}, "http"),
        ({"inputs": [blank(default="a\nb")], "steps": [step()]}, "one line"),
        ({"ownerId": "else"}, "ownerId"),
        ({"isPublic": True}, "isPublic"),
    ],
)
def test_a_bad_generator_is_refused_and_no_row_is_left(
    database: Database, arguments: dict[str, Any], word: str
) -> None:
    refused = call(database, "generator", **arguments)

    assert refused.code == "invalid_input", refused
    assert word in str(refused.error) + str([d.path for d in refused.details])
    assert rows(database, generators) == []


def test_an_input_nobody_uses_is_warned_about(database: Database) -> None:
    made = call(database, "generator", inputs=[blank()], steps=[step()])

    assert made.output["warnings"] == ["no step uses the input k"]


def test_a_generators_name_is_taken_once(database: Database) -> None:
    call(database, "generator")

    assert call(database, "generator", name="weekly NOTE").code == "conflict"


@pytest.mark.parametrize(
    ("inputs", "path"),
    [
        ({}, "inputs.topic"),
        ({"topic": ""}, "inputs.topic"),
        ({"topic": 5}, "inputs.topic"),
        ({"topic": "x" * 501}, "inputs.topic"),
        ({"topic": "a", "tone": "loud"}, "inputs.tone"),
        ({"topic": "a", "mood": "x"}, "inputs.mood"),
    ],
)
def test_inputs_have_to_fit(inputs: dict[str, Any], path: str) -> None:
    with pytest.raises(Unusable) as refused:
        plan(Generator.model_validate(GENERATOR), inputs)
    assert refused.value.faults[0].path == path


def test_an_instruction_that_grows_too_long_is_told() -> None:
    made = Generator.model_validate(
        {"name": "n", "inputs": [blank(type="longtext")], "steps": [step(instruction="x" * 3_900 + "{{k}}")]}
    )
    with pytest.raises(Unusable, match="4000 is the most"):
        plan(made, {"k": "y" * 200})
    assert len(plan(made, {})[0].instruction) == 3_900
