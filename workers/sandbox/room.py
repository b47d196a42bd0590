"""The workspace around a program of the shell: to be written, with what it must not see hidden (spec: engine 15)."""

import os
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from orchestrator.workspaces import handles
from registry.errors import SkillError
from registry.skills.paths import RESERVED, folded

#: User ids that no account has: systemd keeps this range for users that live as long as a service.
_FIRST_UID, _LAST_UID = 61_184, 65_519
#: Each is a mount of its own.
MAX_HIDDEN: Final = 256
#: Folders that secrets are not looked for in: other programs fill them, with thousands of files.
_NOT_SEARCHED: Final = frozenset({".git", ".hg", ".svn", "node_modules"})
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class Room:
    """One workspace around one program."""

    #: Its real path.
    path: str
    #: Paths below it that are covered, where the wall can; ours first.
    hidden: tuple[str, ...] = (RESERVED,)
    network: bool = False
    #: The user the program will be, who owns the files; None: the worker's own.
    uid: int | None = None


def fresh_uid() -> int | None:
    """A user of its own for an execution started by root: limits count for it alone, and it owns nothing."""
    if os.geteuid() != 0:
        return None
    return _FIRST_UID + secrets.randbelow(_LAST_UID - _FIRST_UID + 1)


def prepare(root: Path, *, hidden: tuple[str, ...], network: bool) -> Room:
    """Makes a workspace ready for a program.

    A worker of root gives the files to the user of the workspace: the same one at each command, or what one made the
    next could not change. Ours and the hidden ones stay whose they are, and closed to others; the workspace itself
    too, with its group as the mark of that user, so that what is not the user's can be neither moved nor removed there.

    Args:
        root: the workspace.
        hidden: patterns as in `.gitignore`.

    Raises:
        SkillError: `quota` when more is to be hidden than the wall can cover.
    """
    with handles.folder(root, (RESERVED,), make=True):
        pass
    found = (RESERVED, *_to_hide(root, hidden))
    uid = _user_of(root)
    if uid is not None:
        with handles.folder(root, ()) as top:
            mode = stat.S_IMODE(os.fstat(top).st_mode)
            os.chown(top, -1, uid)
            os.fchmod(top, mode | stat.S_ISVTX | stat.S_IRWXG)
            _give_content(top, "", uid, frozenset(found))
    return Room(str(root), found, network, uid)


def _to_hide(root: Path, patterns: tuple[str, ...]) -> list[str]:
    if not patterns:
        return []
    from pathspec import GitIgnoreSpec

    spec = GitIgnoreSpec.from_lines([folded(pattern) for pattern in patterns], backend="re2")
    found: list[str] = []

    def enter(path: str) -> bool:
        name = path.rpartition("/")[2]
        return name not in _NOT_SEARCHED and not name.startswith(RESERVED) and not spec.match_file(f"{folded(path)}/")

    with handles.folder(root, ()) as top:
        for path, status in handles.scan(top, recursive=True, enter=enter):
            name = f"{folded(path)}/" if stat.S_ISDIR(status.st_mode) else folded(path)
            # A link leads nowhere the program could not go by itself.
            if not stat.S_ISLNK(status.st_mode) and spec.match_file(name):
                found.append(path)
            if len(found) > MAX_HIDDEN:
                words = f"nothing ran: more than {MAX_HIDDEN} files here have names of secrets, too many to hide"
                raise SkillError("quota", words)
    return found


def _user_of(root: Path) -> int | None:
    if os.geteuid() != 0:
        return None
    group = root.stat().st_gid
    return group if _FIRST_UID <= group <= _LAST_UID else fresh_uid()


def _give_content(folder: int, prefix: str, uid: int, kept: frozenset[str]) -> None:
    """Gives what is in a folder to the user; what is kept back is closed to all but its owner."""
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries]
    for name in names:
        status = handles.look(folder, name)
        if status is None:
            continue
        if prefix + name in kept:
            _close(folder, name, status)
        elif stat.S_ISDIR(status.st_mode):
            _below(folder, name, f"{prefix}{name}/", uid, kept)
        # A file of two names may have one elsewhere.
        elif status.st_uid != uid and status.st_nlink == 1 and not name.startswith(RESERVED):
            os.chown(name, uid, uid, dir_fd=folder, follow_symlinks=False)


def _below(folder: int, name: str, prefix: str, uid: int, kept: frozenset[str]) -> None:
    try:
        inner = os.open(name, _FOLDER, dir_fd=folder)
    except OSError:  # gone, or swapped for a link
        return
    try:
        if os.fstat(inner).st_uid != uid:
            os.chown(inner, uid, uid)
        _give_content(inner, prefix, uid, kept)
    finally:
        os.close(inner)


def _close(folder: int, name: str, status: os.stat_result) -> None:
    if stat.S_ISLNK(status.st_mode) or not status.st_mode & 0o077:
        return
    try:
        inner = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return
    try:
        os.fchmod(inner, stat.S_IMODE(status.st_mode) & 0o700)
    finally:
        os.close(inner)


__all__ = ["MAX_HIDDEN", "Room", "fresh_uid", "prepare"]
