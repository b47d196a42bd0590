"""`officina chat` against real workers: piped lines, a question on the way, coming back, a worker that dies."""

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from orchestrator import threads
from orchestrator.settings import Settings
from orchestrator.stack.environment import child_environment
from orchestrator.store import invariants
from orchestrator.store import threads as moves
from orchestrator.store.database import get_database
from registry.errors import Refused
from tests.commands import OFFICINA, Ended
from tests.projects import Watched
from tests.studio import API, ApiProcess, bearer, key_of
from tests.support import eventually
from tests.workers import WorkerProcess

pytestmark = pytest.mark.slow

Start = Callable[..., WorkerProcess]
Chat = Callable[..., Ended]

QUICK = {"LIMITS__LEASE_S": "2", "LIMITS__RENEW_S": "0.5", "LIMITS__CLOCK_TICK_S": "0.2"}
ADA: dict[str, Any] = {"id": "ada", "name": "Ada", "instructions": "Talk.", "packs": {"core": True, "threads": True}}
ECHO = {"agents": {"ada": [{"say": "You said: {{ input.text }}"}]}}
ASKS = {
    "agents": {
        "ada": [
            {"calls": [{"name": "ask_user", "args": {"prompt": "Which colour?"}}]},
            {"say": "Then {{ results[0].text }}."},
        ]
    }
}


@pytest.fixture
def chat(live_settings: Settings, tmp_path: Path) -> Chat:
    """Runs `officina chat` with lines on its standard input."""

    def run(*words: str, lines: str = "", script: dict[str, Any] | None = None, **environment: str) -> Ended:
        more: list[str] = []
        if script is not None:
            (tmp_path / "script.json").write_text(json.dumps(script))
            more = ["--script", str(tmp_path / "script.json")]
        (tmp_path / "ada.json").write_text(json.dumps(ADA))
        ended = subprocess.run(
            [OFFICINA, "chat", *words, *more],
            input=lines.encode(),
            capture_output=True,
            check=False,
            cwd=tmp_path,
            env=child_environment(live_settings) | environment,
            timeout=90,
        )
        return Ended(ended.returncode, ended.stdout.decode(), ended.stderr.decode())

    return run


def told(ended: Ended) -> list[dict[str, Any]]:
    assert ended.returncode in (0, 1), ended.stderr
    return [json.loads(line) for line in ended.stdout.splitlines()]


def thread_of(ended: Ended) -> str:
    return ended.stderr.split("thread ")[1].split()[0]


def sound(settings: Settings) -> None:
    with get_database(settings).read() as connection:
        assert [str(row) for row in invariants.broken(connection)] == []


def test_each_line_of_a_pipe_is_a_message_and_gets_its_answer(
    live_settings: Settings, worker_process: Start, chat: Chat
) -> None:
    worker_process(live_settings).ready()

    ended = chat("ada.json", "--json", lines="hello\n\nand again\n", script=ECHO)

    assert ended.returncode == 0
    assert [(one["status"], one["text"]) for one in told(ended)] == [
        *(("completed", "You said: hello"), ("completed", "You said: and again")),
    ]
    assert told(ended)[0]["standIn"] is True
    sound(live_settings)


@pytest.mark.long
def test_a_thread_of_a_studio_elsewhere_is_sat_in_as_one_here(
    live_settings: Settings, worker_process: Start, chat: Chat, tmp_path: Path
) -> None:
    worker_process(live_settings).ready()
    server = ApiProcess(live_settings, tmp_path / "api.log").start()
    far = {"OFFICINA_API_URL": server.url, "OFFICINA_API_KEY": key_of(live_settings)}
    body = {name: ADA[name] for name in ("name", "instructions", "packs")}
    try:
        made = httpx2.post(f"{server.url}{API}/agents", json=body, headers=bearer(far["OFFICINA_API_KEY"])).json()
        script = {"agents": {made["id"]: ASKS["agents"]["ada"]}}

        ended = chat("Ada", "--json", lines="paint\n/answer red\n", script=script, **far)
        thread = thread_of(ended)
        again = chat("--thread", thread[-8:], lines="and more\n/answer blue\n", **far)
        listed, near = chat("--list", "--json", **far), chat("--list", "--json")
        stopped, gone = chat("--thread", thread, "--stop", **far), chat("--thread", thread, "--delete", **far)
        file = chat("ada.json", lines="x\n", **far)
    finally:
        server.close()

    assert [(one["status"], one["text"]) for one in told(ended)] == [("completed", "Then red.")], ended.stderr
    assert "Ada > Then blue." in again.stdout
    assert listed.stdout == near.stdout
    assert (stopped.stdout, gone.stdout) == ("nothing runs in it\n", f"deleted {thread}\n")
    assert (file.returncode, "unknown_agent" in file.stderr) == (1, True)
    sound(live_settings)


def test_it_says_what_the_agent_says_and_how_to_come_back(
    live_settings: Settings, worker_process: Start, chat: Chat
) -> None:
    worker_process(live_settings).ready()

    ended = chat("ada.json", lines="hello\n", script=ECHO)
    listed = chat("--list")
    again = chat("--thread", thread_of(ended)[-8:], lines="more\n")

    assert "Ada > You said: hello" in ended.stdout
    assert "stand-in" in ended.stdout
    assert f"officina chat --thread {thread_of(ended)}" in ended.stderr
    assert thread_of(ended) in listed.stdout and "1 runs" in listed.stdout
    assert "hello" in listed.stdout, "it is called what was said first"
    assert "You said: more" in again.stdout


def test_a_question_of_a_script_is_answered_by_a_line_that_says_so(
    live_settings: Settings, worker_process: Start, chat: Chat
) -> None:
    worker_process(live_settings).ready()

    ended = chat("ada.json", "--json", lines="paint it\n/answer blue\n", script=ASKS)

    assert [(one["status"], one["text"]) for one in told(ended)] == [("completed", "Then blue.")]


def test_a_line_that_is_no_answer_leaves_the_question_open_and_a_later_one_finds_it(
    live_settings: Settings, worker_process: Start, chat: Chat
) -> None:
    worker_process(live_settings).ready()

    parked = chat("ada.json", "--json", lines="paint it\nyes\n", script=ASKS)
    (first,) = told(parked)
    with pytest.raises(Refused) as refused:
        threads.send(live_settings, first["threadId"], "hello?")
    later = chat("--thread", first["threadId"], "--json", lines="/answer green\nthanks\n/answer any\n")

    assert (parked.returncode, first["status"], len(first["signals"])) == (1, "needs_input", 1)
    assert refused.value.code == "pending_signal"
    assert [one["text"] for one in told(later)] == ["Then green.", "Then any."]
    sound(live_settings)


@pytest.mark.long
def test_a_conversation_survives_the_death_of_its_worker(
    live_settings: Settings, worker_process: Start, chat: Chat
) -> None:
    slow = ECHO | {"delayMs": 700}
    first = worker_process(live_settings, **QUICK).ready()
    begun = chat("ada.json", "--json", lines="one\n", script=slow)
    thread_id = told(begun)[0]["threadId"]
    sent = threads.send(live_settings, thread_id, "two")
    trace = Watched(live_settings, thread_id)
    eventually(lambda: any(e.run_id == sent.run_id and e.kind == "run.started" for e in trace.trace), 20)

    first.kill()
    worker_process(live_settings, **QUICK).ready()
    ended = chat("--thread", thread_id, "--json", lines="three\n")

    heard = [one["text"] for one in told(ended)]  # the run that went on may have ended before anybody sat down
    assert heard in (["You said: two", "You said: three"], ["You said: three"])
    said = [line["text"] for line in trace.kinds("message")]
    assert said == ["one", "You said: one", "two", "You said: two", "three", "You said: three"]
    sound(live_settings)


@pytest.mark.parametrize(
    "point", ["ended", *(pytest.param(name, marks=pytest.mark.long) for name in ("claimed", "asking", "heard", "told"))]
)
def test_what_waits_begins_though_the_worker_dies_at_the_end_of_the_run_before(
    live_settings: Settings, worker_process: Start, chat: Chat, point: str
) -> None:
    voice = threads.find_agent(live_settings, _file(live_settings))
    thread_id = threads.create(live_settings, voice, script=ECHO)
    threads.send(live_settings, thread_id, "one")
    queued = threads.trigger(live_settings, thread_id, threads.Message("tick", origin="schedule", source_id="s"))

    dies = worker_process(live_settings, **QUICK, CRASHPOINTS=f"{point}=1")
    eventually(lambda: not dies.process.running, 60)
    worker_process(live_settings, **QUICK).ready()

    assert queued.queued
    eventually(lambda: _row(live_settings, thread_id).runs == 2 and _row(live_settings, thread_id).run_id is None, 30)
    said = [line["text"] for line in Watched(live_settings, thread_id).kinds("message")]
    assert said == ["one", "You said: one", "tick", "You said: tick"]
    sound(live_settings)


def test_what_was_said_is_heard_though_whoever_sent_it_died_at_once(
    live_settings: Settings, worker_process: Start, tmp_path: Path
) -> None:
    voice = threads.find_agent(live_settings, _file(live_settings))
    thread_id = threads.create(live_settings, voice, script=ECHO)
    killed = subprocess.run(
        [OFFICINA, "chat", "--thread", thread_id],
        input=b"hello\n",
        capture_output=True,
        check=False,
        env=child_environment(live_settings) | {"OFFICINA_CRASHPOINTS": "submitted=1"},
        timeout=60,
    )

    worker_process(live_settings, **QUICK).ready()

    assert killed.returncode == -signal.SIGKILL
    eventually(lambda: _row(live_settings, thread_id).run_id is None, 30)
    assert [one["text"] for one in Watched(live_settings, thread_id).kinds("message")] == ["hello", "You said: hello"]
    sound(live_settings)


@pytest.mark.long
def test_what_is_under_way_is_shown_first_and_then_the_message_is_sent(
    live_settings: Settings, worker_process: Start, chat: Chat
) -> None:
    worker_process(live_settings).ready()
    voice = threads.find_agent(live_settings, _file(live_settings))
    thread_id = threads.create(live_settings, voice, script=ECHO | {"delayMs": 3000})
    for number in range(3):
        message = threads.Message(f"tick {number}", origin="webhook", source_id="h")
        threads.trigger(live_settings, thread_id, message)

    ended = chat("--thread", thread_id, "--json", lines="and me\n")

    assert ended.returncode == 0
    assert [one["text"] for one in told(ended)][-1] == "You said: and me"
    said = [one["text"] for one in Watched(live_settings, thread_id).kinds("message") if one["role"] == "user"]
    assert said == ["tick 0", "tick 1", "tick 2", "and me"]


@pytest.mark.long
def test_ctrl_c_leaves_and_the_run_goes_on(live_settings: Settings, worker_process: Start, tmp_path: Path) -> None:
    worker_process(live_settings).ready()
    voice = threads.find_agent(live_settings, _file(live_settings))
    thread_id = threads.create(live_settings, voice, script=ECHO | {"delayMs": 1500})
    seat = subprocess.Popen(
        [OFFICINA, "chat", "--thread", thread_id],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=child_environment(live_settings),
    )
    assert seat.stdin is not None
    seat.stdin.write(b"hello\n")
    seat.stdin.flush()
    eventually(lambda: _row(live_settings, thread_id).run_id, 30)

    os.kill(seat.pid, signal.SIGINT)
    _, errors = seat.communicate(timeout=30)

    assert seat.returncode == 0
    assert f"come back with: officina chat --thread {thread_id}" in errors.decode()
    eventually(lambda: _row(live_settings, thread_id).run_id is None, 30)
    assert Watched(live_settings, thread_id).kinds("message")[-1]["text"] == "You said: hello"


def test_stop_and_delete(live_settings: Settings, chat: Chat) -> None:
    voice = threads.find_agent(live_settings, _file(live_settings))
    thread_id = threads.create(live_settings, voice)
    sent = threads.send(live_settings, thread_id, "hello")

    stopped = chat("--thread", thread_id, "--stop")
    deleted = chat("--thread", thread_id, "--delete")
    gone = chat("--thread", thread_id, lines="hello\n")

    assert str(sent.run_id) in stopped.stdout
    assert thread_id in deleted.stdout
    assert gone.returncode == 1 and "there is no thread" in gone.stderr
    sound(live_settings)


def test_wrong_use_is_told_as_such(chat: Chat) -> None:
    nobody = chat("nobody-of-this-name")
    nothing = chat()

    assert (nobody.returncode, nothing.returncode) == (1, 2)
    assert "nobody-of-this-name" in nobody.stderr


def _file(settings: Settings) -> str:
    path = Path(settings.home) / "ada.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(ADA))
    return str(path)


def _row(settings: Settings, thread_id: str) -> Any:
    with get_database(settings).read() as connection:
        return moves.get(connection, thread_id)
