"""Ctrl-C and SIGTERM for a command that has processes to end: the first ends it in order, the next one at once."""

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Self

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(BaseException):
    """Control flow: the person or the system asked this process to end."""


class StopSignals:
    """Within the `with` block the first signal raises `Stopped` in the main thread, later ones call `hurry`."""

    def __init__(self, hurry: Callable[[], None]) -> None:
        self._hurry = hurry
        self._ending = False
        self._before: dict[int, object] = {}

    def ending(self) -> None:
        """From now on nothing is interrupted any more: the end has begun by itself."""
        self._ending = True

    def wait(self) -> None:
        """Waits for a signal."""
        threading.Event().wait()

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._receive) for number in SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _receive(self, _number: int, _frame: FrameType | None) -> None:
        if self._ending:
            self._hurry()
        else:
            self._ending = True
            raise Stopped
