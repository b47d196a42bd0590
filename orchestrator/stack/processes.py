"""Start and end processes that belong to this one: in a session of their own, and never outliving their owner."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

TETHER = Path(__file__).with_name("tether.py")
#: A log that has grown beyond this many bytes is put aside (one generation) at the next start.
LOG_BYTES = 10_000_000


class Process:
    """One running process. Start it from a thread that lives as long as it shall: Linux watches the thread."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        log: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        keep_fds: Sequence[int] = (),
        user: int | None = None,
    ) -> None:
        """Starts the command.

        Args:
            command: program and arguments.
            log: file that receives all it prints, its folder exists; none: it prints where we print.
            env: its environment; none: ours.
            stdin: bytes it finds on its standard input.
            keep_fds: open descriptors it keeps under their numbers.
            user: numeric user and group it runs as (needs root); none: ours.
        """
        reader, self._leash = (-1, -1) if sys.platform == "linux" else os.pipe()
        fds = [*keep_fds] if reader < 0 else [*keep_fds, reader]
        words = [str(os.getpid()), str(reader), str(-1 if user is None else user)]
        try:
            with open_log(log) as out:
                self.popen = subprocess.Popen(
                    [sys.executable, "-I", "-S", str(TETHER), *words, *command],
                    stdin=subprocess.PIPE,
                    stdout=out,
                    stderr=subprocess.STDOUT if log else None,
                    env=env,
                    pass_fds=fds,
                    start_new_session=True,
                )
        finally:
            if reader >= 0:
                os.close(reader)
        self.started = time.monotonic()
        self._feed(stdin)

    @property
    def pid(self) -> int:
        return self.popen.pid

    @property
    def running(self) -> bool:
        return self.popen.poll() is None

    @property
    def outcome(self) -> str:
        """How it ended, in words: `exit 1`, `killed by SIGKILL`."""
        status = self.popen.poll()
        if status is None:
            return "running"
        if status >= 0:
            return f"exit {status}"
        try:
            return f"killed by {signal.Signals(-status).name}"
        except ValueError:
            return f"killed by signal {-status}"

    def ask(self) -> None:
        """Asks it to end, and returns."""
        if self.running:
            self.popen.terminate()

    def end(self, grace_s: float) -> None:
        """Asks it to end; after `grace_s` seconds kills it. Whatever it started in its session ends with it."""
        self.ask()
        with suppress(subprocess.TimeoutExpired):
            self.popen.wait(grace_s)
        self.kill()

    def kill(self) -> None:
        """Ends its whole session now, children that outlived it included."""
        with suppress(ProcessLookupError, PermissionError):  # all gone; macOS says so by refusing
            os.killpg(self.pid, signal.SIGKILL)
        self.popen.wait()
        if self._leash >= 0:
            os.close(self._leash)
            self._leash = -1

    def _feed(self, stdin: bytes) -> None:
        assert self.popen.stdin is not None
        with suppress(BrokenPipeError), self.popen.stdin as pipe:  # an early end is for the owner to see
            pipe.write(stdin)


@contextmanager
def open_log(log: Path | None) -> Iterator[IO[bytes] | None]:
    """The file to append to; one that has grown too long is put aside first."""
    if log is None:
        yield None
        return
    with suppress(FileNotFoundError):
        if log.stat().st_size > LOG_BYTES:
            log.replace(log.with_suffix(".old.log"))
    with log.open("ab") as out:
        yield out
