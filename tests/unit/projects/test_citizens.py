"""The twelve citizens: the same in every studio, whole, within their limits, and able to remember (spec: skills 9)."""

from collections import Counter

import pytest

from registry.citizens import CITIZENS, HOUSE, Citizen
from registry.graph.validation import parse_agent, validate
from registry.packs import PACKS
from registry.permissions import OPERATIONS
from registry.personas import BASELINE, MAX_PROMPT, PERSONAS, TEAM_PERMISSIONS
from registry.plans import PlannedTask
from registry.skills import catalogue
from registry.souls import MAX_AGENT, soul
from registry.teams import SavedAgent, assemble, for_task

REGISTERED = frozenset(skill.name for skill in catalogue.build())

#: Pinned, as souls are: copies and memories hang on these, in studios nobody here sees.
WHO = {
    "ansel-brook": ("Ansel Brook", "researcher", "the ferryman"),
    "bettina-rook": ("Bettina Rook", "engineer", "the archivist"),
    "corin-ashe": ("Corin Ashe", "analyst", "the carpenter"),
    "dara-fenn": ("Dara Fenn", "editor", "the glassblower"),
    "elio-strand": ("Elio Strand", "designer", "the printer"),
    "freya-holt": ("Freya Holt", "engineer", "the beekeeper"),
    "gideon-pell": ("Gideon Pell", "writer", "the cartographer"),
    "hana-quist": ("Hana Quist", "marketer", "the translator"),
    "ivo-larch": ("Ivo Larch", "writer", "the watchmaker"),
    "junia-wick": ("Junia Wick", "researcher", "the librarian"),
    "kasimir-dove": ("Kasimir Dove", "lead", "the navigator"),
    "leontine-graye": ("Leontine Graye", "generalist", "the lighthouse keeper"),
}

every = pytest.mark.parametrize("citizen", CITIZENS.values(), ids=list(CITIZENS))


def test_who_they_are_never_changes() -> None:
    found = {id_: (one.name, one.role, one.soul.archetype.split(",")[0]) for id_, one in CITIZENS.items()}

    assert found == WHO


def test_all_nine_roles_have_somebody_and_no_two_have_one_past() -> None:
    roles = Counter(one.role for one in CITIZENS.values())

    assert set(roles) == set(PERSONAS)
    assert max(roles.values()) == 2
    for told in (lambda one: one.soul.archetype, lambda one: one.soul.backstory, lambda one: one.description):
        assert len({told(one) for one in CITIZENS.values()}) == 12


@every
def test_each_is_a_persona_with_a_soul_of_its_own(citizen: Citizen) -> None:
    agent, persona = citizen.agent(), PERSONAS[citizen.role]
    prompt = agent.prompts["main"].instructions

    assert validate(agent.to_json()) == []
    assert isinstance(prompt, str) and len(prompt) <= MAX_PROMPT
    whole = soul(HOUSE, citizen.role, citizen.name).prose("citizen")
    places = [prompt.index(part) for part in (citizen.name, persona.voice, whole, persona.duties)]
    assert places == sorted(places)
    assert persona.name not in prompt
    assert len(citizen.soul.prose()) <= MAX_AGENT
    assert (agent.avatar, agent.permissions) == (persona.avatar, dict(TEAM_PERMISSIONS))
    assert set(agent.permissions) <= set(OPERATIONS)


@every
def test_each_holds_its_persona_s_skills_and_what_it_remembers_by(citizen: Citizen) -> None:
    agent = citizen.agent()

    assert {*BASELINE, *PERSONAS[citizen.role].skills, "memory.recall"} == set(agent.skills) <= REGISTERED
    assert len(set(agent.skills)) == len(agent.skills)
    writes = next(tool for tool in PACKS["semantic-memory"].tool_names if tool == "memory_write")
    assert writes in str(agent.prompts["main"].instructions)


def test_a_task_that_narrows_its_agent_leaves_a_being_its_memory() -> None:
    copy = SavedAgent("0198", "local", CITIZENS["gideon-pell"].agent(), 0, being_id="gideon-pell")
    task = PlannedTask.model_validate(
        {"key": "a", "role": "copywriter", "instruction": "x", "skills": ["math.evaluate"]}
    )

    crew = assemble([task], registered=REGISTERED, saved=[copy])
    used = for_task(crew.members[crew.assignees["a"]].definition, task, registered=REGISTERED)

    assert (crew.members["writer"].saved_id, used.being_id, used.name) == ("0198", "gideon-pell", "Gideon Pell")
    assert "semantic-memory" in used.enabled_packs()
    assert "memory.recall" not in used.skills


def test_nobody_becomes_a_being_by_writing_so() -> None:
    """A file, a preset, a plugin and a request are others' words as often as not."""
    plain = {"id": "ada", "prompts": {"main": {"instructions": "Tell."}}}
    written = plain | {"beingId": "ansel-brook", "ownerId": "ann", "isPublic": True}

    agent, found = parse_agent(written)

    assert found == []
    assert agent is not None
    assert (agent.being_id, agent.owner_id, agent.is_public) == (None, None, None)
    assert agent.to_json() == plain
