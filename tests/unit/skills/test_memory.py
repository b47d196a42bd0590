"""memory.store and memory.recall, over real rows on both databases (spec: skills 7.19, 7.20, 18)."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import func, insert, select, update

from orchestrator.ports import memory as port
from orchestrator.ports.memory import StoredMemories
from orchestrator.settings import Settings
from orchestrator.store.database import Database, get_database
from orchestrator.store.kept import memories, memory_words
from orchestrator.store.memories import DAY_MS
from orchestrator.store.tables import calls
from registry.skills import catalogue
from registry.skills.context import Caller, SkillContext
from registry.skills.memory import SKILLS
from registry.skills.registry import SkillRegistry, SkillResult
from registry.skills.secrets import looks_secret
from registry.words import words
from tests.rows import Project

REGISTRY = SkillRegistry(SKILLS)
PERSON = Caller("person")


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    made = Database(database_url)
    yield made
    made.dispose()


@pytest.fixture
def settings(tmp_path: Any, database_url: str) -> Settings:
    return Settings(home=tmp_path / "home", database_url=database_url, _env_file=None)  # type: ignore[call-arg]


def call(database: Database, name: str, caller: Caller = PERSON, /, **arguments: Any) -> SkillResult:
    memory = StoredMemories(database, outside=["web.fetch"])
    return REGISTRY.invoke(name, arguments, SkillContext(caller, memory=memory))


def keep(database: Database, content: str, caller: Caller = PERSON, /, **arguments: Any) -> dict[str, Any]:
    result = call(database, "memory.store", caller, content=content, **arguments)
    assert result.ok, result.error
    return result.output  # type: ignore[no-any-return]


def found(database: Database, query: str, caller: Caller = PERSON, /, **arguments: Any) -> list[str]:
    result = call(database, "memory.recall", caller, query=query, **arguments)
    assert result.ok, result.error
    return [one["content"] for one in result.output["memories"]]


def being(name: str, **others: Any) -> Caller:
    return Caller("run", being_id=name, run_id="r", **others)


def test_what_was_kept_is_found_by_its_words(database: Database) -> None:
    made = keep(database, "The zeppelin leaves from gate nine.", kind="fact", tags=["travel"], importance=0.9)
    keep(database, "Cats sleep by day.")

    assert made["stored"] is True and made["wired"] is True
    answer = call(database, "memory.recall", query="zeppelin gate")
    (one,) = answer.output["memories"]
    assert one["content"] == "The zeppelin leaves from gate nine."
    assert (one["kind"], one["tags"], one["importance"], one["untrusted"]) == ("fact", ["travel"], 0.9, False)
    assert one["id"] == made["id"] and one["createdAt"].endswith("Z")
    assert one["score"] == pytest.approx(0.6 + 0.2 + 0.2 * 0.9, abs=0.001)


def test_nothing_alike_is_nothing_found_never_the_newest(database: Database) -> None:
    keep(database, "Cats sleep by day.")

    assert found(database, "zeppelin") == []
    assert found(database, "?! -- ...") == []


def test_a_query_is_words_and_no_syntax(database: Database) -> None:
    keep(database, "Rain on Monday")

    assert found(database, 'monday" OR 1=1 -- NEAR(* ^rain) :* & | !') == ["Rain on Monday"]
    assert found(database, "NOT monday") == ["Rain on Monday"]
    assert found(database, "mon*") == []


@pytest.mark.parametrize(
    ("content", "query"),
    [
        ("Zażółć gęślą jaźń", "GĘŚLĄ"),
        ("会议在星期一举行", "星期一"),
        ("ประชุมวันจันทร์", "วันจันทร์"),
        ("कल बैठक है", "बैठक"),
        ("use the snake_case name", "snake"),
        ("Straße 9", "STRASSE"),
        ("ﬁnal report", "final"),
        ("version 7", "7"),
    ],
)
def test_words_of_any_script_are_found(database: Database, content: str, query: str) -> None:
    keep(database, content)
    keep(database, "something else altogether")

    assert found(database, query) == [content]


def test_a_rare_word_counts_more_than_a_common_one_and_a_short_text_more_than_a_long_one(database: Database) -> None:
    for number in range(8):
        keep(database, f"the report of day {number}")
    keep(database, "the zeppelin")
    keep(database, "the zeppelin among many other things that are told at length")

    assert found(database, "report zeppelin", limit=1) == ["the zeppelin"]
    assert found(database, "zeppelin") == [
        "the zeppelin",
        "the zeppelin among many other things that are told at length",
    ]


def test_recency_and_importance_decide_between_equals(database: Database) -> None:
    old, new = keep(database, "gate one")["id"], keep(database, "gate two")["id"]
    database.write(
        lambda c: c.execute(
            update(memories).where(memories.c.id == old).values(created_at=memories.c.created_at - 60 * DAY_MS)
        )
    )
    assert found(database, "gate")[0] == "gate two"

    database.write(
        lambda c: c.execute(update(memories).where(memories.c.id == new).values(importance=0.0, last_used_at=None))
    )
    database.write(
        lambda c: c.execute(update(memories).where(memories.c.id == old).values(importance=1.0, last_used_at=None))
    )
    assert found(database, "gate")[0] == "gate one"


def test_recall_notes_the_use(database: Database) -> None:
    made = keep(database, "gate one")["id"]
    found(database, "gate")
    found(database, "gate")

    with database.read() as connection:
        row = connection.execute(select(memories).where(memories.c.id == made)).one()
    assert row.uses == 2 and row.last_used_at >= row.created_at


def test_filters_narrow(database: Database) -> None:
    keep(database, "gate one", kind="fact", tags=["a", "b"])
    keep(database, "gate two", kind="event", tags=["a"])

    assert found(database, "gate", kinds=["event", "insight"]) == ["gate two"]
    assert found(database, "gate", tags=["a", "b"]) == ["gate one"]
    assert len(found(database, "gate", tags=["a"])) == 2
    assert found(database, "gate", since="2999-01-01T00:00:00Z") == []
    assert len(found(database, "gate", since="2020-01-01T00:00:00+02:00")) == 2
    assert found(database, "gate", minScore=1) == []
    assert len(found(database, "gate", limit=1)) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        {"query": ""},
        {"query": "  "},
        {"query": "x" * 501},
        {"query": "x", "limit": 0},
        {"query": "x", "limit": 21},
        {"query": "x", "kinds": ["secret"]},
        {"query": "x", "since": "2026-01-01T00:00:00"},
        {"query": "x", "since": "yesterday"},
        {"query": "x", "minScore": 1.1},
        {"query": "x", "scope": "everyone"},
        {"query": "x", "ownerId": "other"},
    ],
)
def test_a_bad_recall_is_refused(database: Database, arguments: dict[str, Any]) -> None:
    assert call(database, "memory.recall", **arguments).code == "invalid_input"


@pytest.mark.parametrize(
    "arguments",
    [
        {"content": ""},
        {"content": " \n "},
        {"content": "x" * 4001},
        {"content": "x", "kind": "secret"},
        {"content": "x", "tags": ["t"] * 11},
        {"content": "x", "tags": ["t" * 33]},
        {"content": "x", "tags": ["a\nb"]},
        {"content": "x", "importance": 1.5},
        {"content": "x", "importance": "high"},
        {"content": "x", "ttlDays": 0},
        {"content": "x", "ttlDays": 3651},
        {"content": "x", "untrusted": False},
        {"content": "x", "beingId": "someone"},
    ],
)
def test_a_bad_note_is_refused(database: Database, arguments: dict[str, Any]) -> None:
    assert call(database, "memory.store", **arguments).code == "invalid_input"


def test_the_same_again_makes_no_second_memory_and_keeps_the_higher_importance(database: Database) -> None:
    first = keep(database, "Gate  NINE", importance=0.3, ttlDays=1)
    again = keep(database, "gate nine\n", importance=0.8)
    third = keep(database, "gate nine", importance=0.1, ttlDays=1)

    assert (again["stored"], again["duplicateOf"]) == (False, first["id"])
    assert third["duplicateOf"] == first["id"]
    with database.read() as connection:
        (row,) = connection.execute(select(memories)).all()
    assert (row.importance, row.expires_at, row.content) == (0.8, None, "Gate  NINE")


def test_what_is_past_its_time_is_not_found_and_goes(database: Database) -> None:
    old = keep(database, "gate one", ttlDays=1)["id"]
    database.write(lambda c: c.execute(update(memories).where(memories.c.id == old).values(expires_at=1)))

    assert found(database, "gate") == []
    assert keep(database, "gate one")["stored"] is True
    with database.read() as connection:
        assert connection.execute(select(func.count()).select_from(memories)).scalar_one() == 1
        assert connection.execute(select(func.count()).select_from(memory_words)).scalar_one() == 2


def test_the_least_important_makes_way_and_what_matters_stays(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(port.StoredMemories.__init__.__kwdefaults__, "most", 3)
    for number, importance in enumerate([0.9, 0.2, 0.6]):
        keep(database, f"note {number}", importance=importance)

    keep(database, "note 3", importance=0.5)
    refused = call(database, "memory.store", content="note 4", importance=0.1)

    assert refused.code == "quota"
    assert set(found(database, "note", limit=20)) == {"note 0", "note 2", "note 3"}


def test_everyone_sees_their_own_only(database: Database, settings: Settings) -> None:
    project, other = Project(settings), Project(settings)
    callers = {
        "being a": being("a", project_id=project.id),
        "being b": being("b", project_id=project.id),
        "agent": Caller("run", project_id=project.id, run_id="r"),
        "other project": Caller("run", project_id=other.id, run_id="r"),
        "person": PERSON,
        "other owner": Caller("person", owner_id="else"),
        "other owner's being": being("a", owner_id="else"),
    }
    for name, caller in callers.items():
        keep(database, f"the gate of {name}", caller)

    for name, caller in callers.items():
        assert found(database, "gate", caller) == [f"the gate of {name}"], name
    assert found(database, "gate", callers["being a"], scope="project") == ["the gate of agent"]


def test_a_caller_with_nowhere_to_keep_anything_is_told_so(database: Database) -> None:
    for caller in (Caller("run", run_id="r"), Caller("plugin")):
        stored = call(database, "memory.store", caller, content="x")
        recalled = call(database, "memory.recall", caller, query="x")
        assert (stored.output["wired"], stored.output["stored"]) == (False, False)
        assert (recalled.output["wired"], recalled.output["memories"]) == (False, [])
    unwired = REGISTRY.invoke("memory.store", {"content": "x"}, SkillContext(PERSON))
    assert unwired.ok and unwired.output["stored"] is False and unwired.output["note"]


def test_a_call_that_runs_again_after_a_crash_finds_its_first_row(database: Database) -> None:
    caller = being("a", call_id="call-1")
    first, again = keep(database, "gate nine", caller), keep(database, "gate nine", caller)

    assert again == first
    assert len(found(database, "gate", being("a"))) == 1


def test_many_that_keep_the_same_at_once_make_one_memory(database: Database) -> None:
    results: list[dict[str, Any]] = []

    def one(number: int) -> None:
        results.append(keep(database, "gate nine", being("a", call_id=f"c{number}")))

    threads = [threading.Thread(target=one, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)

    assert sum(r["stored"] for r in results) == 1 and len({r["id"] for r in results}) == 1


@pytest.mark.parametrize(
    "outside", [("web.fetch", {"content": "x"}), ("box__echo", "x"), ("memory.recall", {"untrusted": True})]
)
def test_what_is_made_where_outside_text_was_read_stays_untrusted(
    database: Database, settings: Settings, outside: tuple[str, dict[str, Any]]
) -> None:
    project = Project(settings)
    project.task("read", "running")
    caller = being("a", project_id=project.id)
    keep(database, "gate one", caller)
    row = {"run_id": project.run_ids["read"], "id": "c", "node_id": "n", "step": 1, "position": 0, "checkpoint": 1}
    entry = {"result": outside[1]}
    row |= {"name": outside[0], "status": "done", "result": entry}
    database.write(lambda c: c.execute(insert(calls).values(row)))
    keep(database, "gate two", caller)
    keep(database, "gate one", being("a"))

    answer = call(database, "memory.recall", being("a"), query="gate").output
    assert {one["content"]: one["untrusted"] for one in answer["memories"]} == {"gate one": False, "gate two": True}
    assert answer["untrusted"] is True


def test_a_dropped_project_takes_its_memories_with_it(database: Database, settings: Settings) -> None:
    from orchestrator.store.tables import projects, traces

    project = Project(settings)
    keep(database, "gate", Caller("run", project_id=project.id, run_id="r"))
    database.write(lambda c: c.execute(traces.delete()))
    database.write(lambda c: c.execute(projects.delete().where(projects.c.id == project.id)))

    with database.read() as connection:
        assert connection.execute(select(memory_words)).all() == []


@pytest.mark.parametrize(
    "text",
    [
        "sk-proj-abcdefghijklmnop1234",
        "my key is ghp_0123456789abcdefghijABCDEFGHIJ",
        "AKIAIOSFODNN7EXAMPLE",
        "the password is hunter2!",
        "password: correct-horse-9",
        "api_key=9f8e7d6c5b4a",
        "Authorization: Bearer abcdef0123456789abcdef",
        "postgres://me:s3cret@db/prod",
        "-----BEGIN RSA PRIVATE KEY-----",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc",
        "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw0",
        "q8ZtR3vX1pLmN7wKc5JdY2hGfB9sAeUo",
    ],
)
def test_what_looks_like_a_secret_is_refused_and_never_repeated(database: Database, text: str) -> None:
    refused = call(database, "memory.store", content=f"Note: {text}")

    assert refused.code == "invalid_input"
    assert text not in str(refused.to_json())
    assert "content" in str(refused.error)


@pytest.mark.parametrize(
    "text",
    [
        "The secret is patience.",
        "The token is of bronze, the password is long.",
        "Ask for the password at the desk.",
        "sha256 5feceb66ffc86f38d952786c6d696c79c2dbc239dd4e91b46729d73a27fb57e9",
        "The run 019365f0-8a7b-7c11-9d2e-3f4a5b6c7d8e failed",
        "See https://example.com/a/very/long/path/that/goes/on?with=query&and=more",
        "docs/2026/reports/quarterly-figures-of-the-northern-branch.md",
        "Chargoggagoggmanchauggagoggchaubunagungamaugg is a lake",
    ],
)
def test_ordinary_words_are_no_secret(text: str) -> None:
    assert not looks_secret(text)


def test_words_are_parted_alike_everywhere() -> None:
    assert words("Gate-9, gate_9; GATE 9!") == ["gate", "9", "gate", "9", "gate", "9"]
    assert words("日本語 text") == ["日", "本", "語", "text"]
    assert words("") == words("—…") == []


def test_recall_from_five_thousand_stays_quick(settings: Settings, sqlite_url: str) -> None:
    import time

    database = get_database(Settings(home=settings.home, database_url=sqlite_url, _env_file=None))  # type: ignore[call-arg]
    row = {"owner_id": "local", "namespace": "owner", "kind": "note", "tags": [], "importance": 0.5, "words": 4}
    rows = [
        row | {"id": f"m{n}", "content": f"the gate number {n}", "content_hash": str(n), "created_at": n}
        for n in range(5000)
    ]
    from orchestrator.store.memories import Space

    space = Space("local", "owner").digest
    lines = [{"space": space, "word": w, "memory_id": r["id"], "count": 1} for r in rows for w in words(r["content"])]
    database.write(lambda c: (c.execute(insert(memories), rows), c.execute(insert(memory_words), lines)))

    begun = time.monotonic()
    assert found(database, "the gate number 4711")[0] == "the gate number 4711"
    assert time.monotonic() - begun < 2


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("memory.store", {"content": "a\0b"}),
        ("signal.raise", {"title": "a", "body": "a\0b"}),
        ("studio.author_generator", {"name": "a", "description": "a\0b", "steps": []}),
    ],
)
def test_a_text_that_one_database_keeps_and_the_other_does_not_is_refused_by_all(
    name: str, given: dict[str, Any]
) -> None:
    refused = catalogue.build().invoke(name, given, SkillContext(PERSON))
    assert refused.code == "invalid_input"
    assert any("NUL" in detail.message for detail in refused.details)
