"""What agents say while they say it, from a worker to whoever looks on."""

import io
import threading

import pytest
from rich.console import Console

from orchestrator import events, live, queue, threads
from orchestrator.chat import Chat
from orchestrator.live import Delta, Live
from orchestrator.rooms import Here
from orchestrator.store import events as rows
from orchestrator.store.database import get_database
from orchestrator.watch import Rows, look
from tests.projects import Watched, start, task
from tests.stub_model import StubModel
from tests.support import eventually

STORY = "Once upon a time there was a queue. " * 8


@pytest.fixture
def told():
    """A model that speaks slowly enough to listen."""
    with StubModel([{"text": STORY, "pieceMs": 10}]) as stub:
        yield stub


def environment(stub):
    model = {"NAME": "stub", "BASE_URL": stub.url, "INPUT_PRICE": "0", "OUTPUT_PRICE": "0"}
    return {f"MODELS__STANDARD__{name}": value for name, value in model.items()}


def test_pieces_reach_who_listens_before_the_message_and_are_never_stored(
    tmp_path, live_settings, worker_process, told
):
    worker_process(live_settings, **environment(told)).ready()
    heard, kinds, done = [], [], threading.Event()
    silent = live_settings.model_copy(update={"broker_url": "", "redis_url": live_settings.broker_url})
    project = start(tmp_path / "p", silent, [task("tell")], {"tasks": {"tell": []}})

    def follow():
        def hear(message):
            heard.append((live.read(message), "message" in kinds))

        for batch in events.follow(live_settings, project.project_id, 0, done.is_set, hear):
            kinds.extend(event.kind for event in batch)

    follower = threading.Thread(target=follow)
    follower.start()
    eventually(lambda: Live(live_settings).listened(project.project_id))
    queue.advance(live_settings, project.project_id, "test")
    watched = Watched(live_settings, project.project_id)
    assert watched.ended(60) == "completed"
    done.set()
    follower.join(10)

    pieces = [piece for piece, _ in heard]
    assert "".join(piece.text for piece in pieces) == STORY.rstrip() or STORY.startswith(pieces[0].text)
    assert len(pieces) > 3
    assert {piece.kind for piece in pieces} == {"message.delta"}
    assert {piece.run_id for piece in pieces} == {watched.runs[0].id}
    assert not all(after for _, after in heard), "they came before the message did"
    assert not [event.kind for event in watched.trace if event.kind.endswith(".delta")]


def test_while_nobody_listens_the_model_is_asked_for_the_whole(tmp_path, live_settings, worker_process, told):
    worker_process(live_settings, **environment(told)).ready()
    project = start(tmp_path / "p", live_settings, [task("tell")], {"tasks": {"tell": []}})
    assert Watched(live_settings, project.project_id).ended(60) == "completed"
    assert ["stream" in body for body in told.latest] == [False]


def test_a_conversation_shows_what_is_said_once_and_while_it_is_said(live_settings, worker_process, told):
    worker_process(live_settings, **environment(told)).ready()
    voice = threads.find_agent(live_settings, "assistant")
    thread_id = threads.create(live_settings, voice, title="A story", mode=None, script=None)
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, color_system=None, width=200)
    said = iter(["Tell me.", "/quit"])
    assert Chat(Here(live_settings, thread_id), console, lambda _: next(said), direct=True).run() == 0
    assert ["stream" in body for body in told.latest] == [True]
    assert shown.getvalue().count(STORY.strip()) == 1
    with get_database(live_settings).read() as connection:
        assert not [e for e in rows.after(connection, thread_id, 0, 1_000) if e.kind.endswith(".delta")]


def test_a_piece_that_is_none_is_nothing():
    assert live.read("{}") is None
    assert live.read("no json") is None
    assert live.read('["x"]') is None
    assert live.read('{"kind": "message.delta", "run_id": "r", "at": 0, "text": "x"}') == Delta(
        "message.delta", "r", 0, "x"
    )


def test_watching_shows_an_answer_while_it_is_said(tmp_path, live_settings, worker_process, told):
    worker_process(live_settings, **environment(told)).ready()
    silent = live_settings.model_copy(update={"broker_url": "", "redis_url": live_settings.broker_url})
    project = start(tmp_path / "p", silent, [task("tell")], {"tasks": {"tell": []}})
    lines = []
    watching = threading.Thread(target=lambda: look(Rows(live_settings, project.project_id), tell=lines.append))
    watching.start()
    eventually(lambda: Live(live_settings).listened(project.project_id))
    queue.advance(live_settings, project.project_id, "test")
    watching.join(60)

    kinds = [line["kind"] for line in lines]
    assert "message.delta" in kinds[: kinds.index("message", kinds.index("think"))]
    heard = "".join(line["text"] for line in lines if line["kind"] == "message.delta")
    assert heard.startswith("Once upon a time") and kinds[-1] == "watch.ended"
