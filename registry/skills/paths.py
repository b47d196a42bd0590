"""Workspace paths, judged without touching the disk (spec: skills 5).

A path is relative and POSIX. What could lead out of the workspace, or into our own folder in it, is `path_escape`;
what is merely a bad name is `invalid_input`. The judgement is made on the stored form (NFC, `.` segments dropped), so
that judging a stored path again changes nothing.
"""

import hashlib
import re
import unicodedata
from collections.abc import Callable
from typing import Annotated, Final

from pydantic import AfterValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from registry.errors import SkillError

#: Bytes of UTF-8, of the stored form.
MAX_BYTES: Final = 512
MAX_SEGMENT_BYTES: Final = 200
MAX_DEPTH: Final = 12
MAX_GLOB: Final = 200
#: Characters beyond which a text is not even normalised: putting long runs of marks in order takes quadratic time.
_MAX_RAW: Final = 4 * MAX_BYTES

#: The folder inside a workspace that is ours; no path of a caller names it or a sibling that begins alike.
RESERVED: Final = ".officina"

_DRIVE: Final = re.compile(r"[A-Za-z]:")
_SLUG_BREAK: Final = re.compile(r"[^a-z0-9]+")
_MAX_SLUG: Final = 60

#: Line breaks, the byte order mark and the marks that turn the direction of text: a name with them reads as another.
_MISLEADING: Final = frozenset(
    map(chr, (0x2028, 0x2029, 0xFEFF, 0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)))
)


def normalise(path: str, *, folder: bool = False) -> str:
    """The stored form of a workspace path.

    Args:
        path: as a caller wrote it.
        folder: whether it names a folder: then a trailing slash is fine, and `.` is the workspace itself.

    Returns:
        The path in NFC, without `.` and empty segments; `.` for the workspace itself.

    Raises:
        SkillError: `path_escape` or `invalid_input`.
    """
    if not path:
        raise _invalid("the path is empty")
    if len(path) > _MAX_RAW:
        raise _invalid(f"the path has {len(path)} characters, and {MAX_BYTES} bytes is the most")
    text = unicodedata.normalize("NFC", path)
    segments = [segment for segment in text.split("/") if segment not in ("", ".")]
    _judge_escape(text, segments)
    _judge_characters(text)
    if text.endswith("/") and not folder:
        raise _invalid("the path ends in a slash, and has to name a file")
    if not segments:
        if folder:
            return "."
        raise _invalid("the path names the workspace itself, and has to name a file in it")
    return _judge_size(segments)


def judge_glob(glob: str) -> str:
    """A gitignore-style pattern as it is, once it is known to stay inside the folder it is applied to.

    Raises:
        SkillError: `path_escape` for a `..` segment, `invalid_input` for bad characters and for its length.
    """
    if len(glob) > MAX_GLOB:
        raise _invalid(f"the pattern has {len(glob)} characters, and {MAX_GLOB} is the most")
    # A backslash may hide a dot from a plain comparison: the pattern `.\.` matches `..`.
    if ".." in glob.replace("\\", "").split("/"):
        raise _escape("the pattern has a '..' segment")
    _judge_characters(glob)
    return glob


def slug(title: str) -> str:
    """A file name made of a title: lower-case ASCII words joined by `-`, at most 60 characters.

    A title without one ASCII letter or digit gives `doc-` and eight hex digits of its sha256.
    """
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    words = _SLUG_BREAK.sub("-", plain).strip("-")[:_MAX_SLUG].rstrip("-")
    return words or f"doc-{hashlib.sha256(title.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def _judge_escape(text: str, segments: list[str]) -> None:
    if text.startswith("/"):
        raise _escape("the path is absolute")
    if "\\" in text:
        raise _escape("the path has a backslash")
    if ".." in segments:
        raise _escape("the path has a '..' segment")
    if segments and segments[0].startswith("~"):
        raise _escape("the path begins with '~'")
    if segments and _DRIVE.match(segments[0]):
        raise _escape("the path begins with a drive letter")
    if any(_is_reserved(segment) for segment in segments):
        raise _escape(f"the path has a segment that begins with {RESERVED!r}, which is kept for Officina")


def folded(name: str) -> str:
    """What a name is to a file system that ignores case: names that fold alike may be one file.

    Such file systems fold more than A-Z (a ligature is two letters), and some ignore format characters.
    """
    return "".join(character for character in name if unicodedata.category(character) != "Cf").casefold()


def _is_reserved(segment: str) -> bool:
    return folded(segment).startswith(RESERVED)


def _judge_characters(text: str) -> None:
    for character in text:
        code = ord(character)
        noncharacter = 0xFDD0 <= code <= 0xFDEF or code & 0xFFFE == 0xFFFE
        if noncharacter or character in _MISLEADING or unicodedata.category(character) in ("Cc", "Cs"):
            raise _invalid(f"the path has the character U+{code:04X}, which no name may have")


def _judge_size(segments: list[str]) -> str:
    if len(segments) > MAX_DEPTH:
        raise _invalid(f"the path is {len(segments)} levels deep, and {MAX_DEPTH} is the most")
    for segment in segments:
        if segment.endswith((".", " ")):
            raise _invalid("a segment of the path ends in a dot or a space")
        if len(segment.encode()) > MAX_SEGMENT_BYTES:
            raise _invalid(f"a segment of the path has more than {MAX_SEGMENT_BYTES} bytes")
    stored = "/".join(segments)
    if len(stored.encode()) > MAX_BYTES:
        raise _invalid(f"the path has {len(stored.encode())} bytes, and {MAX_BYTES} is the most")
    return stored


def _escape(what: str) -> SkillError:
    return SkillError("path_escape", f"{what}; give a path relative to the workspace, with '/' between its parts")


def _invalid(what: str) -> SkillError:
    return SkillError("invalid_input", what)


def _file(path: str) -> str:
    return normalise(path)


def _folder(path: str) -> str:
    return normalise(path, folder=True)


def _judged(judge: Callable[[str], str]) -> AfterValidator:
    """`judge` as a validator of an input model: the contract keeps `path_escape` as the code of the refusal."""

    def validate(text: str) -> str:
        try:
            return judge(text)
        except SkillError as error:
            # The words travel as a value: a template would read braces of its own.
            raise PydanticCustomError(error.code, "{reason}", {"reason": error.message}) from None

    return AfterValidator(validate)


def stem(*endings: str, longest: str) -> AfterValidator:
    """Judges a path that a skill adds endings to, as the longest that it may become.

    Args:
        endings: what the path must not bring itself.
        longest: all that is added at most, a number before the ending included.
    """

    def judge(path: str) -> str:
        if path.lower().endswith(endings):
            raise PydanticCustomError("value_error", "is the path without an extension: it is added")
        normalise(path + longest)
        return path

    return _judged(judge)


def _described(text: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "minLength": 1, "maxLength": MAX_BYTES, "description": text})


#: A file of the workspace, in its stored form once validated.
WorkspacePath = Annotated[str, _judged(_file), _described("a file, relative to the workspace")]
#: A folder of the workspace; `.` is the workspace itself.
WorkspaceFolder = Annotated[
    str, _judged(_folder), _described("a folder, relative to the workspace; '.' is the workspace itself")
]
#: A pattern over paths of the workspace; empty is refused.
WorkspaceGlob = Annotated[
    str,
    _judged(judge_glob),
    WithJsonSchema({"type": "string", "maxLength": MAX_GLOB, "description": "a gitignore-style pattern, as in *.md"}),
]

__all__ = [
    "RESERVED",
    "WorkspaceFolder",
    "WorkspaceGlob",
    "WorkspacePath",
    "folded",
    "judge_glob",
    "normalise",
    "slug",
    "stem",
]
