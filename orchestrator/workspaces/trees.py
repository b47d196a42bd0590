"""A folder of files written at once: all of them or none (spec: skills 7.11, 7.29)."""

import errno
import hashlib
import os
import secrets
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from orchestrator.workspaces import handles
from orchestrator.workspaces.quota import Quota, Usage
from registry.errors import SkillError
from registry.skills.context import Stored

#: What renaming onto a folder that holds something answers, depending on the system.
_OCCUPIED = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.EISDIR)


def write_new(root: Path, quota: Quota, folder: str, files: Mapping[str, bytes]) -> list[Stored]:
    """Makes a folder that holds the files: staged beside its place, on disk, then renamed.

    Args:
        folder: its stored path; nothing may be there but an empty folder.
        files: content by stored path below the folder.

    Raises:
        SkillError: `conflict`, `quota`; nothing was written.
    """
    change = Usage(len(files), sum(map(len, files.values())))
    quota.admit(change)
    *parents, name = folder.split("/")
    with handles.folder(root, parents, make=True) as above:
        staged = f"{handles.TEMPORARY}{secrets.token_hex(8)}"
        os.mkdir(staged, dir_fd=above)
        try:
            for path, content in files.items():
                *inner, last = path.split("/")
                with (
                    handles.folder(root, [*parents, staged, *inner], make=True) as place,
                    handles.staged(place, content) as temporary,
                ):
                    handles.rename(place, temporary, last)
            quota.commit(change, lambda: _into_place(above, staged, name, folder))
        finally:
            with suppress(FileNotFoundError):
                shutil.rmtree(staged, dir_fd=above)
    return [
        Stored(f"{folder}/{path}", len(content), hashlib.sha256(content).hexdigest(), created=True)
        for path, content in files.items()
    ]


def _into_place(above: int, staged: str, name: str, folder: str) -> None:
    try:
        os.rename(staged, name, src_dir_fd=above, dst_dir_fd=above)
    except OSError as error:
        if error.errno not in _OCCUPIED:
            raise
        raise SkillError("conflict", f"{folder!r} is there already and holds something") from None
    os.fsync(above)


def is_empty(root: Path, folder: str) -> bool:
    """Whether nothing lies under a path, or an empty folder does."""
    *parents, name = folder.split("/")
    try:
        with handles.folder(root, parents) as above:
            if handles.look(above, name) is None:
                return True
        with handles.folder(root, [*parents, name]) as inner:
            return next(handles.scan(inner, recursive=False), None) is None
    except SkillError as error:
        if error.code == "not_found":  # a step on the way is missing; or what lies there is a file
            with suppress(SkillError), handles.folder(root, parents) as above:
                return handles.look(above, name) is None
            return True
        raise


__all__ = ["is_empty", "write_new"]
