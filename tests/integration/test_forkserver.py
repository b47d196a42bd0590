"""The fork server of a worker, in processes of their own: a test runner has threads, and a fork server must not."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.support import eventually

ROOT = Path(__file__).parents[2]
#: What each test begins with: what a forked process does stands ahead of the server that makes it.
BEGIN = """
import os, signal, sys, threading, time
from workers.forkserver import ForkServer, end_with

def live(word, pipe):
    end_with(pipe)
    if word == "raise":
        raise RuntimeError("as ordered")
    pipe.send((word, os.getpid(), threading.active_count()))
    while word == "stay":
        time.sleep(60)
    while word == "deaf":
        pass

def gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False

def until(condition):
    for _ in range(1000):
        if condition():
            return True
        time.sleep(0.02)
    return False
"""


def run(script: str, patience_s: float = 60) -> str:
    """What the script printed at its good end."""
    command = [sys.executable, "-c", BEGIN + textwrap.dedent(script)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=patience_s, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_an_order_makes_a_process_that_speaks_and_whose_end_is_heard() -> None:
    assert (
        run("""
        made = ForkServer(live)
        process = made.fork("hello")
        word, pid, threads = process.pipe.recv()
        assert pid == process.pid not in (os.getpid(), made.pid) and threads == 2, "itself and its tether"
        try:
            process.pipe.recv()
        except EOFError:
            made.end(process)
            print(word)
    """)
        == "hello"
    )


def test_many_threads_order_at_once_and_each_has_its_own() -> None:
    assert (
        run("""
        from concurrent.futures import ThreadPoolExecutor
        made = ForkServer(live)
        def one(number):
            process = made.fork(number)
            word = process.pipe.recv()[0]
            made.end(process)
            return word == number and gone(process.pid)
        with ThreadPoolExecutor(8) as pool:
            print(all(pool.map(one, range(40))))
    """)
        == "True"
    )


@pytest.mark.parametrize("word", ["stay", "deaf"])
def test_a_process_that_does_not_end_is_ended(word: str) -> None:
    assert (
        run(f"""
        made = ForkServer(live)
        process = made.fork("{word}")
        process.pipe.recv()
        made.end(process)
        print(gone(process.pid))
    """)
        == "True"
    )


def test_a_process_that_fails_is_an_end_of_its_pipe() -> None:
    assert (
        run("""
        made = ForkServer(live)
        process = made.fork("raise")
        try:
            process.pipe.recv()
        except EOFError:
            print("ended")
    """)
        == "ended"
    )


def test_what_it_made_goes_when_a_signal_for_the_worker_has_ended_the_worker() -> None:
    said = run("""
        made = ForkServer(live)
        process = made.fork("stay")
        process.pipe.recv()
        os.kill(made.pid, signal.SIGTERM)  # the whole group is told at times; the worker decides
        os.kill(made.pid, signal.SIGINT)
        other = made.fork("stay")
        other.pipe.recv()
        print(made.pid, process.pid, other.pid, flush=True)
        os._exit(0)
    """)
    for pid in map(int, said.split()):
        eventually(lambda pid=pid: not _lives(pid))  # type: ignore[misc]


def test_a_server_that_is_gone_is_an_error_and_no_endless_wait() -> None:
    assert (
        run("""
        made = ForkServer(live)
        os.kill(made.pid, signal.SIGKILL)
        try:
            made.fork("hello")
        except OSError:
            print("said")
    """)
        == "said"
    )


def test_a_process_with_threads_makes_none() -> None:
    assert (
        run("""
        threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
        try:
            ForkServer(live)
        except RuntimeError as error:
            print(error)
    """)
        == "a fork server is made before the first thread"
    )


def _lives(pid: int) -> bool:
    """Whether it runs; one that nobody has waited for yet does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        if sys.platform == "linux":
            return False
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return True
    return state != "Z"


def test_it_gets_ready_once_when_it_is_told_or_first_needed() -> None:
    assert (
        run("""
        read, write = os.pipe()
        made = ForkServer(live, lambda: os.write(write, b"ready."))
        os.set_blocking(read, False)
        try:
            os.read(read, 99)
        except BlockingIOError:
            print("small", end=" ")
        made.get_ready()
        for word in ("one", "two"):
            process = made.fork(word)
            process.pipe.recv()
            made.end(process)
        print(os.read(read, 99).decode())
    """)
        == "small ready."
    )


def test_a_server_that_cannot_get_ready_makes_processes_all_the_same() -> None:
    assert (
        run("""
        def ready():
            raise RuntimeError("no")

        made = ForkServer(live, ready)
        print(made.fork("hello").pipe.recv()[0])
    """)
        == "hello"
    )


def test_it_is_made_before_anything_heavy_is_imported() -> None:
    assert (
        run("""
        from workers.commands import child
        from workers import standby

        standby.open_server()
        print(sorted({"celery", "sqlalchemy", "pydantic", "openai", "redis"} & set(sys.modules)))
    """)
        == "[]"
    )


def test_what_a_suspect_needs_is_there_before_the_fork_and_nothing_is_open() -> None:
    assert (
        run(
            """
        import socket
        from orchestrator.settings import Model, Settings
        from workers import alone, runtime

        def refuse(*_, **__):
            raise AssertionError("it opened a connection")

        socket.socket.connect = refuse
        settings = Settings(
            _env_file=None,
            database_url="postgresql+psycopg://nobody@127.0.0.1:1/none",
            broker_url="redis://127.0.0.1:1",
            models={"standard": Model(name="any", base_url="http://127.0.0.1:1/v1")},
        )
        alone.get_ready(settings)
        assert threading.active_count() == 1
        there = set(sys.modules)
        from workers.models import pools
        from workers.models.client import OpenAIClient

        runtime.services(settings)
        OpenAIClient(settings)
        pools.client("http://127.0.0.1:1/v1", "none").chat.completions
        print(sorted(name for name in set(sys.modules) - there))
        """,
            patience_s=180,
        )
        == "[]"
    )
