"""Whether this machine sees the one root of workspaces that all machines work in.

A volume that is not mounted looks like an empty folder: whoever works there would write files that nobody else sees. So
the root carries a mark, and the database knows the mark of the root that was used first. A database that is a local
file needs none of it.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from sqlalchemy.engine import make_url

from orchestrator.settings import Settings
from orchestrator.store import leases
from orchestrator.store.database import get_database
from registry.errors import Refused
from registry.ids import new_id

#: The file in the root that holds its mark.
MARK: Final = ".officina-root"
#: The root is elected once, and for good: a lease nobody lives to see the end of, in milliseconds.
_NAME: Final = "workspaces"
_FOR_GOOD: Final = 1_000 * 365 * 86_400_000


def take(settings: Settings) -> None:
    """Sees to it that this process works in the root that all work in; the first one to come decides which that is.

    Raises:
        Refused: `workspaces`: the root is missing here, is another one, or cannot be written.
    """
    if _local(settings):
        return
    root, wanted = settings.workspaces, _elected(settings)
    if wanted is None:
        mark = _marked(root)
        if get_database(settings).write(lambda c: leases.elect(c, _NAME, mark, _FOR_GOOD)):
            return
        wanted = _elected(settings)  # another one was faster
    fault = _fault(root, wanted)
    if fault is not None:
        raise Refused(fault, code="workspaces")


def fault(settings: Settings) -> str | None:
    """What is wrong with the root as this machine sees it; None: nothing, or nobody has used one yet."""
    wanted = None if _local(settings) else _elected(settings)
    return None if wanted is None else _fault(settings.workspaces, wanted)


def is_elected(settings: Settings) -> bool:
    """Whether a root was chosen that all hosts work in."""
    return not _local(settings) and _elected(settings) is not None


def _local(settings: Settings) -> bool:
    return make_url(settings.database).get_backend_name() == "sqlite"


def _elected(settings: Settings) -> str | None:
    with get_database(settings).read() as connection:
        return leases.holder(connection, _NAME)


def _fault(root: Path, wanted: str | None) -> str | None:
    if not root.is_dir():
        return f"{root} is not there: is the volume mounted?"
    found = _mark(root)
    if found == wanted:
        return None
    what = f"carries the mark {found}" if found else "carries no mark"
    words = f"{root} {what}, and the root that all hosts work in has {wanted}: is the volume mounted?"
    return f"{words} If this is its copy, write that mark into {root / MARK}"


def _marked(root: Path) -> str:
    """The mark of a root, which is made, and gets one, where it has none."""
    trial = root / f"{MARK}-{new_id()}"
    try:
        root.mkdir(parents=True, exist_ok=True)
        trial.write_text(new_id() + "\n", encoding="ascii")
        with suppress(FileExistsError):
            os.link(trial, root / MARK)  # whole or not at all, and never over another one
        trial.unlink()
    except OSError as error:
        raise Refused(f"{root} cannot be written: {error.strerror or error}", code="workspaces") from None
    found = _mark(root)
    assert found is not None
    return found


def _mark(root: Path) -> str | None:
    try:
        return (root / MARK).read_text(encoding="ascii").strip() or None
    except (OSError, ValueError):
        return None
