"""Documents as runs began with them: stored once under their digest, read back when the file has changed since."""

import threading
from collections.abc import Iterable

from orchestrator.store import definitions
from orchestrator.store.database import Database
from registry.playbooks import Playbook, of_json

#: Digests a process remembers to have stored.
_REMEMBERED = 4_096


class StoredDocuments:
    """One per process. What it has stored before costs no statement."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._stored: set[str] = set()
        self._lock = threading.Lock()

    def keep(self, books: Iterable[Playbook]) -> None:
        """Stores documents, so that whoever carries the run later finds them."""
        with self._lock:
            fresh = {book.digest: book.to_json() for book in books if book.digest not in self._stored}
        if not fresh:
            return
        self._database.write(lambda c: definitions.keep(c, fresh))
        with self._lock:
            if len(self._stored) > _REMEMBERED:
                self._stored.clear()
            self._stored |= set(fresh)

    def get(self, digest: str) -> Playbook:
        """A document that was kept."""
        with self._database.read() as connection:
            return of_json(definitions.get(connection, digest))
