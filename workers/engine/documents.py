"""The documents of a run: the set it began with, the list its model reads, the port of `load_skill` (spec: engine 17).

A run notes the digest of each document as it begins, and the documents are stored under these. Whoever carries it
later takes the file when that still is the same, and what was stored when it is not: an edit reaches the runs that
begin after it. An agent without documents does none of this.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from registry.errors import SkillError
from registry.playbooks import Playbook
from workers.engine.session import Session
from workers.engine.shelf import listed

#: Where the run remembers its documents: name -> digest.
MEMO: Final = "documents"
_BEGIN: Final = "Documents with instructions for kinds of work. Before work that one is about, read it with load_skill:"


def begin(session: Session) -> None:
    """Takes the documents of the agent that begins to speak, as they are now; those it has noted stay."""
    if not session.agent.documents:
        return
    live = session.services.documents(session.record)
    noted: dict[str, str] = session.memo.get(MEMO, {})
    fresh = [live[name] for name in session.agent.documents if name not in noted and name in live]
    if fresh:
        session.services.kept_documents.keep(fresh)
        session.memo[MEMO] = noted | {book.name: book.digest for book in fresh}


def catalogue(session: Session) -> str:
    """The list of its documents for the system text, within its caps; empty when it has none."""
    books = list(_of(session).values())
    if not books:
        return ""
    most = session.limits.skill_catalogue_entries
    lines = [_line(book) for book in books[:most]]
    if len(_BEGIN) + sum(len(line) + 1 for line in lines) > session.limits.skill_catalogue_chars:
        lines = [_short(book, session.limits.skill_catalogue_chars // (len(lines) + 1)) for book in books[:most]]
    return listed(_BEGIN, lines, len(books), session.limits.skill_catalogue_chars)


def _line(book: Playbook) -> str:
    when = f" When: {book.when_to_use}" if book.when_to_use else ""
    return f"- {book.name}: {book.description}{when}"


def _short(book: Playbook, most: int) -> str:
    """A line of at most so many characters; the name is always whole."""
    line = _line(book)
    least = len(f"- {book.name}")
    return line if len(line) < most else line[: max(least, most - 2)] + "…"


class RunDocuments:
    """The `Documents` port of one call of a run."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def instructions(self, name: str) -> tuple[str, list[str]]:
        """See `Documents`."""
        book = self._book(name)
        return book.instructions, sorted(book.files)

    def file(self, name: str, path: str) -> str:
        """See `Documents`."""
        files = self._book(name).files
        if path not in files:
            raise SkillError("not_found", f"{name} has no file {path[:120]!r}; {_names(files, 'it has no files')}")
        return files[path]

    def _book(self, name: str) -> Playbook:
        books = _of(self._session)
        if name not in books:
            raise SkillError("not_found", f"you have no document {name[:80]!r}; {_names(books, 'you have none')}")
        return books[name]


def _names(names: Iterable[str], nothing: str) -> str:
    found = sorted(names)
    return f"there are: {', '.join(found[:40])}" if found else nothing


def _of(session: Session) -> Mapping[str, Playbook]:
    """The documents of the agent that speaks, by name, each as the run took it."""
    noted = session.memo.get(MEMO)
    if not isinstance(noted, dict):
        return {}
    mine = {name: noted[name] for name in sorted(session.agent.documents) if name in noted}
    with session.lock:
        missing = [name for name, digest in mine.items() if digest not in session.books]
        live = session.services.documents(session.record) if missing else {}
        for name in missing:
            book = live.get(name)
            if book is None or book.digest != mine[name]:
                book = session.services.kept_documents.get(mine[name])
            session.books[mine[name]] = book
        return {name: session.books[digest] for name, digest in mine.items()}
