"""Run a command that does not outlive its owner, however the owner ends: `tether.py OWNER FD USER COMMAND...`.

On Linux the kernel does it: the process asks for SIGKILL at its parent's death and becomes the command. Elsewhere it
stays as the command's parent and reads a pipe whose other end only the owner holds: end-of-file means the owner is
gone. USER is the number of a user to become first, -1 for none (a change of user would clear the kernel's promise).
A file of its own, run by path, so that no other code is loaded before the command.
"""

import ctypes
import os
import signal
import subprocess
import sys
import threading

PR_SET_PDEATHSIG = 1


def die_with_parent(owner: int) -> None:
    """Asks Linux for SIGKILL when the parent thread ends; leaves at once when it already has."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != owner:  # it ended before we asked
        sys.exit(1)


def run_until_end_of_file(pipe: int, command: list[str]) -> int:
    """Runs the command as a child; kills its whole group when the pipe closes. Returns the child's exit status."""
    os.set_inheritable(pipe, False)
    # No watcher is running yet: the child cannot be left behind between its start and the first read.
    child = subprocess.Popen(command, close_fds=False)

    def watch() -> None:
        while os.read(pipe, 64):
            pass
        os.killpg(os.getpgid(0), signal.SIGKILL)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda received, _frame: child.send_signal(received))
    threading.Thread(target=watch, daemon=True).start()
    status = child.wait()
    return status if status >= 0 else 128 - status


def become(user: int) -> None:
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)


def main() -> None:
    owner, pipe, user = (int(word) for word in sys.argv[1:4])
    command = sys.argv[4:]
    if user >= 0:
        become(user)
    if pipe >= 0:
        sys.exit(run_until_end_of_file(pipe, command))
    die_with_parent(owner)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.exit(f"{command[0]}: {error.strerror}")


if __name__ == "__main__":
    main()
