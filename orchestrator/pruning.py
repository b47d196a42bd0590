"""Retention: what is kept of projects that have ended, and for how long (`docs/growth.md`)."""

import logging
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from sqlalchemy import Connection

from orchestrator.sections import Keeping
from orchestrator.settings import Settings
from orchestrator.store import pruning
from orchestrator.store.database import Database, get_database
from orchestrator.store.pruning import PARTS, Part
from registry.base import Json

log = logging.getLogger(__name__)

#: Who prunes when nobody asked for it just now.
CLOCK = "the clock"


@dataclass(frozen=True)
class Policy:
    """Days after its end that a part of a project is kept; None: for ever."""

    history: int | None = None
    files: int | None = None
    project: int | None = None

    @property
    def parts(self) -> dict[Part, int]:
        """Parts that are to go at some time, and after how many days."""
        known = {part: getattr(self, part) for part in PARTS}
        return {part: days for part, days in known.items() if days is not None}


@dataclass
class Pruned:
    """Projects of which a part goes, and rows by table (of files their bytes, too)."""

    projects: dict[Part, int] = field(default_factory=dict)
    rows: dict[Part, dict[str, int]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Json]:
        return {part: {"projects": self.projects[part], **self.rows[part]} for part in self.projects}


def policy(keeping: Keeping) -> Policy:
    """What the settings say."""
    return Policy(keeping.history_days, keeping.files_days, keeping.project_days)


def look(settings: Settings, wanted: Policy) -> Pruned:
    """What would go now; nothing is changed."""
    found = Pruned()
    with get_database(settings).read() as connection:
        for part, days in wanted.parts.items():
            ids = [row.id for row in pruning.due(connection, part, days)]
            found.projects[part], found.rows[part] = len(ids), pruning.size(connection, part, ids)
    return found


def prune(settings: Settings, wanted: Policy, *, by: str, tell: Callable[[str], None] = log.info) -> dict[Part, int]:
    """Takes away all that is too old, beside whatever runs; returns the projects by part."""
    database, done = get_database(settings), dict.fromkeys(wanted.parts, 0)
    for part, days in wanted.parts.items():
        with database.read() as connection:
            old = pruning.due(connection, part, days)
        for row in old:
            if all(step is not None for step in _steps(settings, database, part, row.id, row.workspace, by)):
                done[part] += 1
                if done[part] % 100 == 0:
                    tell(f"{part}: {done[part]} of {len(old)} projects")
    return done


def prune_some(settings: Settings, pieces: int) -> bool:
    """A bounded number of pieces of what the settings say is too old; True: there is more."""
    database, left = get_database(settings), pieces
    for part, days in policy(settings.keeping).parts.items():
        with database.read() as connection:
            old = pruning.due(connection, part, days, limit=pieces)
        for row in old:
            for _ in _steps(settings, database, part, row.id, row.workspace, CLOCK):
                left -= 1
                if left <= 0:
                    return True
    return False


def _steps(
    settings: Settings, database: Database, part: Part, project_id: str, workspace: str, by: str
) -> Iterator[int | None]:
    """Piece after piece of one project, each committed when it is given; a last None says that it was left alone."""
    if part != "history":
        with database.read() as connection:
            if not pruning.still_over(connection, part, project_id):
                yield None
                return
        _remove(settings, workspace)
    move: Callable[[Connection], int | None]
    if part == "files":
        yield 0 if database.write(lambda c: pruning.files_gone(c, project_id)) else None
        return
    if part == "history":
        move = partial(pruning.history_piece, project_id=project_id)
    else:
        move = partial(pruning.project_piece, project_id=project_id, by=by)
    while True:
        gone = database.write(move)
        yield gone
        if not gone:
            return


def _remove(settings: Settings, workspace: str) -> None:
    """Deletes a workspace: a folder right in the root, and nothing else whatever a row says."""
    root = settings.workspaces.resolve()
    folder = root / workspace
    if not workspace or Path(workspace).name != workspace or folder.is_symlink() or folder.resolve().parent != root:
        return
    shutil.rmtree(folder, ignore_errors=True)
