"""A command on a terminal of its own, and the screen a person would see."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyte

from tests.support import eventually

#: Leaves the other screen that full-screen programs draw on; pyte has only one.
_MAIN_SCREEN = b"\x1b[?1049l"


class Terminal:
    """Runs a command in a pseudo-terminal; what it draws lands on `screen`, what scrolls out of it is kept, too."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
        *,
        columns: int = 100,
        lines: int = 40,
        **more: str,
    ) -> None:
        self._ours, theirs = pty.openpty()
        self._resize(columns, lines)
        # What the runner of the tests says of its own width is not this terminal's.
        plain = {name: value for name, value in environment.items() if name not in ("COLUMNS", "LINES")}
        env = plain | {"TERM": "xterm", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"} | more
        self._process = subprocess.Popen(
            [*command], stdin=theirs, stdout=theirs, stderr=theirs, env=env, cwd=folder, start_new_session=True
        )
        os.close(theirs)
        self._screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self._screen)
        #: Every byte it has drawn.
        self.raw = b""

    def read(self, seconds: float = 0.05) -> None:
        """Takes what was drawn meanwhile."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and select.select([self._ours], [], [], seconds)[0]:
            try:
                part = os.read(self._ours, 65_536)
            except OSError:  # how Linux says that the other end is closed
                return
            if not part:
                return
            self.raw += part
            for number, stretch in enumerate(part.split(_MAIN_SCREEN)):
                if number:  # the screen from before comes back; what we know of it is that it was empty
                    self._screen.reset()
                self._stream.feed(stretch)

    @property
    def lines(self) -> list[str]:
        """The screen as it is now."""
        self.read()
        return [line.rstrip() for line in self._screen.display]

    @property
    def shown(self) -> str:
        return "\n".join(self.lines)

    def sees(self, words: str, seconds: float = 20) -> str:
        """Waits until the words are on the screen; gives the screen."""
        return eventually(lambda: [screen] if words in (screen := self.shown) else None, seconds)[0]

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def resize(self, columns: int, lines: int) -> None:
        self._resize(columns, lines)
        self._screen.resize(lines, columns)
        self._process.send_signal(signal.SIGWINCH)

    def interrupt(self) -> None:
        """Ctrl-C, as the terminal makes a signal of it."""
        self._process.send_signal(signal.SIGINT)

    def cooked(self) -> bool:
        """Whether the terminal echoes and edits lines, as a shell expects to find it."""
        flags = termios.tcgetattr(self._ours)[3]
        return bool(flags & termios.ECHO) and bool(flags & termios.ICANON)

    def end(self, seconds: float = 30) -> int:
        """Waits for the end of the command; gives its exit code."""
        code = eventually(lambda: [c] if (self.read(), c := self._process.poll())[1] is not None else None, seconds)[0]
        self.read(0.2)
        return int(code)

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        os.close(self._ours)

    def _resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
