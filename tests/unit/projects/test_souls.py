"""Souls: the same for the same person everywhere, drawn from bytes, and never longer than a prompt has room for."""

from hypothesis import given
from hypothesis import strategies as st

from registry.personas import MAX_PROMPT, PERSONAS, system_prompt
from registry.souls import MAX_AGENT, soul, soul_of

WORDS = st.text(max_size=40)


def test_a_soul_never_changes() -> None:
    """Pinned: people would find their agents changed. Whoever changes the lists raises the version, and this."""
    found = soul("local", "writer", "Sol Anders")

    assert (found.archetype, found.humour) == ("the glassblower, who knows the moment when not to touch", 1)
    assert found.values == ("humility", "privacy", "candour")
    assert found.traits == {"boldness": 70, "patience": 33, "curiosity": 66, "warmth": 57, "orderliness": 18}


def test_owner_role_and_name_make_the_soul_and_the_spelling_of_a_role_does_not() -> None:
    mine = soul_of("local", "writer", "Sol Anders")

    assert soul_of("local", " Copywriter", "Sol Anders") == mine
    others = {
        soul_of("ann", "writer", "Sol Anders"),
        soul_of("local", "editor", "Sol Anders"),
        soul_of("local", "writer", "X"),
    }
    assert len(others | {mine}) == 4


@given(owner=WORDS, role=WORDS, name=WORDS)
def test_every_soul_is_whole(owner: str, role: str, name: str) -> None:
    found = soul(owner, role, name)

    assert all(0 <= degree <= 100 for degree in found.traits.values())
    assert (len(found.traits), len(set(found.values)), len(set(found.quirks)), len(set(found.boundaries))) == (
        5,
        3,
        2,
        2,
    )
    assert 0 <= found.humour <= 3
    assert len(found.prose()) <= MAX_AGENT
    assert found.backstory in found.prose("citizen")


@given(owner=WORDS, persona=st.sampled_from(list(PERSONAS.values())))
def test_a_prompt_with_a_soul_keeps_voice_order_and_length(owner: str, persona) -> None:  # type: ignore[no-untyped-def]
    prompt = system_prompt(persona, soul=soul_of(owner, persona.role, persona.name))

    assert len(prompt) <= MAX_PROMPT
    places = [
        prompt.index(part) for part in (persona.name, persona.voice, persona.values[0], "Besides", persona.duties)
    ]
    assert places == sorted(places)
