"""Files that come with a message: they lie in the thread's workspace before the run begins that reads of them.

The place of each is made of what it holds, so that the same message sent again writes the same files to the same
places, and other content never comes to lie there. A message that its thread has no place for leaves none.
"""

import base64
import binascii
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from orchestrator import threads
from orchestrator.settings import Settings
from orchestrator.store import sends
from orchestrator.store.database import get_database
from orchestrator.store.sends import Sent
from orchestrator.workspaces.jail import JailedWorkspace
from registry.base import Json
from registry.errors import Detail, Fault, SkillError, WrongUse
from registry.skills.context import Stored
from registry.skills.paths import normalise

#: The folder of the workspace they lie in.
FOLDER: Final = "attachments"
#: Files one message may bring.
MOST: Final = 20
#: Hex digits of a file's sha256 that name the folder it lies in.
_DIGITS: Final = 16


@dataclass(frozen=True)
class Attachment:
    """A file that comes with a message."""

    #: Without folders.
    name: str
    content: bytes

    @property
    def path(self) -> str:
        """Where in the workspace it lies.

        Raises:
            SkillError: `path_escape`, `invalid_input`: its name is none a file can have there.
        """
        if "/" in self.name:
            raise SkillError("invalid_input", "the name of a file that comes with a message has no folders")
        normalise(self.name)  # on its own too: it may not begin like a path from the root
        return normalise(f"{FOLDER}/{hashlib.sha256(self.content).hexdigest()[:_DIGITS]}/{self.name}")


def read(given: Sequence[dict[str, Json]]) -> list[Attachment]:
    """The files of a request: each with a `name`, and either `text` or `base64`.

    Raises:
        WrongUse: with every fault found.
    """
    found, faults = [], []
    for place, one in enumerate(given):
        try:
            found.append(Attachment(str(one["name"]), _content(one)))
        except (ValueError, binascii.Error):
            faults.append(Fault(f"attachments[{place}]", "invalid_file", "give text, or base64 that is base64"))
    if faults:
        raise WrongUse(str(faults[0]), faults=faults)
    return found


def read_files(paths: Sequence[Path]) -> list[Attachment]:
    """Files of this machine that a person names.

    Raises:
        WrongUse: with every one that cannot be read.
    """
    found, faults = [], []
    for path in paths:
        try:
            found.append(Attachment(path.name, path.read_bytes()))
        except OSError as error:
            words = f"{path} cannot be read: {error.strerror}"
            faults.append(Fault("--attach", "unreadable", words))
    if faults:
        raise WrongUse(str(faults[0]), faults=faults)
    return found


def send(
    settings: Settings,
    thread_id: str,
    text: str,
    given: Sequence[Attachment],
    *,
    client_key: str | None = None,
    mode: str | None = None,
) -> Sent:
    """As `threads.send`, with files.

    Raises:
        WrongUse: a name no file can have.
        SkillError: `too_large`, `quota`, `conflict`.
        Refused: as `threads.send`.
    """
    judge(settings, given)
    if given:
        with get_database(settings).read() as connection:
            known = sends.earlier(connection, thread_id, client_key)
        if known is not None:
            return known
    laid = _lay(settings, thread_id, given)
    return threads.send(settings, thread_id, text, client_key=client_key, attachments=laid, mode=mode)


def judge(settings: Settings, given: Sequence[Attachment]) -> None:
    """Whether a message may bring these files.

    Raises:
        WrongUse: there are too many, or a name is one no file can have.
        SkillError: `too_large`.
    """
    most, size = settings.limits.attachment_bytes, sum(len(one.content) for one in given)
    if len(given) > MOST:
        words = f"{len(given)} files come with the message, and {MOST} are the most"
        raise WrongUse(words, faults=[Fault("attachments", "too_many", words)])
    faults = []
    for place, one in enumerate(given):
        try:
            assert one.path
        except SkillError as error:
            faults.append(Fault(f"attachments[{place}].name", error.code, error.message))
    if faults:
        raise WrongUse(str(faults[0]), faults=faults)
    if size > most:
        words = f"the files that come with the message have {size} bytes, and {most} are the most"
        raise SkillError("too_large", words, details=[Detail("attachments", words)])


def _lay(settings: Settings, thread_id: str, given: Sequence[Attachment]) -> tuple[Json, ...]:
    """Writes them; gives what the message says of each, one that comes twice once."""
    if not given:
        return ()
    workspace = JailedWorkspace(settings.workspaces / thread_id)
    files = {one.path: one.content for one in given}
    written = [
        workspace.write(path, content, max_bytes=settings.limits.attachment_bytes) for path, content in files.items()
    ]
    return tuple(_said(one) for one in written)


def _said(stored: Stored) -> dict[str, Json]:
    return {"path": stored.path, "bytes": stored.bytes, "sha256": stored.sha256}


def _content(one: dict[str, Json]) -> bytes:
    text, packed = one.get("text"), one.get("base64")
    if (text is None) == (packed is None):
        raise ValueError("one of the two")
    return str(text).encode() if packed is None else base64.b64decode(str(packed), validate=True)


__all__ = ["FOLDER", "MOST", "Attachment", "judge", "read", "read_files", "send"]
