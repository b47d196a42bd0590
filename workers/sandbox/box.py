"""One execution: a keeper behind a link's wall, from the command line to what the program left."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from io import FileIO
from typing import cast

from registry.errors import SkillError
from registry.skills.context import Execution
from workers.sandbox.limits import MIB, Limits
from workers.sandbox.link import Command, Link
from workers.sandbox.programs import SEARCH_PATH, Program, resolve
from workers.sandbox.room import Room
from workers.sandbox.supervise import Kept, Pipes, Report, Stream, Supervisor, Talk

#: The folder of a workspace may be another user's than what is in it, and the machine's settings are out of reach: for
#: git either is a reason to do nothing.
_OWN_GIT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "safe.directory",
    "GIT_CONFIG_VALUE_0": "*",
}


@dataclass(frozen=True)
class Box:
    """A sandbox (`registry.skills.context.Sandbox`) made of one link and the interpreter that works behind it."""

    link: Link
    python: Program
    limits: Limits = field(default_factory=Limits)

    def execute(
        self,
        argv: list[str],
        *,
        stdin: bytes,
        files: Mapping[str, bytes],
        timeout_s: float,
        cancelled: Callable[[], bool],
        max_output_bytes: int = 65_536,
        collect: bool = False,
        room: Room | None = None,
        streams: tuple[Stream, Stream] | None = None,
        talk: Talk | None = None,
        on_start: Callable[[], None] = lambda: None,
    ) -> Execution:
        """Runs `argv` in a scratch folder with `files` under `in/` and an empty `out/`; see the protocol.

        Args:
            room: a workspace it starts in instead, beside the scratch folder.
            streams: where its stdout and stderr go; None: the first `max_output_bytes` of each are kept.
            talk: a conversation with it over stdin and stdout, which goes on after `stdin` was written and ends it.
            on_start: told when the program has started.

        `python3`, `node` and `sh` as first word stand for the programs the sandbox knows.

        Raises:
            SkillError: `unsupported_type` (no such program here), `too_large` (input files), `cancelled`, `timeout`
                (the sandbox did not even start), `sandbox_unavailable` (the wall could not be put up; nothing ran).
        """
        program, command_line = resolve(argv, self.python)
        self._judge(files)
        kept = streams or (talk or Kept(max_output_bytes), Kept(max_output_bytes))
        report = Report(self.limits, on_start)
        with ExitStack() as stack:
            orders_in, orders = _pipe(stack)
            said, report_out = _pipe(stack)
            ends = (orders_in.fileno(), report_out.fileno())
            command = stack.enter_context(self.link.prepare(program, self.python, self.limits, ends, room))
            text = self._orders(command, program, command_line, files, timeout_s, collect)
            process = _spawn(command, ends)
            orders_in.close()
            report_out.close()
            stdin_end, stdout, stderr = (cast(FileIO, f) for f in (process.stdin, process.stdout, process.stderr))
            pipes = Pipes(orders, stdin_end, stdout, stderr, said)
            for file in (pipes.stdin, pipes.stdout, pipes.stderr):
                stack.callback(file.close)
            _hand_over(pipes, command.uid)
            supervisor = Supervisor(process, pipes, report, kept, talk)
            supervisor.run(text, stdin, timeout_s, cancelled)
        _raise_for(supervisor, report, kept[1])
        return _execution(supervisor, report, kept, self.limits)

    def _judge(self, files: Mapping[str, bytes]) -> None:
        for path in files:
            if path.startswith("/") or ".." in path.split("/"):
                raise SkillError("path_escape", "an input file has to lie below in/: its path is absolute or has '..'")
        size = sum(map(len, files.values()))
        if size > self.limits.inputs:
            raise SkillError("too_large", f"the input files have {size} bytes, more than {self.limits.inputs}")

    def _orders(
        self,
        command: Command,
        program: Program,
        command_line: list[str],
        files: Mapping[str, bytes],
        timeout_s: float,
        collect: bool,
    ) -> bytes:
        limits = self.limits.to_orders(timeout_s)
        limits["processes"] += command.others_of_user
        orders = {
            "argv": command_line,
            # Built from nothing: whatever the worker has in its own stays there.
            "env": {"PATH": SEARCH_PATH, "HOME": command.scratch, "TMPDIR": command.scratch, "LANG": "C.UTF-8"}
            | (_OWN_GIT if command.start != command.scratch else {}),
            "scratch": command.scratch,
            "start": command.start,
            "ownMount": self.link.scratch_is_mount,
            "files": [(path, len(content)) for path, content in files.items()],
            "uid": command.uid,
            "collect": collect,
            "addressSpace": program.address_space,
            "limits": limits,
            "landlock": command.landlock,
            "seccomp": command.seccomp.hex(),
        }
        head = json.dumps(orders).encode()
        return b"".join([b"%010d" % len(head), head, *files.values()])


def _pipe(stack: ExitStack) -> tuple[FileIO, FileIO]:
    read, write = os.pipe()
    return (stack.enter_context(FileIO(read, "rb")), stack.enter_context(FileIO(write, "wb")))


def _spawn(command: Command, ends: tuple[int, int]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            command.argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            pass_fds=(*ends, *command.pass_fds),
            env={},
            cwd="/",
            start_new_session=True,
        )
    except OSError as error:
        raise SkillError("sandbox_unavailable", f"the sandbox cannot be started: {error.strerror}") from None


def _hand_over(pipes: Pipes, uid: int | None) -> None:
    """`/dev/stdout` opens the pipe anew, which only its owner may."""
    if uid is None:
        return
    try:
        for file in (pipes.stdin, pipes.stdout, pipes.stderr):
            os.fchown(file.fileno(), uid, uid)
    except PermissionError:
        # Staying root is no way out: the kernel holds root to no number of processes.
        raise SkillError(
            "sandbox_unavailable", "nothing ran: this is root without the right to become another user (CAP_SETUID)"
        ) from None


def _raise_for(supervisor: Supervisor, report: Report, stderr: Stream) -> None:
    if report.refused is not None:
        raise SkillError("sandbox_unavailable", f"nothing ran: {report.refused}")
    if supervisor.cancelled:
        raise SkillError("cancelled", "the run was cancelled; the program and all it started were ended")
    if report.started_at is None:
        if supervisor.late == "start":
            raise SkillError("timeout", "the sandbox did not start in time; nothing ran", retryable=True)
        words = bytes(stderr.data).decode(errors="replace").strip().splitlines()
        raise SkillError("sandbox_unavailable", f"nothing ran: {words[-1][:300] if words else 'the sandbox ended'}")


def _execution(supervisor: Supervisor, report: Report, kept: tuple[Stream, Stream], limits: Limits) -> Execution:
    stdout, stderr = kept
    timed_out = supervisor.late == "program"
    exit_code, name = _how_it_ended(report)
    ended_at = report.ended_at or time.monotonic()
    return Execution(
        exit_code=exit_code,
        signal=name,
        stdout=bytes(stdout.data),
        stderr=bytes(stderr.data),
        stdout_truncated=stdout.truncated,
        stderr_truncated=stderr.truncated,
        timed_out=timed_out,
        duration_ms=round((ended_at - (report.started_at or ended_at)) * 1000),
        files=report.files,
        warnings=_warnings(report, limits, supervisor),
    )


def _how_it_ended(report: Report) -> tuple[int | None, str | None]:
    """The exit code, or the name of the signal that ended it."""
    if report.status is None:
        return None, "SIGKILL"
    code = os.waitstatus_to_exitcode(report.status)
    if code >= 0:
        return code, None
    # The real-time signals but two have no name.
    known = {number.value: number.name for number in signal.Signals}
    return None, known.get(-code, f"SIG{-code}")


def _warnings(report: Report, limits: Limits, supervisor: Supervisor) -> list[str]:
    reasons = {
        "memory": f"ended: its processes held more than {limits.memory // MIB} MiB of memory together",
        "hidden": "ended: its folder held a folder that cannot be looked into",
        "disk": f"ended: its folder held more than {limits.scratch // MIB} MiB or {limits.scratch_entries} files",
    }
    warnings = [reasons[report.reason]] if report.reason in reasons else []
    if report.ended_at is None and not supervisor.late:
        warnings.append("ended from outside, with what kept it")
    if _how_it_ended(report)[1] == "SIGXCPU":
        warnings.append("ended: one of its processes used up its processor time")
    if supervisor.late == "files":
        warnings.append("its output files could not all be taken")
    return [*warnings, *report.left]
