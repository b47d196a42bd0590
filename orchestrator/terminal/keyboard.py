"""Keys as they are struck, from a terminal that has a person before it."""

import os
import select
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

#: Seconds between two looks whether to stop; and seconds in which the rest of an escape sequence follows.
LOOK_S: Final = 0.1
REST_S: Final = 0.05
#: What a terminal sends for keys that are no character.
_SEQUENCES: Final = {
    "[A": "up",
    "[B": "down",
    "[C": "right",
    "[D": "left",
    "OA": "up",
    "OB": "down",
    "OC": "right",
    "OD": "left",
    "[5~": "page up",
    "[6~": "page down",
    "[H": "home",
    "[F": "end",
    "OH": "home",
    "OF": "end",
    "[1~": "home",
    "[4~": "end",
    "[Z": "back tab",
}
_NAMES: Final = {"\t": "tab", "\r": "enter", "\n": "enter", "\x7f": "backspace", "\b": "backspace", " ": "page down"}


class Keyboard:
    """Calls `press` with the name of each key, in a thread of its own; the terminal is as it was when this ends."""

    def __init__(self, press: Callable[[str], None], handle: int | None = None) -> None:
        """
        Args:
            handle: of the terminal; standard input when None.
        """
        self._press = press
        self._handle = sys.stdin.fileno() if handle is None else handle
        self._held = threading.RLock()
        self._over = threading.Event()
        self._before: Any = None
        self._rest = b""

    @contextmanager
    def listening(self) -> Iterator[None]:
        import termios

        self._before = termios.tcgetattr(self._handle)
        self._raw()
        reader = threading.Thread(target=self._listen, name="keyboard", daemon=True)
        reader.start()
        try:
            yield
        finally:
            self._over.set()
            self._cooked()

    @contextmanager
    def resting(self) -> Iterator[None]:
        """While a line is typed elsewhere: no key is taken, and the terminal edits lines."""
        with self._held:
            self._cooked()
            try:
                yield
            finally:
                if not self._over.is_set():
                    self._raw()

    def _raw(self) -> None:
        """Keys one by one and unseen; Ctrl-C stays what it is."""
        import tty

        tty.setcbreak(self._handle)

    def _cooked(self) -> None:
        import termios

        with suppress(termios.error):
            termios.tcsetattr(self._handle, termios.TCSANOW, self._before)

    def _listen(self) -> None:
        while not self._over.is_set():
            with self._held:
                keys = self._read()
            if keys is None:
                return
            for key in keys:
                self._press(key)
            if not keys:
                self._over.wait(0.005)  # somebody may want to rest

    def _read(self) -> list[str] | None:
        """The keys struck by now; None: there will be none any more."""
        try:
            if not select.select([self._handle], [], [], LOOK_S)[0] or self._over.is_set():
                return []
            taken = self._rest + os.read(self._handle, 1_024)
            while taken.endswith((b"\x1b", b"\x1b[", b"\x1bO")) and select.select([self._handle], [], [], REST_S)[0]:
                taken += os.read(self._handle, 1_024)
        except OSError:
            return None
        if not taken:
            return None
        text = taken.decode(errors="ignore")
        return list(keys_of(text))


def keys_of(text: str) -> Iterator[str]:
    """What was struck, by name: a character is its own name; a sequence nobody knows is left out."""
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if char != "\x1b":
            if char in _NAMES or char.isprintable():
                yield _NAMES.get(char, char)
            continue
        end = _end(text, at)
        sequence, at = text[at:end], end
        if sequence in _SEQUENCES or not sequence:
            yield _SEQUENCES.get(sequence, "escape")


def _end(text: str, at: int) -> int:
    """Where the escape sequence ends that begins at `at`, behind its escape."""
    if text[at : at + 1] == "O":
        return min(len(text), at + 2)
    if text[at : at + 1] != "[":
        return at
    end = at + 1
    while end < len(text) and not "@" <= text[end] <= "~":
        end += 1
    return min(len(text), end + 1)
