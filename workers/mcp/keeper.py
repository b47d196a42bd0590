"""Keeps one stdio server, run by path: `keeper.py LIFE LIMITS PROGRAM ARGUMENTS...`.

LIFE is the reading end of a pipe whose other end only the worker holds: when it closes, however the worker ended, the
server and everything it started are killed. LIMITS is `memory,processes,handles` as in the sandbox; a server that holds
more is killed as a whole. Standard input and output are the server's own: the keeper only watches.
"""

from __future__ import annotations

import os
import resource
import select
import signal
import sys

# The keeper of the sandbox knows how to find and end what a process has started.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "sandbox"))  # noqa: PTH118, PTH120, PTH100

from inside import watch  # type: ignore[import-not-found]

LINUX = sys.platform == "linux"
#: Milliseconds between looks at memory and number of processes.
LOOK_MS = 1_000
#: What the shell says of a program that is not there, or cannot be run.
NOT_FOUND, NOT_RUN = 127, 126


def main() -> int:
    """Returns the server's exit code; 137 when it was killed."""
    life = int(sys.argv[1])
    memory, processes, handles = map(int, sys.argv[2].split(","))
    os.set_inheritable(life, False)
    if LINUX:
        from inside import kernel

        kernel.become_reaper()
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    child = os.fork()
    if child == 0:
        become_server(sys.argv[3:], memory, handles)
    leave_pipes()
    status = wait(child, life, wake, memory, processes)
    watch.sweep(child)
    return status


def become_server(command: list[str], memory: int, handles: int) -> None:
    """The child: limits, then the program."""
    code = NOT_RUN
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        if LINUX:
            from inside import kernel

            kernel.signal_when_parent_dies(signal.SIGKILL)
        limit(resource.RLIMIT_CORE, 0)
        limit(resource.RLIMIT_NOFILE, handles)
        if LINUX:
            limit(resource.RLIMIT_DATA, memory)
        os.execvp(command[0], command)
    except FileNotFoundError:
        code = NOT_FOUND
        sys.stderr.write(f"{command[0]}: no such program\n")
    except BaseException as error:
        sys.stderr.write(f"{command[0]}: {error}\n")
    finally:
        sys.stderr.flush()
        os._exit(code)


def limit(kind: int, value: int) -> None:
    ceiling = resource.getrlimit(kind)[1]
    if ceiling != resource.RLIM_INFINITY:
        value = min(value, ceiling)
    resource.setrlimit(kind, (value, value))


def leave_pipes() -> None:
    """The server alone holds its pipes: when it ends, the worker reads their end."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    os.close(nothing)


def wait(child: int, life: int, wake: int, memory: int, processes: int) -> int:
    """Until the server ends, the worker is gone, or it holds too much."""
    poll = select.poll()
    poll.register(life, select.POLLIN | select.POLLHUP)
    poll.register(wake, select.POLLIN)
    while True:
        for number, _event in poll.poll(LOOK_MS):
            if number == life and not os.read(life, 64):
                return 137
            if number == wake and signal.SIGTERM in os.read(wake, 4096):
                return 137
        ended = reap(child)
        if ended is not None:
            return ended
        if len(watch.descendants()) > processes or watch.memory(memory) > memory:
            return 137


def reap(child: int) -> int | None:
    """The exit code of the server, once it has ended; orphans of it are taken away in passing."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return 137
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        if pid == 0:
            return None


if __name__ == "__main__":
    sys.exit(main())
