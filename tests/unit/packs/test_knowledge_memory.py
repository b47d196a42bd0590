"""The pack `knowledge-memory`, over given sources (spec: engine 15)."""

import threading
from typing import Any

import pytest
from sqlalchemy import func, select

from orchestrator import knowledge
from orchestrator.sections import Keeping
from orchestrator.settings import Settings
from orchestrator.store.database import get_database
from orchestrator.store.notebook_tables import passages, sources
from registry.errors import Refused, SkillError
from registry.packs.knowledge_memory import KnowledgeSpec
from registry.passages import passages as pieces
from tests.notebooks import Shelf, agent

ADA = agent("ada", project_id=None)
HANDBOOK = "\n\n".join(f"Section {n}. " + "Ordinary words of a handbook. " * 30 for n in range(6)) + "\n\nGate nine."


def give(settings: Settings, uri: str, text: str, **about: Any) -> knowledge.Added:
    owner = about.pop("owner", "local")
    return knowledge.add(settings, owner, knowledge.Source(uri, text, about.pop("title", None)), **about)


def found(shelf: Shelf, query: str, caller: Any = ADA, **about: Any) -> list[str]:
    return [one["text"] for one in shelf.does("knowledge_search", caller, query=query, **about)]


def count(shelf: Shelf, table: Any) -> int:
    with shelf.database.read() as connection:
        return int(connection.execute(select(func.count()).select_from(table)).scalar_one())


def test_a_passage_is_found_and_read_with_what_stands_around_it(shelf: Shelf, settings: Settings) -> None:
    added = give(settings, "handbook.md", HANDBOOK, title="Handbook")
    assert added.how == "added" and added.passages > 3

    (one,) = shelf.does("knowledge_search", ADA, query="gate")
    assert one["text"].endswith("Gate nine.") and one["score"] == 1.0
    assert (one["title"], one["uri"], one["id"].split(".")[0]) == ("Handbook", "handbook.md", added.id)
    around = shelf.does("knowledge_read", ADA, id=one["id"])
    assert around["id"] == one["id"] and around["uri"] == "handbook.md"
    assert around["text"].endswith("Gate nine.") and len(around["text"]) > len(one["text"])
    whole = shelf.does("knowledge_read", ADA, id=added.id)
    assert whole["text"] == HANDBOOK
    assert found(shelf, "zeppelin") == found(shelf, '"') == []


@pytest.mark.parametrize("query", ['gate" OR *', "NEAR(gate)", "gate:* & !nine", "' gate", "gate " + "x " * 10_000])
def test_a_query_is_words_and_never_syntax(shelf: Shelf, settings: Settings, query: str) -> None:
    give(settings, "a", "Gate nine.")
    give(settings, "b", "Nothing like it.")
    assert found(shelf, query) == ["Gate nine."]


def test_limits_come_from_the_call_else_from_the_settings(shelf: Shelf, settings: Settings) -> None:
    for number in range(7):
        give(settings, f"{number}.md", f"gate {number}")
    assert len(found(shelf, "gate")) == 5 and len(found(shelf, "gate", limit=7)) == 7
    assert len(shelf.does("knowledge_search", ADA, KnowledgeSpec(top_k=2), query="gate")) == 2


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("knowledge_search", {"query": " "}),
        ("knowledge_search", {"query": "x", "limit": 51}),
        ("knowledge_search", {"query": "x", "agentId": "bob"}),
        ("knowledge_read", {"id": ""}),
        ("knowledge_read", {}),
    ],
)
def test_bad_input_is_refused(shelf: Shelf, tool: str, given: dict[str, Any]) -> None:
    assert shelf.call(tool, ADA, **given).code == "invalid_input"


def test_what_is_not_there_is_not_read(shelf: Shelf, settings: Settings) -> None:
    added = give(settings, "a", "Gate nine.")
    for id_ in (
        "nothing",
        f"{added.id}.7",
        f"{added.id}.x",
        f"{added.id}.-1",
        f"{added.id}.²",
        f"{added.id}.{'9' * 40}",
    ):
        assert shelf.call("knowledge_read", ADA, id=id_).code == "not_found", id_


def test_given_again_it_is_replaced_and_the_same_content_is_kept_once(shelf: Shelf, settings: Settings) -> None:
    first = give(settings, "a.md", HANDBOOK)
    assert give(settings, "a.md", HANDBOOK) == knowledge.Added(first.id, "unchanged", 0)
    assert give(settings, "copy.md", HANDBOOK) == knowledge.Added(first.id, "known", 0)

    again = give(settings, "a.md", "Gate ten.")
    assert (again.id, again.how, again.passages) == (first.id, "replaced", 1)
    assert found(shelf, "gate") == ["Gate ten."] and found(shelf, "handbook") == []
    assert (count(shelf, sources), count(shelf, passages)) == (1, 1)


def test_the_same_address_given_at_once_is_one_source_with_the_passages_of_one(
    shelf: Shelf, settings: Settings
) -> None:
    threads = [threading.Thread(target=give, args=(settings, "a", f"by {n}\n\n{'word ' * 300}")) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert count(shelf, sources) == 1
    assert count(shelf, passages) == len(pieces(f"by 1\n\n{'word ' * 300}"))


def test_a_source_is_of_all_agents_or_of_one_and_never_of_another_owner(shelf: Shelf, settings: Settings) -> None:
    give(settings, "all", "the gate for all")
    mine = give(settings, "ada", "the gate of ada", agent_id="ada")
    give(settings, "else", "the gate elsewhere", owner="else")

    assert set(found(shelf, "gate")) == {"the gate for all", "the gate of ada"}
    assert found(shelf, "gate", agent("bob")) == ["the gate for all"]
    assert found(shelf, "gate", agent("ada", owner_id="else")) == ["the gate elsewhere"]
    assert set(found(shelf, "gate", agent("ada", being_id="b"))) == {"the gate for all", "the gate of ada"}
    for id_ in (mine.id, f"{mine.id}.0"):
        assert shelf.call("knowledge_read", agent("bob"), id=id_).code == "not_found"
        assert shelf.call("knowledge_read", agent("ada", owner_id="else"), id=id_).code == "not_found"


def test_sources_are_listed_and_removed_by_their_owner_only(shelf: Shelf, settings: Settings) -> None:
    added = give(settings, "a.md", "Gate nine.", agent_id="ada", title="Gates")
    (shown,) = knowledge.listed(settings, "local")
    assert (shown["id"], shown["uri"], shown["title"], shown["agentId"], shown["bytes"]) == (
        *(added.id, "a.md", "Gates", "ada", 10),
    )
    assert knowledge.listed(settings, "else") == knowledge.listed(settings, "local", agent_id="bob") == []
    with pytest.raises(Refused, match="there is no source"):
        knowledge.remove(settings, "else", added.id)

    knowledge.remove(settings, "local", added.id)
    assert found(shelf, "gate") == [] and count(shelf, passages) == 0


def test_what_is_too_much_or_nothing_is_refused_whole(shelf: Shelf, settings: Settings) -> None:
    small = settings.model_copy(update={"keeping": Keeping(sources=2, source_bytes=100, source_chars=20)})
    for text, code in (("x" * 101, "too_large"), ("y" * 21, "too_large"), (" \n\n ", "empty_source")):
        with pytest.raises(Refused) as refused:
            give(small, "a", text)
        assert refused.value.code == code
    give(small, "a", "one")
    give(small, "b", "two")
    with pytest.raises(Refused) as full:
        give(small, "c", "three")
    assert full.value.code == "quota"
    assert give(small, "b", "four").how == "replaced" and count(shelf, sources) == 2


def test_secrets_are_masked_before_anything_is_stored(shelf: Shelf, settings: Settings) -> None:
    give(settings, "a", "The gate takes Bearer abcdef0123456789abcdef, half \ud83d and NUL \0 too.")
    (text,) = found(shelf, "gate")
    assert "***" in text and "abcdef0123" not in text and "\0" not in text
    assert found(shelf, "abcdef0123456789abcdef") == []


class Directions:
    """Texts as points: rain and water lie together, gates elsewhere."""

    model = "directions"
    fails = False

    def embed(self, texts: Any, *, timeout_s: float) -> list[list[float]]:
        if self.fails:
            raise SkillError("remote_error", "the endpoint is away")
        return [[float("rain" in t or "water" in t), float("gate" in t), 0.01] for t in texts]


def test_where_a_model_is_set_up_passages_are_found_by_meaning_too(settings: Settings) -> None:
    model = Directions()
    shelf = Shelf(get_database(settings), embeddings=model)
    give(settings, "a", "It will rain.", embeddings=model)
    give(settings, "b", "The gate.", embeddings=model)
    give(settings, "c", "water, given without the model")

    assert set(found(shelf, "water")) == {"water, given without the model", "It will rain."}
    assert found(Shelf(shelf.database), "water") == ["water, given without the model"]
    model.fails = True
    assert found(shelf, "water") == ["water, given without the model"], "words are found without it"
    assert give(settings, "d", "more water", embeddings=model).how == "added"


def test_texts_are_parted_at_the_best_joint_there_is() -> None:
    assert pieces("one\n\n\ntwo\n\nthree", 9) == ["one\n\ntwo", "three"]
    assert pieces("First sentence. Second one.", 20) == ["First sentence.", "Second one."]
    assert pieces("x" * 25, 10) == ["x" * 10, "x" * 10, "x" * 5]
    assert pieces(" \n\n ") == []
    text = "word " * 5_000
    assert "".join(pieces(text)).replace(" ", "") == text.replace(" ", "")
    assert all(len(piece) <= 1_200 for piece in pieces(text))
