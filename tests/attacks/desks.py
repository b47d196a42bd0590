"""Desks as processes: each answers what it is told to, at one moment with the others."""

import multiprocessing
from collections.abc import Sequence
from multiprocessing.synchronize import Barrier
from queue import Empty
from typing import Any

from orchestrator.settings import Settings
from registry.errors import Refused

#: What a desk is told to say.
Saying = tuple[str, str]


def _desk(number: int, folder: str, database_url: str, gate: Barrier, orders: Any, said: Any) -> None:
    from orchestrator.signals import answer

    settings = Settings(home=folder, database_url=database_url, _env_file=None)  # type: ignore[call-arg,arg-type]
    while (order := orders.get()) is not None:
        signal_id, option = order
        gate.wait(60)
        try:
            answer(settings, signal_id, option=option, by=f"desk-{number}")
            said.put((number, "won"))
        except Refused as refused:
            said.put((number, refused.code))
        except Exception as error:
            said.put((number, repr(error)))


class Desks:
    """Some processes that answer the same signals, each its own way."""

    def __init__(self, settings: Settings, count: int) -> None:
        context = multiprocessing.get_context("spawn")
        # Kept here: what its maker forgets is gone before a process that begins slowly has found it.
        self._gate, self._said = context.Barrier(count), context.Queue()
        self._orders = [context.Queue() for _ in range(count)]
        place = (str(settings.home), settings.database)
        self._processes = [
            context.Process(target=_desk, args=(number, *place, self._gate, orders, self._said), daemon=True)
            for number, orders in enumerate(self._orders)
        ]
        for process in self._processes:
            process.start()

    def answer(self, signal_id: str, options: Sequence[str]) -> list[str]:
        """What came of it for each desk, in their order."""
        for orders, option in zip(self._orders, options, strict=True):
            orders.put((signal_id, option))
        heard: dict[int, str] = {}
        while len(heard) < len(options):
            try:
                number, word = self._said.get(timeout=60)
            except Empty:
                raise AssertionError(f"only {len(heard)} of {len(options)} desks spoke") from None
            heard[number] = word
        return [heard[number] for number in range(len(options))]

    def close(self) -> None:
        for orders in self._orders:
            orders.put(None)
        for process in self._processes:
            process.join(10)
            if process.is_alive():
                process.kill()
