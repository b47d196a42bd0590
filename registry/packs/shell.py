"""The pack `shell`: commands in the workspace, behind the wall of the sandbox (spec: engine 15)."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final

from pydantic import Field, StringConstraints, field_validator

from registry.base import Json, Model
from registry.errors import SkillError
from registry.packs import commands
from registry.packs.blocklist import SECRETS
from registry.packs.commands import Words
from registry.packs.files import FilesSpec
from registry.packs.pack import Pack
from registry.skills.context import SkillContext
from registry.skills.contract import Contract
from registry.skills.jobs import Command, Jobs, JobView
from registry.skills.skill import Skill, tool

MAX_MS: Final = 600_000
#: What one command line may have: the kernel's limit on an argument is little above.
MAX_COMMAND: Final = 65_536
#: Characters of what a command said that the words about its time-out repeat.
_SAID: Final = 2000
_LOOK_S: Final = 0.05


class ShellSpec(Model):
    """Settings of the pack: the most a command may take, commands that need no yes, and commands that get none."""

    timeout_ms: int = Field(default=MAX_MS, ge=1, le=MAX_MS)
    allowlist: tuple[Words, ...] = Field(default=(), max_length=100)
    blocklist: tuple[Words, ...] = Field(default=(), max_length=100)
    #: Whether commands may use the network, where the deployment lets them.
    network: bool = False


class RunCommand(Model):
    command: Annotated[str, StringConstraints(min_length=1, max_length=MAX_COMMAND)]
    timeout_ms: int = Field(default=30_000, ge=1, le=MAX_MS, alias="timeout_ms")
    run_in_background: bool = Field(default=False, alias="run_in_background")
    #: Starts it in the background, and waits so long for what it says first.
    block_until_ms: int | None = Field(default=None, ge=0, le=MAX_MS, alias="block_until_ms")
    #: The same as `run_in_background` here: there is no terminal.
    open_in_terminal: bool = Field(default=False, alias="open_in_terminal")

    @field_validator("command")
    @classmethod
    def _says_something(cls, command: str) -> str:
        if not command.strip() or "\0" in command:
            raise ValueError("is blank or holds a NUL; write a line for /bin/sh")
        if len(command.encode()) > MAX_COMMAND:
            raise ValueError(f"has more than {MAX_COMMAND} bytes; put it into a script and run that")
        return command

    @property
    def in_background(self) -> bool:
        return self.run_in_background or self.open_in_terminal or self.block_until_ms is not None


class Ran(Model):
    exit_code: int
    stdout: str
    stderr: str
    duration_ms: int


class Started(Model):
    job_id: str
    status: str
    #: With `block_until_ms`: how it ended, if it did, and what it said so far.
    exit_code: int | None = None
    output: str | None = None
    next_since: int | None = None


@tool(
    "shell",
    title="Run a command",
    operations=("process",),
    effect="once",
    timeout_s=MAX_MS / 1000 + 20,
    needs=("jobs",),
    loads=("pathspec", "re2"),
    fails=("denied", "timeout", "sandbox_unavailable", "quota", "unknown"),
)
def shell(given: RunCommand, context: SkillContext) -> Json:
    """Runs a line of /bin/sh in the workspace, sandboxed, by default without network, and returns exit code, stdout and
    stderr; a non-zero exit is an answer, not a failure. It is ended after `timeout_ms` (30000). With
    `run_in_background` it goes on as a job and you get its `jobId` for process_poll and process_kill;
    `block_until_ms` does the same and waits that long first. Jobs end with your task. Nothing is kept between calls
    but the files."""
    if context.jobs is None:
        raise SkillError("sandbox_unavailable", "nothing ran: this run has no workspace to run a command in")
    spec = context.spec(ShellSpec)
    command = Command(
        given.command,
        timeout_s=min(given.timeout_ms, spec.timeout_ms) / 1000,
        network=spec.network,
        hidden=(*SECRETS, *context.spec(FilesSpec).blocklist),
    )
    return _in_background(given, command, context, context.jobs) if given.in_background else _run(command, context)


def _run(command: Command, context: SkillContext) -> Json:
    assert context.jobs is not None
    command = replace(command, timeout_s=min(command.timeout_s, context.deadline.left))
    done = context.jobs.run(command, cancelled=context.cancelled)
    if done.timed_out:
        said = (done.stdout + done.stderr)[-_SAID:]
        words = f"the command took longer than {round(command.timeout_s * 1000)} ms, and was ended with all it started"
        raise SkillError("timeout", f"{words}; it had said: {said}" if said else words)
    return Ran(exit_code=done.exit_code, stdout=done.stdout, stderr=done.stderr, duration_ms=done.duration_ms).to_json()


def _in_background(given: RunCommand, command: Command, context: SkillContext, jobs: Jobs) -> Json:
    # A time of its own is a job's limit; without one it goes on until its task or the deployment ends it.
    if "timeout_ms" not in given.model_fields_set:
        command = replace(command, timeout_s=float("inf"))
    job_id = jobs.start(context.caller, command)
    if given.block_until_ms is None:
        return Started(job_id=job_id, status=jobs.look(context.caller, job_id).status).to_json()
    until = time.monotonic() + min(given.block_until_ms / 1000, context.deadline.left)
    seen = jobs.look(context.caller, job_id)
    while seen.status == "running" and time.monotonic() < until:
        context.check()
        time.sleep(_LOOK_S)
        seen = jobs.look(context.caller, job_id)
    return _so_far(seen).to_json()


def _so_far(seen: JobView) -> Started:
    return Started(
        job_id=seen.id, status=seen.status, exit_code=seen.exit_code, output=seen.output, next_since=seen.next_since
    )


def _fit(tool: Skill, settings: Model) -> Skill:
    assert isinstance(settings, ShellSpec)
    spec = settings

    def operations(given: RunCommand) -> Iterable[str]:
        if commands.is_allowed(given.command, spec.allowlist):
            return () if not spec.network else ("network",)
        return ("process", "network") if spec.network else ("process",)

    return replace(tool, input=_Screened(tool.input, spec), operations=operations)


@dataclass(frozen=True)
class _Screened:
    """The tool's input, and the block list of its agent: what it refuses is not put to a person."""

    inner: Contract
    spec: ShellSpec

    @property
    def schema(self) -> dict[str, Json]:
        return self.inner.schema

    def check(self, value: Json) -> Any:
        checked = self.inner.check(value)
        if commands.is_blocked(checked.command, self.spec.blocklist):
            raise SkillError("denied", "denied: the block list of this agent's shell has a command like this")
        return checked

    def canonical(self, checked: Any) -> Json:
        return self.inner.canonical(checked)


PACK = Pack("shell", "run commands in the workspace, behind a wall", (shell,), ShellSpec, fit=_fit)

__all__ = ["PACK", "ShellSpec"]
