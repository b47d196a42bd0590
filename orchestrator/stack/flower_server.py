"""The Flower process of the embedded stack: `python -m orchestrator.stack.flower_server DESCRIPTOR`.

Flower as its own command starts it either answers its API with 401 or, once opened, lets any page in the user's
browser read it. Here the API is open to programs on this machine (`curl`), everything that changes something is off,
and a request that a foreign page or a foreign host name brings is refused.
"""

import logging
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from celery import Celery
from flower.app import Flower
from flower.events import Events
from flower.options import options
from flower.urls import settings as pages
from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPServerRequest
from tornado.ioloop import IOLoop
from tornado.web import ErrorHandler

from orchestrator.logs import Masked

#: What Flower keeps in memory, and in its file, at most.
REMEMBERED_TASKS = 5_000
REMEMBERED_WORKERS = 1_000
#: Milliseconds between two times it writes what it has seen to its file.
SAVE_MS = 30_000
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class LocalFlower(Flower):  # type: ignore[misc]
    """Flower for the people and programs of one machine."""

    def find_handler(self, request: HTTPServerRequest, **kwargs: Any) -> Any:
        if not from_here(request):
            return self.get_handler_delegate(request, ErrorHandler, {"status_code": 403})
        return super().find_handler(request, **kwargs)


def from_here(request: HTTPServerRequest) -> bool:
    """Whether a request was meant for this server: a loopback name, and no page of another origin behind it."""
    if urlsplit(f"//{request.host}").hostname not in LOOPBACK:
        return False  # a name that someone else's DNS points at us
    origin = request.headers.get("Origin")
    return origin is None or urlsplit(origin).netloc == request.host


class WorkerEvents(Events):  # type: ignore[misc]
    """Looks closer at each worker it hears of: `/api/workers` lists only those that were looked at."""

    flower: Flower

    def on_event(self, event: dict[str, Any]) -> None:
        super().on_event(event)
        kind, worker = event["type"], event.get("hostname")
        if kind == "worker-online" or (kind == "worker-heartbeat" and worker not in self.flower.workers):
            self.io_loop.add_callback(self.flower.update_workers, worker)


def build(broker: str, kept: Path) -> LocalFlower:
    """Flower on this broker, with everything off that changes something.

    Args:
        kept: the file in which it keeps what it has seen, for its next start.
    """
    os.environ["FLOWER_UNAUTHENTICATED_API"] = "true"
    options.read_only = True
    options.tasks_columns = "name,kwargs,state,received,runtime,worker,args"
    app = Celery(broker=broker, set_as_current=False)
    app.conf.update(accept_content=["json"], broker_connection_retry_on_startup=True)
    events = WorkerEvents(
        app,
        IOLoop.current(),
        enable_events=False,  # a worker that shall be seen was started so
        db=str(kept),
        persistent=True,
        state_save_interval=SAVE_MS,
        max_tasks_in_memory=REMEMBERED_TASKS,
        max_workers_in_memory=REMEMBERED_WORKERS,
    )
    flower = events.flower = LocalFlower(capp=app, options=options, events=events, **pages)
    return flower


def leave(flower: LocalFlower) -> None:
    """Keeps what it has seen, and goes at once: a thread of it listens for ever."""
    try:
        flower.events.save_state()
    finally:
        os._exit(0)


def main() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(Masked("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.INFO)
    logging.getLogger("tornado.access").setLevel(logging.ERROR)
    kept = Path(os.environ["OFFICINA_HOME"]) / "run" / "flower"
    kept.parent.mkdir(parents=True, exist_ok=True)
    flower = build(os.environ["OFFICINA_BROKER_URL"], kept)
    listening = socket.socket(fileno=int(sys.argv[1]))
    listening.setblocking(False)  # the loop accepts until there is nobody left
    HTTPServer(flower).add_socket(listening)
    signal.signal(signal.SIGTERM, lambda _number, _frame: flower.io_loop.add_callback_from_signal(leave, flower))
    flower.start()


if __name__ == "__main__":
    main()
