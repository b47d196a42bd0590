"""The files of a project's workspace, for agents: here `files.read` and `files.write` (spec: skills 7.6 to 7.9)."""

import base64
import binascii
import hashlib
from typing import Annotated, Final, Literal

from pydantic import Field, model_validator

from registry.base import Model
from registry.errors import SkillError
from registry.skills import lines
from registry.skills.context import SkillContext, Workspace
from registry.skills.files_list import NOT_WIRED, list_files
from registry.skills.files_search import search
from registry.skills.outputs import ReadablePath
from registry.skills.paths import WorkspacePath
from registry.skills.skill import Effect, Skill, skill

MAX_TEXT_BYTES: Final = 1024 * 1024
MAX_CONTENT_BYTES: Final = 256 * 1024
#: A file beyond this cannot be read in parts either: each part counts its lines anew.
MAX_READ_BYTES: Final = 20 * 1024 * 1024
MAX_BASE64_BYTES: Final = 1024 * 1024
_MAX_BASE64_CHARS: Final = 4 * -(-MAX_TEXT_BYTES // 3)

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class ReadFile(Model):
    path: ReadablePath
    start_line: int = Field(default=1, ge=1)
    max_lines: int = Field(default=500, ge=1, le=5000)
    encoding: Literal["utf8", "base64"] = "utf8"

    @model_validator(mode="after")
    def _whole_when_binary(self) -> "ReadFile":
        if self.encoding == "base64" and self.start_line != 1:
            raise ValueError("startLine goes with utf8 only; base64 gives the whole file")
        return self


class ReadContent(Model):
    path: str
    content: str
    encoding: Literal["utf8", "base64"]
    #: Bytes of the whole file.
    size: int
    sha256: str | None
    total_lines: int
    start_line: int
    next_line: int | None = None
    truncated: bool
    #: Whether a byte order mark was taken off.
    bom: bool = False
    wired: bool = True
    note: str | None = None


@skill("files.read", title="Read a file", operations=("fs.read",), timeout_s=5, needs=("workspace",))
def read_file(given: ReadFile, context: SkillContext) -> ReadContent:
    """Reads a file of the workspace. utf8 gives `maxLines` lines from `startLine`, at most 256 KiB a call; `truncated`
    says that more follows, from `nextLine`. A line of more than 256 KiB is cut. base64 gives a whole file of at most
    1 MiB, and is for what is not UTF-8 text. Changes nothing."""
    if context.workspace is None:
        return _unread(given)
    if given.encoding == "base64":
        return _read_base64(given, context.workspace)
    data = context.workspace.read(given.path, max_bytes=MAX_READ_BYTES)
    text = data.removeprefix(lines.BOM)
    _require_utf8(text, given.path)
    part = _part(text, given.start_line, given.max_lines)
    return ReadContent(
        path=given.path,
        content=part.content,
        encoding="utf8",
        size=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        total_lines=lines.count(text),
        start_line=given.start_line,
        next_line=part.next_line,
        truncated=part.truncated,
        bom=len(text) < len(data),
    )


def _unread(given: ReadFile) -> ReadContent:
    return ReadContent(
        path=given.path,
        content="",
        encoding=given.encoding,
        size=0,
        sha256=None,
        total_lines=0,
        start_line=given.start_line,
        truncated=False,
        wired=False,
        note=NOT_WIRED,
    )


def _read_base64(given: ReadFile, workspace: Workspace) -> ReadContent:
    data = workspace.read(given.path, max_bytes=MAX_BASE64_BYTES)
    return ReadContent(
        path=given.path,
        content=base64.b64encode(data).decode(),
        encoding="base64",
        size=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        total_lines=lines.count(data),
        start_line=1,
        truncated=False,
    )


def _require_utf8(text: bytes, path: str) -> None:
    try:
        text.decode()
    except UnicodeDecodeError as error:
        message = f"{path!r} is not UTF-8 text (byte {error.start}); read it with encoding base64"
        raise SkillError("unsupported_type", message) from None


class _Part(Model):
    content: str
    next_line: int | None
    truncated: bool


def _part(text: bytes, start_line: int, max_lines: int) -> _Part:
    """The lines asked for, as far as they fit; always one, cut when it alone is too long."""
    taken: list[bytes] = []
    size, cut = 0, False
    for line in lines.from_line(text, start_line):
        if taken and (len(taken) == max_lines or size + len(line) > MAX_CONTENT_BYTES):
            return _Part(content=_decoded(taken), next_line=start_line + len(taken), truncated=True)
        cut = len(line) > MAX_CONTENT_BYTES
        taken.append(line[:MAX_CONTENT_BYTES])
        size += len(line)
    return _Part(content=_decoded(taken), next_line=None, truncated=cut)


def _decoded(lines: list[bytes]) -> str:
    # The text is UTF-8, but a line may be cut inside a character: what is left of it is dropped.
    return b"".join(lines).decode(errors="ignore")


class WriteFile(Model):
    path: WorkspacePath
    #: At most 1 MiB once encoded; the bound here is that of its base64 form.
    content: str = Field(max_length=_MAX_BASE64_CHARS)
    encoding: Literal["utf8", "base64"] = "utf8"
    mode: Literal["overwrite", "create", "append"] = "overwrite"
    expected_sha256: Sha256 | None = None

    @model_validator(mode="after")
    def _fits(self) -> "WriteFile":
        if len(self.data) > MAX_TEXT_BYTES:
            raise ValueError(f"content has {len(self.data)} bytes, and {MAX_TEXT_BYTES} is the most")
        return self

    @property
    def data(self) -> bytes:
        if self.encoding == "utf8":
            return self.content.encode()
        try:
            return base64.b64decode(self.content, validate=True)
        except binascii.Error:
            raise ValueError("content is not base64") from None


class WrittenFile(Model):
    path: str
    bytes: int
    sha256: str | None
    created: bool
    previous_sha256: str | None = None
    wired: bool = True
    note: str | None = None


def _effect(given: WriteFile) -> Effect:
    return "idempotent" if given.mode == "overwrite" else "once"


@skill(
    "files.write",
    title="Write a file",
    operations=("fs.write",),
    effect=_effect,
    timeout_s=10,
    needs=("workspace",),
)
def write_file(given: WriteFile, context: SkillContext) -> WrittenFile:
    """Writes a text file of at most 1 MiB into the workspace, making the folders that lead to it. mode overwrite
    replaces, create refuses a file that is there, append adds at the end. `expectedSha256` refuses (conflict) when
    the file was changed since it was read. encoding base64 is for bytes. Never makes a file executable, never
    deletes one."""
    if context.workspace is None:
        return WrittenFile(path=given.path, bytes=0, sha256=None, created=False, wired=False, note=NOT_WIRED)
    with context.workspace.lock(given.path, seconds=min(10, context.deadline.left)):
        context.check()
        stored = context.workspace.write(
            given.path,
            given.data,
            mode=given.mode,
            expected_sha256=given.expected_sha256,
            max_bytes=MAX_TEXT_BYTES,
        )
    context.emit(
        "file.written",
        {"path": stored.path, "bytes": stored.bytes, "sha256": stored.sha256, "skill": "files.write"},
    )
    return WrittenFile(
        path=stored.path,
        bytes=stored.bytes,
        sha256=stored.sha256,
        created=stored.created,
        previous_sha256=stored.previous_sha256,
    )


SKILLS: tuple[Skill, ...] = (list_files, read_file, write_file, search)

__all__ = ["SKILLS", "list_files", "read_file", "write_file"]
