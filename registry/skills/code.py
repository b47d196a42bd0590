"""`code.execute`: a program in the sandbox (spec: skills 7.10)."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from registry.base import Model
from registry.errors import SkillError
from registry.skills.context import Execution, Sandbox, SkillContext, Workspace
from registry.skills.paths import WorkspacePath
from registry.skills.skill import Skill, skill

MAX_CODE_BYTES = 65_536
MAX_STDIN_BYTES = 65_536
MAX_ARGUMENT_BYTES = 256
#: Of one file, in and out.
MAX_FILE_BYTES = 10 * 1024 * 1024

#: Where the program itself lies; no workspace path can have this name.
_PROGRAM = ".officina-program"
#: Language -> the words before the program's path, and its suffix.
_COMMANDS = {
    # Unbuffered: what a program printed before its deadline is there.
    "python": (["python3", "-B", "-u"], ".py"),
    "javascript": (["node"], ".js"),
    "shell": (["sh"], ".sh"),
}


def _at_most(limit: int, text: str) -> str:
    if (size := len(text.encode())) > limit:
        raise ValueError(f"has {size} bytes, and {limit} is the most")
    return text


def _code(text: str) -> str:
    if not text:
        raise ValueError("is empty")
    return _at_most(MAX_CODE_BYTES, text)


def _stdin(text: str) -> str:
    return _at_most(MAX_STDIN_BYTES, text)


def _argument(text: str) -> str:
    if "\0" in text:
        raise ValueError("holds a NUL character, which no argument can")
    return _at_most(MAX_ARGUMENT_BYTES, text)


class Execute(Model):
    language: Literal["python", "javascript", "shell"] = "python"
    code: Annotated[str, AfterValidator(_code), Field(description="the program, at most 65,536 bytes")]
    stdin: Annotated[str, AfterValidator(_stdin)] = ""
    args: list[Annotated[str, AfterValidator(_argument)]] = Field(default=[], max_length=16)
    input_files: list[WorkspacePath] = Field(
        default=[], max_length=20, description="workspace files to copy to in/<path>"
    )
    save_outputs: Annotated[bool, Field(description="keep the files left in out/ in the workspace")] = False
    timeout_ms: Annotated[int, Field(ge=500, le=60_000)] = 10_000


class SavedFile(Model):
    path: str
    bytes: int


class Executed(Model):
    """`exitCode` is null when a signal ended the program."""

    exit_code: int | None
    signal: str | None = None
    stdout: str
    stderr: str
    stdout_truncated: bool
    stderr_truncated: bool
    timed_out: bool
    duration_ms: int
    files: list[SavedFile]


@skill(
    "code.execute",
    title="Run code",
    timeout_s=60,
    operations=("process", "world"),
    effect="once",
    needs=("sandbox", "workspace"),
)
def execute(arguments: Execute, context: SkillContext) -> Executed:
    """Runs a Python, JavaScript or shell program in a sandbox without network, and returns what it printed and how it
    ended; a non-zero exit code is a result, not an error. Only Python's standard library is certain to be there. The
    program starts in an empty scratch folder that goes away afterwards. Workspace files named in inputFiles are
    read-only copies under in/ (data/a.csv is in/data/a.csv). With saveOutputs, regular files the program leaves under
    out/ (at most 20, 10 MiB each) are written to the workspace under their path below out/, over files of that name;
    nothing else is kept. Limits: timeoutMs of time, 512 MiB of memory, 64 processes, 64 MiB of files, and the first
    64 KiB of each output stream.
    """
    sandbox, workspace = _ports(context)
    command, suffix = _COMMANDS[arguments.language]
    program = _PROGRAM + suffix
    files = {path: workspace.read(path, max_bytes=MAX_FILE_BYTES) for path in dict.fromkeys(arguments.input_files)}
    context.check()
    done = sandbox.execute(
        [*command, f"in/{program}", *arguments.args],
        stdin=arguments.stdin.encode(),
        files={**files, program: arguments.code.encode()},
        timeout_s=min(arguments.timeout_ms / 1000, context.deadline.left),
        cancelled=context.cancelled,
        collect=arguments.save_outputs,
    )
    saved, lost = _save(done.files, workspace, context)
    return _executed(done, saved, [*done.warnings, *lost])


def _ports(context: SkillContext) -> tuple[Sandbox, Workspace]:
    if context.sandbox is None:
        raise SkillError("sandbox_unavailable", "no sandbox is wired here; nothing ran")
    if context.workspace is None:
        raise SkillError("not_found", "there is no workspace here; nothing ran")
    return context.sandbox, context.workspace


def _save(
    files: list[tuple[str, bytes]], workspace: Workspace, context: SkillContext
) -> tuple[list[SavedFile], list[str]]:
    """Writes what the workspace takes; the program has run, so a file it does not take is told, not raised."""
    saved, lost = [], []
    for path, content in files:
        try:
            stored = workspace.write(path, content, mode="overwrite", max_bytes=MAX_FILE_BYTES)
        except SkillError as error:
            lost.append(f"out/{path} was not saved: {error.message}")
            continue
        context.emit(
            "file.written",
            {"path": stored.path, "bytes": stored.bytes, "sha256": stored.sha256, "skill": "code.execute"},
        )
        saved.append(SavedFile(path=stored.path, bytes=stored.bytes))
    return saved, lost


def _executed(done: Execution, saved: list[SavedFile], warnings: list[str]) -> Executed:
    stderr = done.stderr.decode(errors="replace")
    # The model reads what the sandbox did where it looks for trouble anyway.
    notes = "".join(f"[sandbox] {warning}\n" for warning in warnings)
    if notes and stderr and not stderr.endswith("\n"):
        notes = "\n" + notes
    return Executed(
        exit_code=done.exit_code,
        signal=done.signal,
        stdout=done.stdout.decode(errors="replace"),
        stderr=stderr + notes,
        stdout_truncated=done.stdout_truncated,
        stderr_truncated=done.stderr_truncated,
        timed_out=done.timed_out,
        duration_ms=done.duration_ms,
        files=saved,
    )


SKILLS: tuple[Skill, ...] = (execute,)
