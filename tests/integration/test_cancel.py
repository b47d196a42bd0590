"""A cancel reaches everything within two seconds: sandboxed processes, model calls, children, actions outside a run."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest
from sqlalchemy import select

from orchestrator import control
from orchestrator.producer import submit
from orchestrator.settings import Model, Settings
from orchestrator.signals import answer
from orchestrator.store import invariants
from orchestrator.store.database import get_database
from orchestrator.store.tables import calls
from tests.integration.test_fanout import QUICK, agent, spawner, speaker
from tests.projects import Watched, start, task
from tests.support import eventually
from tests.workers import WorkerProcess

#: Seconds after which nothing of a cancelled project goes on.
SOON = 2.0
#: A program that says where it is, starts another one in a session of its own, and sleeps.
SLEEPER = "import subprocess, time\nsubprocess.Popen(['sleep', '301'], start_new_session=True)\ntime.sleep(300)"

#: Seconds a busy machine may take for anything that is not measured here.
PATIENCE = 60
#: An agent that waits for an hour, so that its project goes on.
WAITS = agent(
    "waits",
    {"s": {"type": "core:start"}, "w": {"type": "control:wait", "delayMs": 3_600_000}, "e": {"type": "core:end"}},
    [("s", "w"), ("w", "e")],
)

pytestmark = pytest.mark.slow


class HangingModel:
    """A server that takes a request and never answers; it notes who hung up, and when."""

    def __init__(self) -> None:
        self.asked = 0
        self._lock = threading.Lock()
        self.hung_up: list[float] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._listen, args=(client,), daemon=True).start()

    def _listen(self, client: socket.socket) -> None:
        with client:
            heard = client.recv(1 << 16) != b""
            with self._lock:
                self.asked += heard
            try:
                while client.recv(1 << 16):
                    pass
            except OSError:
                pass
            self.hung_up.append(time.monotonic())

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def model() -> Iterator[HangingModel]:
    server = HangingModel()
    yield server
    server.close()


def sleepers(worker: WorkerProcess) -> list[psutil.Process]:
    """What the worker's sandbox runs just now."""
    found = []
    for process in psutil.Process(worker.pid).children(recursive=True):
        try:
            if process.status() != psutil.STATUS_ZOMBIE and {"sleep", "SLEEPER"} & set(process.cmdline()[:1]):
                found.append(process)
        except psutil.Error:
            continue
    return found


def cancelled_within(settings: Settings, project: Watched, over: Callable[[], Any]) -> float:
    """Cancels and waits until it is over; gives the seconds that took."""
    begun = time.monotonic()
    control.cancel(settings, project.id, by="the test")
    eventually(over, SOON + 8, every=0.01)
    return time.monotonic() - begun


def sound(settings: Settings) -> None:
    with get_database(settings).read() as connection:
        found = invariants.broken(connection)
    assert not found, "\n".join(map(str, found))


def outcomes(settings: Settings) -> list[tuple[str, str]]:
    with get_database(settings).read() as connection:
        return [(row.status, row.outcome) for row in connection.execute(select(calls))]


def asks_to_sleep(tmp_path: Path, settings: Settings, tasks: Sequence[Any] = (), **fields: Any) -> tuple[Watched, Any]:
    """A project whose agent asks for a program that sleeps; and the signal."""
    turns = {
        "a": [{"calls": [{"name": "code.execute", "args": {"code": SLEEPER, "timeoutMs": 60_000}}]}, {"say": "done"}]
    }
    plan = [task("a", role="engineer", skills=["code.execute"]), *tasks]
    made = start(tmp_path / "p", settings, plan, {"tasks": turns}, agents={"waits": WAITS}, **fields)
    project = Watched(settings, made.project_id)
    return project, project.open_signal(PATIENCE)


def test_a_sandboxed_process_and_what_it_started_are_gone_and_the_call_is_unknown(
    tmp_path: Path, live_settings: Settings, worker_process: Callable[..., WorkerProcess]
) -> None:
    worker = worker_process(live_settings).ready(PATIENCE)
    project, signal = asks_to_sleep(tmp_path, live_settings)
    answer(live_settings, signal.id, option="Do it", by="the test")
    eventually(lambda: sleepers(worker), PATIENCE)

    took = cancelled_within(live_settings, project, lambda: not sleepers(worker))

    assert took < SOON
    assert worker.process.running
    assert project.status == "cancelled"
    assert outcomes(live_settings) == [("done", "unknown")], "it had begun, and nobody saw it end"
    assert [one.execution for one in project.signals] == ["unknown"]
    sound(live_settings)


def test_an_action_outside_of_its_run_is_stopped_too(
    tmp_path: Path, live_settings: Settings, worker_process: Callable[..., WorkerProcess]
) -> None:
    worker = worker_process(live_settings).ready(PATIENCE)
    project, signal = asks_to_sleep(tmp_path, live_settings, approvals="carryOn", tasks=[task("b", agent="waits")])
    answer(live_settings, signal.id, option="Do it", by="the test")
    eventually(lambda: sleepers(worker), PATIENCE)

    took = cancelled_within(live_settings, project, lambda: not sleepers(worker))

    assert took < SOON
    eventually(lambda: [one.execution for one in project.signals] == ["failed"], 10)
    sound(live_settings)


def test_a_yes_that_nobody_has_acted_on_is_taken_back_by_a_cancel(
    tmp_path: Path, live_settings: Settings, worker_process: Callable[..., WorkerProcess]
) -> None:
    worker = worker_process(live_settings).ready(PATIENCE)
    project, signal = asks_to_sleep(tmp_path, live_settings, approvals="carryOn", tasks=[task("b", agent="waits")])
    worker.kill()
    answer(live_settings, signal.id, option="Do it", by="the test")

    control.cancel(live_settings, project.id, by="the test")
    later = worker_process(live_settings, **QUICK).ready(PATIENCE)

    control.retry(live_settings, project.tasks["b"].id, by="the test")  # its project goes on, and so does the clock
    eventually(lambda: project.tasks["b"].status == "waiting", 20)
    assert not sleepers(later)
    (row,) = project.signals
    assert (row.status, row.execution, row.result["code"]) == ("answered", "declined", "cancelled")
    sound(live_settings)


def test_a_model_call_is_hung_up_and_its_slot_is_free(
    tmp_path: Path, live_settings: Settings, worker_process: Callable[..., WorkerProcess], model: HangingModel
) -> None:
    worker_process(
        live_settings, WORKER_SLOTS="1", MODEL_BASE_URL=model.url, MODELS__STANDARD__NAME="m", STAND_IN="false"
    ).ready(PATIENCE)
    file = tmp_path / "real.json"
    file.write_text(json.dumps({"title": "Real", "brief": "b", "tasks": [task("a")]}))
    known = live_settings.model_copy(update={"model_base_url": model.url, "models": {"standard": Model(name="m")}})
    project = Watched(live_settings, submit(file, settings=known).project_id)
    eventually(lambda: model.asked, PATIENCE)

    took = cancelled_within(live_settings, project, lambda: model.hung_up)

    assert took < SOON
    after = submit(file, settings=known, rehearse=True)  # played by the stand-in
    assert Watched(live_settings, after.project_id).ended(PATIENCE) == "completed", "the only slot is free again"
    sound(live_settings)


def test_children_stop_with_their_parent(
    tmp_path: Path, live_settings: Settings, worker_process: Callable[..., WorkerProcess], model: HangingModel
) -> None:
    worker_process(
        live_settings, WORKER_SLOTS="4", MODEL_BASE_URL=model.url, MODELS__STANDARD__NAME="m", STAND_IN="false"
    ).ready(PATIENCE)
    agents = {"kid": speaker("kid"), "boss": spawner("boss", [{"agentId": "kid", "input": f"n{n}"} for n in range(3)])}
    file = tmp_path / "real.json"
    body = {"title": "Real", "brief": "b", "tasks": [task("a", agent="boss")], "agents": agents}
    file.write_text(json.dumps(body))
    known = live_settings.model_copy(update={"model_base_url": model.url, "models": {"standard": Model(name="m")}})
    project = Watched(live_settings, submit(file, settings=known).project_id)
    eventually(lambda: model.asked == 3, PATIENCE)

    took = cancelled_within(live_settings, project, lambda: len(model.hung_up) == 3)

    assert took < SOON
    assert {run.status for run in project.runs} == {"cancelled"}
    assert len(project.runs) == 4
    sound(live_settings)
