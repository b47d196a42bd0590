"""The nine personas and their prompts (spec: skills 8)."""

import pytest

from registry.permissions import MODES, Policy
from registry.personas import (
    BASELINE,
    MAX_PROMPT,
    PERSONAS,
    TEAM_PERMISSIONS,
    Persona,
    normalise_role,
    persona_of,
    system_prompt,
)
from registry.skills.skill import DOTTED


def test_there_are_nine_of_them() -> None:
    assert {role: persona.name for role, persona in PERSONAS.items()} == {
        "lead": "Orin Vale",
        "researcher": "Ione Marsh",
        "writer": "Sol Anders",
        "editor": "Mara Quill",
        "engineer": "Tobiah Reed",
        "designer": "Lys Arden",
        "analyst": "Nadia Kest",
        "marketer": "Juno Fairley",
        "generalist": "Wren Hollis",
    }


@pytest.mark.parametrize("persona", PERSONAS.values(), ids=lambda persona: persona.role)
def test_a_prompt_says_who_how_and_what_in_order(persona: Persona) -> None:
    prompt = system_prompt(persona)

    parts = [persona.name, persona.voice, persona.values[0], persona.duties, "The workspace is one folder"]
    places = [prompt.index(part) for part in parts]
    assert places == sorted(places)
    assert len(prompt) <= MAX_PROMPT
    assert "{$" not in prompt, "a prompt holds no parts to fill in"


@pytest.mark.parametrize("persona", PERSONAS.values(), ids=lambda persona: persona.role)
def test_skills_are_beyond_the_baseline_and_named_well(persona: Persona) -> None:
    assert len(set(persona.skills)) == len(persona.skills)
    assert not set(persona.skills) & set(BASELINE)
    assert all(DOTTED.match(name) for name in persona.skills)


@pytest.mark.parametrize(
    ("label", "role"),
    [
        (" Researcher ", "researcher"),
        ("DEVELOPER", "engineer"),
        ("coder", "engineer"),
        ("copywriter", "writer"),
        ("reviewer", "editor"),
        ("PM", "lead"),
        ("manager", "lead"),
        ("data", "analyst"),
        ("ux", "designer"),
        ("seo", "marketer"),
        ("growth", "marketer"),
        ("Data \n Scientist", "data scientist"),
    ],
)
def test_labels_and_synonyms_mean_a_role(label: str, role: str) -> None:
    assert normalise_role(label) == role


def test_an_unknown_role_is_the_generalists() -> None:
    assert persona_of("Astronomer").name == "Wren Hollis"


def test_team_agents_ask_for_what_acts_outside_and_nothing_else() -> None:
    policy = Policy(agent=TEAM_PERMISSIONS, run={})

    quiet = ["fs.read", "fs.write", "network", "agents"]
    assert [policy.judge([operation]).gate for operation in quiet] == ["allow"] * 4
    assert policy.judge(["world"]).gate == "ask"
    assert policy.judge(["process", "world"]).gate == "ask"
    for mode in MODES:
        assert Policy(agent=TEAM_PERMISSIONS, run={}, mode=mode).judge(["world"]).gate in ("ask", "deny")
