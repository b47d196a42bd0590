"""Names the file tools do not touch, and files a `.gitignore` hides from listings (spec: engine 15)."""

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import AfterValidator, StringConstraints

from registry.errors import SkillError
from registry.skills.context import Entry, Workspace
from registry.skills.paths import folded

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

#: Keys and passwords: what even a shell in the workspace does not see, where its wall can hide it.
SECRETS: Final = (".env", ".env.*", ".ssh", ".gnupg", ".aws", "id_rsa", "id_ed25519", "*.pem")
#: What no file tool reads, writes or shows: secrets, and folders that other programs keep.
BLOCKED: Final = (*SECRETS, ".git", ".hg", ".svn", "node_modules", "dist")

_IGNORE_FILE: Final = ".gitignore"
#: Bytes of an ignore file that are read; a larger one hides nothing.
_MOST: Final = 64 * 1024


def _one_pattern(text: str) -> str:
    """A pattern that adds to the list: one that takes names off it would not be one."""
    try:
        chooses = any(one.include for one in _spec((text,)).patterns)
    except ValueError:
        chooses = False
    if not chooses:
        raise ValueError(f"{text[:80]!r} is no pattern that blocks something; write a name, or as in .gitignore")
    return text


Pattern = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_one_pattern)]


@lru_cache(maxsize=64)
def _spec(patterns: tuple[str, ...]) -> "GitIgnoreSpec":
    from pathspec import GitIgnoreSpec

    # Linear time, by name: the patterns may be anyone's.
    return GitIgnoreSpec.from_lines([folded(pattern) for pattern in patterns], backend="re2")


def is_blocked(path: str, patterns: tuple[str, ...]) -> bool:
    """Whether a name of the list stands anywhere in a path, in whatever case."""
    return _spec(patterns).match_file(folded(path))


def refuse_blocked(path: str, patterns: tuple[str, ...]) -> None:
    """
    Raises:
        SkillError: `blocked`.
    """
    if is_blocked(path, patterns):
        raise SkillError("blocked", f"blocked: {path!r} has a name that file tools do not touch (keys, .git and so on)")


class Ignored:
    """What the `.gitignore` files of a workspace hide: the one nearest to a file has the last word, as in git.

    Args:
        below: the folder that was asked for; whether it is ignored itself is not looked at.
    """

    def __init__(self, workspace: Workspace, below: str) -> None:
        self._workspace = workspace
        self._below = "" if below == "." else f"{below}/"
        self._specs: dict[str, GitIgnoreSpec | None] = {}
        self._folders: dict[str, bool] = {}
        #: The topmost folder whose ignore file counts: of a folder that is ignored itself, its own.
        self._top = ""
        if below != "." and any(self._verdict(f"{part}/") for part in _with_parents(below)):
            self._top = below

    def hides(self, path: str, *, folder: bool) -> bool:
        """Whether a path below the folder is ignored, by itself or by a folder it lies in."""
        above, _, _name = path[len(self._below) :].rpartition("/")
        if above and self._hides_folder(self._below + above):
            return True
        return self._hides_folder(path) if folder else self._verdict(path)

    def _hides_folder(self, path: str) -> bool:
        if path not in self._folders:
            above, _, _name = path[len(self._below) :].rpartition("/")
            inside = bool(above) and self._hides_folder(self._below + above)
            self._folders[path] = inside or self._verdict(f"{path}/")
        return self._folders[path]

    def _verdict(self, path: str) -> bool:
        """What the nearest ignore file that speaks of a path says; a folder's path ends in a slash."""
        above = path.rstrip("/")
        while above != self._top:
            above, _, _name = above.rpartition("/")
            spec = self._of(above)
            said = spec.check_file(path[len(above) :].lstrip("/")).include if spec else None
            if said is not None:
                return bool(said)
        return False

    def _of(self, folder: str) -> "GitIgnoreSpec | None":
        if folder not in self._specs:
            self._specs[folder] = self._read(f"{folder}/{_IGNORE_FILE}" if folder else _IGNORE_FILE)
        return self._specs[folder]

    def _read(self, path: str) -> "GitIgnoreSpec | None":
        from pathspec import GitIgnoreSpec

        try:
            lines = self._workspace.read(path, max_bytes=_MOST).decode().splitlines()
        except (SkillError, UnicodeDecodeError):
            return None
        good = [line for line in lines if _is_pattern(line)]
        return GitIgnoreSpec.from_lines(good, backend="re2") if good else None


def _with_parents(path: str) -> list[str]:
    return [path[:end] for end, letter in enumerate(f"{path}/") if letter == "/"]


def _is_pattern(line: str) -> bool:
    from pathspec import GitIgnoreSpec

    try:
        return bool(GitIgnoreSpec.from_lines([line], backend="re2").patterns)
    except ValueError:
        return False


def entries(
    workspace: Workspace,
    folder: str,
    patterns: tuple[str, ...],
    *,
    enter: Callable[[str], bool] = lambda _path: True,
    recursive: bool = True,
) -> list[Entry]:
    """What a listing shows: neither blocked nor ignored; what is not shown is not looked into."""
    ignored = Ignored(workspace, folder)

    def shown(path: str, *, folder: bool) -> bool:
        return not is_blocked(path, patterns) and not ignored.hides(path, folder=folder)

    found = workspace.entries(folder, recursive=recursive, enter=lambda path: enter(path) and shown(path, folder=True))
    return [entry for entry in found if shown(entry.path, folder=entry.type == "dir")]


__all__ = ["BLOCKED", "SECRETS", "Pattern", "entries", "is_blocked", "refuse_blocked"]
