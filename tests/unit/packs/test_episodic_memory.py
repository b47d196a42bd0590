"""The pack `episodic-memory`, over the messages of runs (spec: engine 15)."""

import threading
import time
from typing import Any

import pytest
from sqlalchemy import func, insert, select, update

from orchestrator.settings import Settings
from orchestrator.store import agents
from orchestrator.store.database import get_database, now_ms
from orchestrator.store.notebook_tables import passages, recalled_runs
from orchestrator.store.tables import messages, projects, runs
from orchestrator.store.thread_tables import thread_runs, threads
from registry.agents import AgentDefinition
from registry.packs.episodic_memory import EpisodicSpec
from registry.skills.context import Caller
from tests.notebooks import Shelf, agent
from tests.rows import Project

DAY = 86_400_000


class Past:
    """Runs that have happened."""

    def __init__(self, settings: Settings, **about: Any) -> None:
        self.settings = settings
        self.project = Project(settings, **about)
        self.project.task("work", "completed")
        self.count = 0

    def run(self, agent_id: str, *said: Any, ago: int = 0, **columns: Any) -> str:
        """An ended run with these messages: a text of the agent, or a whole body."""
        self.count += 1
        run_id = self.project.run("work", "completed", agent_id=agent_id, **columns)
        rows = [
            {"run_id": run_id, "number": n, "history": "messages", "body": self._body(body)}
            for n, body in enumerate(said, start=1)
        ]
        ended = now_ms() - ago if columns.get("status") != "running" else None
        database = get_database(self.settings)
        database.write(lambda c: c.execute(update(runs).where(runs.c.id == run_id).values(ended_at=ended)))
        database.write(lambda c: c.execute(insert(messages), rows))
        return run_id

    @staticmethod
    def _body(body: Any) -> dict[str, Any]:
        return body if isinstance(body, dict) else {"role": "assistant", "content": body}


@pytest.fixture
def past(settings: Settings) -> Past:
    return Past(settings)


def ada(past: Past, **about: Any) -> Caller:
    return agent("ada", project_id=past.project.id, **about)


def recalled(shelf: Shelf, caller: Caller, query: str, specs: Any = None, **about: Any) -> list[str]:
    return [one["text"] for one in shelf.does("recall_search", caller, specs, query=query, **about)]


def test_what_was_said_in_earlier_runs_is_found_by_its_words(shelf: Shelf, past: Past) -> None:
    past.run("ada", {"role": "user", "content": "When does the zeppelin leave?"}, "The zeppelin leaves from gate nine.")
    past.run("ada", "Cats sleep by day.")

    found = shelf.does("recall_search", ada(past), query="zeppelin gate")
    assert found[0] == {"threadId": None, "seq": 2, "text": "The zeppelin leaves from gate nine.", "score": 1.0}
    assert found[1]["seq"] == 1 and 0 < found[1]["score"] < 1 and len(found) == 2
    assert recalled(shelf, ada(past), "submarine") == []
    assert recalled(shelf, ada(past), "?! -- ...") == []


@pytest.mark.parametrize(
    "query",
    [
        'monday" OR 1=1 --',
        "NEAR(monday rain, 2)",
        "mon* monday",
        "terms: monday",
        "-monday NOT monday",
        "'monday' & !monday | (monday",
        "monday:* <-> rain",
        '"""monday',
        "^monday + {text}: x",
        "monday \\ ' ; DROP TABLE passages",
        "Mönday ﬀ 星期一 monday \U0001f600",
    ],
)
def test_a_query_is_words_and_never_syntax(shelf: Shelf, past: Past, query: str) -> None:
    past.run("ada", "Rain on Monday.")
    past.run("ada", "Something else, on a Tuesday")
    assert recalled(shelf, ada(past), query)[:1] == ["Rain on Monday."]


def test_ten_thousand_words_are_a_question_too(shelf: Shelf, past: Past) -> None:
    past.run("ada", "Rain on Monday.")
    begun = time.monotonic()
    assert recalled(shelf, ada(past), " ".join(["monday", *(f"word{n}" for n in range(10_000))])) == ["Rain on Monday."]
    assert recalled(shelf, ada(past), "x" * 199_000) == []
    assert time.monotonic() - begun < 5


@pytest.mark.parametrize(
    ("said", "query"),
    [
        ("Zażółć gęślą jaźń", "GĘŚLĄ"),
        ("会议在星期一举行", "星期一"),
        ("ประชุมวันจันทร์", "วันจันทร์"),
        ("कल बैठक है", "बैठक"),
        ("use the snake_case name", "snake"),
        ("Straße 9", "STRASSE"),
        ("it's o'clock", "o'clock"),
    ],
)
def test_words_of_any_script_are_found(shelf: Shelf, past: Past, said: str, query: str) -> None:
    past.run("ada", said)
    past.run("ada", "resume of something else altogether")
    assert recalled(shelf, ada(past), query) == [said]


def test_what_tools_brought_summaries_and_runs_under_way_are_no_memories(shelf: Shelf, past: Past) -> None:
    past.run(
        "ada",
        {"role": "tool", "toolCallId": "c", "name": "web.fetch", "content": "gate of a page", "outside": 14},
        {"role": "assistant", "content": "gate in a summary", "kind": "compaction", "coveredUntil": 1},
        {"role": "assistant", "content": None, "toolCalls": []},
        {"role": "assistant", "content": ""},
        "gate of mine",
    )
    open_run = past.run("ada", "gate of now")
    shelf.database.write(lambda c: c.execute(update(runs).where(runs.c.id == open_run).values(ended_at=None)))
    past.run("ada", "gate of an item", kind="item")
    assert recalled(shelf, ada(past), "gate") == ["gate of mine"]

    shelf.database.write(lambda c: c.execute(update(runs).where(runs.c.id == open_run).values(ended_at=now_ms())))
    assert set(recalled(shelf, ada(past), "gate")) == {"gate of mine", "gate of now"}, "it ended a moment ago"


def test_limits_come_from_the_call_else_from_the_settings(shelf: Shelf, past: Past) -> None:
    for number in range(12):
        past.run("ada", f"gate {number}")
    assert len(recalled(shelf, ada(past), "gate")) == 8
    assert len(recalled(shelf, ada(past), "gate", EpisodicSpec(top_k=3))) == 3
    assert len(recalled(shelf, ada(past), "gate", EpisodicSpec(top_k=3), limit=11)) == 11


@pytest.mark.parametrize(
    "given",
    [
        {"query": ""},
        {"query": "  "},
        {"query": "x" * 200_001},
        {"query": "x", "limit": 0},
        {"query": "x", "limit": 51},
        {"query": "x", "agentId": "bob"},
        {"query": "x", "threadId": ""},
        {"query": 1},
    ],
)
def test_a_bad_query_is_refused(shelf: Shelf, past: Past, given: dict[str, Any]) -> None:
    assert shelf.call("recall_search", ada(past), **given).code == "invalid_input"


def test_each_agent_finds_its_own_only(shelf: Shelf, past: Past, settings: Settings) -> None:
    other, elsewhere = Past(settings), Past(settings, owner_id="else")
    definition = AgentDefinition(id="saved", name="Saved")
    shelf.database.write(lambda c: agents.save(c, "local", definition, name_key="saved", call_key=None))
    said = {
        "being": (past, agent("citizen", being_id="b", project_id=past.project.id)),
        "project agent": (past, agent("ada", project_id=past.project.id)),
        "its colleague": (past, agent("bob", project_id=past.project.id)),
        "namesake": (other, agent("ada", project_id=other.project.id)),
        "saved agent": (other, agent("saved", project_id=past.project.id)),
        "other owner's": (elsewhere, agent("ada", project_id=elsewhere.project.id, owner_id="else")),
        "other owner's citizen": (elsewhere, agent("citizen", being_id="b", owner_id="else")),
    }
    for name, (place, caller) in said.items():
        place.run(str(caller.agent_id), f"the gate of {name}")
    for name, (_, caller) in said.items():
        assert recalled(shelf, caller, "gate") == [f"the gate of {name}"], name
        assert recalled(shelf, caller, "gate") == [f"the gate of {name}"], name
    child = agent("helper", project_id=past.project.id, run_id="child")
    assert recalled(shelf, child, "gate") == []
    assert shelf.call("recall_search", Caller("plugin"), query="gate").output == []


def talk(settings: Settings, past: Past, *run_ids: str, speaker: str = "ada") -> str:
    """A thread of these runs."""
    id_ = past.project.id
    past.project.set(projects, id_, kind="thread")
    row = {"id": id_, "kind": "chat", "agent_id": speaker, "agent_name": speaker, "origin_agent_id": speaker}
    rows = [
        {"thread_id": id_, "number": n, "run_id": run_id, "history_from": 1, "origin": "person"}
        for n, run_id in enumerate(run_ids, start=1)
    ]
    database = get_database(settings)
    database.write(lambda c: c.execute(insert(threads).values(row | {"created_at": now_ms(), "active_at": now_ms()})))
    database.write(lambda c: c.execute(insert(thread_runs), rows))
    return id_


def test_a_conversation_is_searched_alone_and_its_messages_are_counted_through(
    shelf: Shelf, past: Past, settings: Settings
) -> None:
    thread = talk(settings, past, past.run("ada", "the gate", "and a door"), past.run("ada", "another gate"))
    elsewhere = Past(settings)
    other = talk(settings, elsewhere, elsewhere.run("ada", "a gate elsewhere"))
    task = Past(settings)
    task.run("ada", "the gate of a task by an agent of the same name")
    caller = agent("ada", thread_id=thread, project_id=thread)

    found = shelf.does("recall_search", caller, query="gate")
    places = {(one["threadId"], one["seq"]): one["text"] for one in found}
    assert places == {(thread, 1): "the gate", (thread, 3): "another gate", (other, 1): "a gate elsewhere"}
    assert set(recalled(shelf, caller, "gate", threadId=thread)) == {"the gate", "another gate"}
    assert recalled(shelf, caller, "gate", threadId="unknown") == []


def test_what_a_summary_replaced_in_the_present_run_is_found_unless_the_settings_say_no(
    shelf: Shelf, past: Past
) -> None:
    summary = {"role": "assistant", "content": "in short", "kind": "compaction", "coveredUntil": 2}
    now = past.run("ada", "the early gate", "the second gate", "the gate that is still sent", summary)
    shelf.database.write(lambda c: c.execute(update(runs).where(runs.c.id == now).values(ended_at=None)))
    caller = agent("ada", project_id=past.project.id, run_id=now)

    assert recalled(shelf, caller, "gate early") == ["the early gate", "the second gate"]
    assert recalled(shelf, caller, "gate", EpisodicSpec(index_on_compact=False)) == []
    assert recalled(shelf, ada(past), "gate") == []


def test_secrets_are_masked_before_they_are_indexed(shelf: Shelf, past: Past) -> None:
    past.run("ada", "The gate takes Bearer abcdef0123456789abcdef as its word.", "half \ud83d a character")
    assert recalled(shelf, ada(past), "gate") == ["The gate takes *** as its word."]
    assert recalled(shelf, ada(past), "abcdef0123456789abcdef") == []
    with shelf.database.read() as connection:
        assert not any("abcdef0123" in text for text in connection.execute(select(passages.c.text)).scalars())


def test_a_long_message_is_found_in_pieces(shelf: Shelf, past: Past) -> None:
    past.run("ada", "\n\n".join(f"Paragraph {n} " + "filler " * 100 for n in range(30)) + "\n\nthe needle at the end")
    (found,) = shelf.does("recall_search", ada(past), query="needle")
    assert found["text"].endswith("the needle at the end") and len(found["text"]) <= 2_000 and found["seq"] == 1


def test_only_the_latest_and_the_young_are_kept(past: Past, settings: Settings) -> None:
    shelf = Shelf(get_database(settings), recall_passages=3, recall_days=10)
    for number in range(5):
        past.run("ada", f"gate {number}", ago=(10 - number) * 1_000)
    past.run("ada", "gate of long ago", ago=11 * DAY)
    assert set(recalled(shelf, ada(past), "gate")) == {"gate 2", "gate 3", "gate 4"}


def test_searches_at_once_index_every_run_once(shelf: Shelf, past: Past) -> None:
    for number in range(45):
        past.run("ada", f"gate {number}")
    threads_ = [threading.Thread(target=recalled, args=(shelf, ada(past), "gate")) for _ in range(4)]
    for thread in threads_:
        thread.start()
    for thread in threads_:
        thread.join(60)

    assert len(recalled(shelf, ada(past), "gate", limit=50)) == 45
    with shelf.database.read() as connection:
        assert connection.execute(select(func.count()).select_from(passages)).scalar_one() == 45
        assert connection.execute(select(func.count()).select_from(recalled_runs)).scalar_one() == 45


def test_a_run_that_is_deleted_takes_what_was_said_with_it(shelf: Shelf, past: Past) -> None:
    run_id = past.run("ada", "the gate")
    past.run("ada", "another gate")
    assert len(recalled(shelf, ada(past), "gate")) == 2

    shelf.database.write(lambda c: c.execute(messages.delete().where(messages.c.run_id == run_id)))
    shelf.database.write(lambda c: c.execute(runs.delete().where(runs.c.id == run_id)))
    assert recalled(shelf, ada(past), "gate") == ["another gate"]
