"""The thread a person sits in, as `chat` needs it: the rows here, or a thread of a studio elsewhere."""

import base64
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol

from orchestrator.deltas import Delta
from orchestrator.records import Event
from registry.base import Json

if TYPE_CHECKING:
    from orchestrator.attachments import Attachment
    from orchestrator.client import Client
    from orchestrator.settings import Settings

View = dict[str, Json]
Hear = Callable[[Delta], None]
#: Seconds without a line after which whoever follows looks round, and lines handed on at once.
LOOK_S: Final = 1.0
BATCH: Final = 1_000


class Room(Protocol):
    """One thread."""

    @property
    def id(self) -> str: ...

    def view(self) -> View:
        """`threads.view_of`."""
        ...

    def last(self) -> int:
        """Number of the last line of its trace."""
        ...

    def send(self, text: str, key: str, attached: "Sequence[Attachment]" = ()) -> str:
        """Says something, with files; gives the run it began.

        Raises:
            Refused: `thread_busy`, `pending_signal`, `unknown_agent`; `too_large`, `quota` for its files.
        """
        ...

    def compact(self) -> str: ...

    def stop(self) -> None: ...

    def rename(self, title: str) -> None: ...

    def follow(self, after: int, over: Callable[[], bool], hear: Hear | None) -> Iterator[list[Event]]:
        """Lines as they come until `over` says so; an empty list is a heartbeat. What was given once is not given
        again."""
        ...

    def status(self, run_id: str) -> str:
        """How a run stands."""
        ...

    def waits(self, run_id: str) -> bool:
        """Whether it waits for a person."""
        ...

    def questions(self, run_id: str) -> list[View]:
        """What it asks and nobody has answered."""
        ...

    def settle(self, signal_id: str, said: dict[str, Json]) -> None: ...


class Here:
    """A thread in rows that this process reaches."""

    def __init__(self, settings: "Settings", thread_id: str) -> None:
        from orchestrator.store.database import get_database

        self.id, self._settings, self._database = thread_id, settings, get_database(settings)

    def view(self) -> View:
        from orchestrator.store import threads as moves
        from orchestrator.threads import view_of

        with self._database.read() as connection:
            return view_of(moves.get(connection, self.id))

    def last(self) -> int:
        from orchestrator.store import events

        with self._database.read() as connection:
            return events.last(connection, self.id)

    def send(self, text: str, key: str, attached: "Sequence[Attachment]" = ()) -> str:
        from orchestrator import attachments

        return str(attachments.send(self._settings, self.id, text, attached, client_key=key).run_id)

    def compact(self) -> str:
        from orchestrator import threads

        return threads.compact(self._settings, self.id)

    def stop(self) -> None:
        from orchestrator import threads

        threads.stop(self._settings, self.id, by=self._settings.owner)

    def rename(self, title: str) -> None:
        from orchestrator import threads

        threads.change(self._settings, self.id, {"title": title})

    def follow(self, after: int, over: Callable[[], bool], hear: Hear | None) -> Iterator[list[Event]]:
        from orchestrator import deltas, events

        def said(message: str) -> None:
            if hear is not None and (piece := deltas.read(message)) is not None:
                hear(piece)

        return events.follow(self._settings, self.id, after, over, None if hear is None else said)

    def status(self, run_id: str) -> str:
        return str(self._run(run_id).status)

    def waits(self, run_id: str) -> bool:
        row = self._run(run_id)
        return bool(row.status == "needs_input" or row.waiting_on == "gate")

    def questions(self, run_id: str) -> list[View]:
        from orchestrator import views

        with self._database.read() as connection:
            found = views.signals_of(connection, self.id, status="open")
        return [signal for signal in found if signal.get("runId") == run_id]

    def settle(self, signal_id: str, said: dict[str, Json]) -> None:
        from orchestrator.signals import answer

        answer(self._settings, signal_id, **said, by=self._settings.owner)

    def _run(self, run_id: str) -> Any:
        from sqlalchemy import select

        from orchestrator.store.tables import runs

        with self._database.read() as connection:
            return connection.execute(select(runs.c.status, runs.c.waiting_on).where(runs.c.id == run_id)).one()


class Elsewhere:
    """A thread over HTTP. One stream is open as long as somebody sits here."""

    def __init__(self, client: "Client", thread_id: str) -> None:
        self.id, self._client = thread_id, client
        self._path = f"studio/threads/{thread_id}"
        #: Events and pieces as they come, and an error at the end; None: nobody has followed yet.
        self._heard: queue.SimpleQueue[Any] | None = None

    def view(self) -> View:
        return self._client.ask("GET", self._path)

    def last(self) -> int:
        return max((line["seq"] for line in self._client.events(self.id)), default=0)

    def send(self, text: str, key: str, attached: "Sequence[Attachment]" = ()) -> str:
        files = [{"name": one.name, "base64": base64.b64encode(one.content).decode()} for one in attached]
        body = {"text": text} | ({"attachments": files} if files else {})
        sent = self._client.ask("POST", f"{self._path}/send", body, {"idempotency-key": key})
        return str(sent["runId"])

    def compact(self) -> str:
        return str(self._client.ask("POST", f"{self._path}/compact")["runId"])

    def stop(self) -> None:
        self._client.ask("POST", f"{self._path}/stop")

    def rename(self, title: str) -> None:
        self._client.ask("PATCH", self._path, {"title": title})

    def follow(self, after: int, over: Callable[[], bool], hear: Hear | None) -> Iterator[list[Event]]:
        if self._heard is None:
            self._heard = queue.SimpleQueue()
            listening = (after, self._heard, hear is not None)
            threading.Thread(target=self._listen, args=listening, name="thread", daemon=True).start()
        while not over():
            batch: list[Event] = []
            with suppress(queue.Empty):
                self._take(self._heard.get(timeout=LOOK_S), batch, hear)
                while len(batch) < BATCH and not over():
                    self._take(self._heard.get_nowait(), batch, hear)
            yield batch

    def status(self, run_id: str) -> str:
        view = self.view()
        # One that is not under way any more has ended; how, its last line says.
        return str(view["status"]) if view["runId"] == run_id else "completed"

    def waits(self, run_id: str) -> bool:
        view = self.view()
        return bool(view["runId"] == run_id and (view["status"] == "needs_input" or view["on"] == "gate"))

    def questions(self, run_id: str) -> list[View]:
        return [signal for signal in self.view()["signals"] if signal.get("runId") == run_id]

    def settle(self, signal_id: str, said: dict[str, Json]) -> None:
        self._client.answer(signal_id, **said)

    def _listen(self, after: int, heard: "queue.SimpleQueue[Any]", live: bool) -> None:
        from orchestrator.terminal.elsewhere import event_of

        try:
            hear = heard.put if live else None
            for line in self._client.events(self.id, after=after, follow=True, hear=hear):
                heard.put(event_of(line))
        except Exception as error:
            heard.put(error)

    @staticmethod
    def _take(one: Any, batch: list[Event], hear: Hear | None) -> None:
        if isinstance(one, Exception):
            raise one
        if isinstance(one, Event):
            batch.append(one)
        elif hear is not None:
            hear(one)
