"""Documents an agent reads on demand (playbooks): `<root>/<folder>/SKILL.md` and the files beside it (spec: engine 17).

    found = scan([SHIPPED, Path("~/.officina/skills").expanduser()])
    found["workspace-ops"].instructions
    found.faults                              # files that were left out, and why

A root is a folder of folders; the later root wins by the `name` in the front matter. People write all of it: no tool of
a model writes into a root. A file that cannot be used is left out and reported; it never hides the others.
"""

import os
import re
import stat
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

from registry import yamltext
from registry.base import Json
from registry.errors import Fault, WrongUse
from registry.jsontext import digest

#: The root that ships.
SHIPPED: Final = Path(__file__).parent / "skills" / "documents"
#: The file that makes a folder a document.
MAIN: Final = "SKILL.md"
#: Bytes of one file, and of all files of a document together.
MAX_FILE: Final = 256 * 1024
MAX_TOTAL: Final = 2 * 1024 * 1024
#: Supporting files of a document, how deep they may lie, and entries of a folder tree that are looked at.
MAX_FILES: Final = 200
MAX_DEPTH: Final = 6
MAX_ENTRIES: Final = 2_000
#: Entries of a root whose times are looked at.
MAX_STAMPED: Final = 20_000
#: Characters of a description, and of the words on when to use it.
MAX_ABOUT: Final = 1_024
#: Seconds in which a root is not looked at again.
REST_S: Final = 1.0

_NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_MAX_NAME: Final = 64
_FENCE: Final = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Playbook:
    """One document, whole: what a run keeps is this."""

    name: str
    description: str
    when_to_use: str
    instructions: str
    #: Supporting files, by path inside its folder.
    files: Mapping[str, str] = field(default_factory=dict)
    #: Its folder; None for one that a run has kept.
    path: Path | None = field(default=None, compare=False)

    @property
    def shipped(self) -> bool:
        return self.path is not None and self.path.parent == SHIPPED

    @cached_property
    def digest(self) -> str:
        """What it says, as one short text: a document that was changed has another."""
        return digest(self.to_json())

    def to_json(self) -> dict[str, Json]:
        """The object that is kept; `of_json` reads it."""
        return {
            "name": self.name,
            "description": self.description,
            "whenToUse": self.when_to_use,
            "instructions": self.instructions,
            "files": dict(self.files),
        }


def of_json(body: Mapping[str, Json]) -> Playbook:
    """The document that was kept."""
    return Playbook(body["name"], body["description"], body["whenToUse"], body["instructions"], body["files"])


class Playbooks(Mapping[str, Playbook]):
    """Documents by name, in the order of their names, and the faults of what was left out."""

    def __init__(self, found: Mapping[str, Playbook], faults: Iterable[Fault] = ()) -> None:
        self._found = dict(sorted(found.items()))
        self.faults = tuple(faults)
        self.names = frozenset(self._found)

    def __getitem__(self, name: str) -> Playbook:
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


#: No documents at all.
NONE: Final = Playbooks({})


class Library:
    """The documents of some roots, read again when a root was changed; safe to use from many threads."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self.roots = tuple(roots)
        self._lock = threading.Lock()
        self._stamp: object = None
        self._found = NONE
        self._looked = float("-inf")

    def current(self) -> Playbooks:
        """What there is now, or was a second ago."""
        with self._lock:
            if time.monotonic() - self._looked >= REST_S:
                stamp = tuple(_stamp(root) for root in self.roots)
                if stamp != self._stamp:
                    self._found, self._stamp = scan(self.roots), stamp
                self._looked = time.monotonic()
            return self._found


def scan(roots: Iterable[Path]) -> Playbooks:
    """The documents of several roots; the later root wins by name. A root that is not there has none."""
    found: dict[str, Playbook] = {}
    faults: list[Fault] = []
    for root in roots:
        of_root: dict[str, Playbook] = {}
        for folder in _folders(root, faults):
            book = _read(folder, faults)
            if book is None:
                continue
            if book.name in of_root:
                words = f"the name {book.name!r} is taken by {of_root[book.name].path}"
                faults.append(Fault(str(folder), "name_twice", words))
            else:
                of_root[book.name] = book
        found |= of_root
    return Playbooks(found, faults)


def _folders(root: Path, faults: list[Fault]) -> list[Path]:
    """The folders of a root that hold a document; flat files are no documents."""
    try:
        return sorted(entry for entry in root.iterdir() if not entry.name.startswith(".") and _is_document(entry))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        faults.append(Fault(str(root), "unreadable", f"the folder cannot be read: {error.strerror}"))
        return []


def _is_document(entry: Path) -> bool:
    return entry.is_dir() and os.path.lexists(entry / MAIN)


def _read(folder: Path, faults: list[Fault]) -> Playbook | None:
    main = folder / MAIN
    try:
        if folder.is_symlink():
            raise _Unusable("link", "the folder is a link: links are not followed, copy it here")
        head, body = _parts(_text(main))
        name, description, when = _head(head)
        if not body.strip():
            raise _Unusable("body_required", "nothing follows the front matter")
    except _Unusable as error:
        faults.append(Fault(str(main), error.code, error.words))
        return None
    return Playbook(name, description, when, body.strip() + "\n", _supporting(folder, faults), folder)


class _Unusable(Exception):
    """Why a file is left out."""

    def __init__(self, code: str, words: str) -> None:
        super().__init__(words)
        self.code, self.words = code, words


def _text(file: Path) -> str:
    """A regular file's text; nothing is followed, and a pipe is not waited for."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        code = "link" if file.is_symlink() else "unreadable"
        words = "is a link: links are not followed" if code == "link" else f"cannot be read: {error.strerror}"
        raise _Unusable(code, words) from None
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise _Unusable("unreadable", "is no regular file")
        with os.fdopen(handle, "rb", closefd=False) as reader:
            content = reader.read(MAX_FILE + 1)
    except OSError as error:
        raise _Unusable("unreadable", f"cannot be read: {error.strerror}") from None
    finally:
        os.close(handle)
    if len(content) > MAX_FILE:
        raise _Unusable("too_large", f"has more than {MAX_FILE} bytes")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _Unusable("not_text", f"is no UTF-8 text (byte {error.start})") from None
    if "\0" in text:
        raise _Unusable("not_text", "holds a NUL character: is it a text?")
    return text


def _parts(text: str) -> tuple[str, str]:
    fenced = _FENCE.match(text)
    if fenced is None:
        raise _Unusable("front_matter", "has to begin with front matter: name and description between two lines `---`")
    return fenced[1], text[fenced.end() :]


def _head(text: str) -> tuple[str, str, str]:
    """Name, description and when to use it; other keys are other programs' business."""
    try:
        values = yamltext.load(text, name="front matter", max_bytes=MAX_FILE)
    except WrongUse as error:
        raise _Unusable("front_matter", error.message) from None
    if not isinstance(values, dict):
        raise _Unusable("front_matter", "the front matter is no map of keys")
    name = values.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > _MAX_NAME:
        words = f"name is required: lower-case words joined by -, at most {_MAX_NAME} characters"
        raise _Unusable("name_required", words)
    about = [_line(values, key) for key in ("description", "when_to_use")]
    if not about[0]:
        raise _Unusable("description_required", "description is required: what the document is about, in a line")
    return name, about[0], about[1]


def _line(values: Mapping[str, Json], key: str) -> str:
    value = values.get(key)
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > MAX_ABOUT:
        raise _Unusable("front_matter", f"{key} must be a text of at most {MAX_ABOUT} characters")
    return " ".join(value.split())


def _supporting(folder: Path, faults: list[Fault]) -> dict[str, str]:
    """The texts beside the main file; what is a link, no text or too much is left out and reported."""
    found: dict[str, str] = {}
    total = 0
    for path, file in _below(folder):
        try:
            if len(found) >= MAX_FILES:
                raise _Unusable("too_many", f"a document has at most {MAX_FILES} supporting files")
            text = _text(file)
            size = len(text.encode())
            if total + size > MAX_TOTAL:
                raise _Unusable("too_large", f"a document has at most {MAX_TOTAL} bytes")
        except _Unusable as error:
            faults.append(Fault(str(file), error.code, f"left out: {error.words}"))
            if error.code == "too_many":
                break
        else:
            found[path] = text
            total += size
    return found


def _below(folder: Path) -> list[tuple[str, Path]]:
    """Files below a folder, hidden ones and the main file left out, in the order of their paths."""
    found = [(path, entry) for path, entry, status in _walk(folder, MAX_ENTRIES) if not stat.S_ISDIR(status.st_mode)]
    return sorted((path, entry) for path, entry in found if path != MAIN)


def _walk(folder: Path, most: int) -> Iterator[tuple[str, Path, os.stat_result]]:
    """Everything below a folder with its status, links as themselves; bounded in depth and number."""
    waiting = [(folder, "", 0)]
    while waiting:
        here, before, level = waiting.pop()
        try:
            entries = sorted(os.scandir(here), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            if entry.name.startswith("."):
                continue
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            most -= 1
            if most < 0:
                return
            yield before + entry.name, Path(entry.path), status
            if stat.S_ISDIR(status.st_mode) and level < MAX_DEPTH:
                waiting.append((Path(entry.path), f"{before}{entry.name}/", level + 1))


def _stamp(root: Path) -> object:
    """Changes whenever anything a scan would read of this root does."""
    try:
        top = root.stat().st_mtime_ns
    except OSError:
        return None
    return top, tuple((path, s.st_mtime_ns, s.st_size, s.st_ino) for path, _, s in _walk(root, MAX_STAMPED))


__all__ = ["NONE", "SHIPPED", "Library", "Playbook", "Playbooks", "of_json", "scan"]
