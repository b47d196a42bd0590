"""Looking into a mailbox by IMAP (RFC 3501): opened read-only, read with peeks, in bounded pieces."""

import imaplib
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from time import mktime
from typing import Any, Final

from imap_tools import AND, BaseMailBox, MailboxFolderSelectError, MailboxLoginError
from imap_tools.errors import ImapToolsError

from registry.connections import EmailConnection, MailServer
from registry.errors import SkillError
from registry.skills.context import SkillContext
from registry.skills.mail.mime import HEADER_BYTES
from registry.skills.mail.smtp import RECONNECT
from registry.skills.mail.texts import one_line
from registry.skills.mail.wire import Line, explain

MIB: Final = 1024 * 1024
#: Bytes of one answer's literal that are taken: more than is ever asked for.
MAX_LITERAL: Final = 12 * MIB
#: Messages one search looks through: the newest first, until there are enough.
WINDOW: Final = 5_000

_FIRST = re.compile(rb"^\d+ \(")
_UID = re.compile(rb"\bUID (\d+)")
_SIZE = re.compile(rb"\bRFC822\.SIZE (\d+)")
_FLAGS = re.compile(rb"\bFLAGS \(([^)]*)\)")
_ARRIVED = re.compile(rb'\bINTERNALDATE "[^"]*"')


@dataclass(frozen=True)
class Found:
    """A message as the server lists it, with its headers as they came."""

    uid: int
    size: int
    seen: bool
    arrived: datetime | None
    headers: bytes


class Folder:
    """An open folder."""

    def __init__(self, mailbox: "_Mailbox", context: SkillContext, count: int, validity: int) -> None:
        self._mailbox = mailbox
        self._context = context
        self._count = count
        #: With a uid it names a message for ever.
        self.validity = validity

    def newest(self, limit: int, **criteria: Any) -> list[int]:
        """The uids that fit, the newest first.

        Args:
            criteria: as `imap_tools.AND` takes them.
        """
        wanted = str(AND(**criteria)) if criteria else "ALL"
        charset = None if wanted.isascii() else "UTF-8"
        found: list[int] = []
        last = self._count
        while last > 0 and len(found) < limit:
            self._context.check()
            first = max(1, last - WINDOW + 1)
            uids = self._mailbox.uids(f"{first}:{last} {wanted}", charset)
            found += sorted((int(uid) for uid in uids if uid.isdigit()), reverse=True)
            last = first - 1
        return found[:limit]

    def headers(self, uids: list[int]) -> list[Found]:
        """What the server lists of messages, in the order asked for; one that is gone is left out."""
        if not uids:
            return []
        wanted = f"(UID FLAGS INTERNALDATE RFC822.SIZE BODY.PEEK[HEADER]<0.{HEADER_BYTES}>)"
        listed = {one.uid: one for one in map(_found, self._fetch(uids, wanted)) if one is not None}
        return [listed[uid] for uid in uids if uid in listed]

    def message(self, uid: int, max_bytes: int) -> bytes:
        """The whole message, at most this much of it."""
        self._context.check()
        for said, literal in self._fetch([uid], f"(UID BODY.PEEK[]<0.{max_bytes}>)"):
            if (number := _UID.search(said)) and int(number[1]) == uid:
                return literal[:max_bytes]
        return b""

    def _fetch(self, uids: list[int], wanted: str) -> Iterator[tuple[bytes, bytes]]:
        status, lines = self._mailbox.client.uid("FETCH", ",".join(map(str, uids)), wanted)
        if status != "OK":
            raise SkillError("remote_error", f"the mail server did not hand out messages: {_said(lines)}")
        yield from _grouped(lines)


@contextmanager
def opened(mailbox: EmailConnection, server: MailServer, name: str, context: SkillContext) -> Iterator[Folder]:
    """The folder, read-only.

    Raises:
        SkillError: `remote_error` (login), `not_found` (folder), `network_error`, `timeout`, `cancelled`.
    """
    try:
        line = Line(context, server)
        with line.watched():
            client = _Mailbox(line)
            if server.security == "starttls":
                _encrypt(client, line)
            _login(client, mailbox, server)
            yield _selected(client, name, context)
            with suppress(OSError, imaplib.IMAP4.error, ImapToolsError):  # everything is read
                client.logout()
    except (OSError, imaplib.IMAP4.abort) as error:  # abort: the connection is over
        raise explain(error, server, context) from None
    except (imaplib.IMAP4.error, ImapToolsError) as error:
        context.check()
        raise SkillError("remote_error", f"{server.host} answered with a failure: {_said([error])}") from None


class _Client(imaplib.IMAP4):
    """Speaks over the line it is given, and takes no answer without bounds."""

    def __init__(self, line: Line) -> None:
        self._given = line
        super().__init__(line.server.host, line.server.port)

    def _create_socket(self, timeout: float | None = None) -> Any:
        return self._given.sock

    def read(self, size: int) -> bytes:
        if size > MAX_LITERAL:
            raise self.abort(f"an answer of {size} bytes, and {MAX_LITERAL} is the most")
        return super().read(size)


class _Mailbox(BaseMailBox):
    def __init__(self, line: Line) -> None:
        self._line = line
        super().__init__()

    def _get_mailbox_client(self) -> imaplib.IMAP4:
        return _Client(self._line)


def _encrypt(client: _Mailbox, line: Line) -> None:
    imap = client.client
    if "STARTTLS" not in imap.capabilities:
        raise SkillError("remote_error", f"{line.server.host} offers no TLS, and mail is read by nothing less")
    import ssl

    imap.starttls(ssl.create_default_context())
    line.sock = imap.sock


def _login(client: _Mailbox, mailbox: EmailConnection, server: MailServer) -> None:
    username, password = mailbox.username, mailbox.password.get_secret_value()
    plain = (username + password).isascii() and not any(c in "\r\n\0" for c in username + password)
    try:
        (client.login if plain else client.login_utf8)(username, password, initial_folder=None)
    except imaplib.IMAP4.abort:
        raise
    except (MailboxLoginError, imaplib.IMAP4.error):
        raise SkillError("remote_error", f"{server.host} refused the login; {RECONNECT}") from None


def _selected(client: _Mailbox, name: str, context: SkillContext) -> Folder:
    try:
        _, lines = client.folder.set(name, readonly=True)
    except (MailboxFolderSelectError, imaplib.IMAP4.readonly):
        raise SkillError("not_found", f"there is no folder {name[:80]!r} that can be opened") from None
    _, validity = client.client.response("UIDVALIDITY")
    return Folder(client, context, _number(lines), _number(validity))


def _number(lines: Any) -> int:
    text = lines[-1] if lines and isinstance(lines[-1], bytes) else b""
    return int(text) if text.isdigit() else 0


def _grouped(lines: list[Any]) -> Iterator[tuple[bytes, bytes]]:
    """For each message what the server said around its literal, and the literal."""
    said, literal = b"", b""
    for line in lines:
        words = line[0] if isinstance(line, tuple) else line
        if not isinstance(words, bytes):
            continue
        if _FIRST.match(words) and said:
            yield said, literal
            said, literal = b"", b""
        said += words + b" "
        if isinstance(line, tuple):
            literal = line[1]
    if said:
        yield said, literal


def _found(answer: tuple[bytes, bytes]) -> Found | None:
    said, literal = answer
    uid, size, flags = _UID.search(said), _SIZE.search(said), _FLAGS.search(said)
    if uid is None:
        return None
    return Found(
        uid=int(uid[1]),
        size=int(size[1]) if size else 0,
        seen=flags is not None and b"\\seen" in flags[1].lower().split(),
        arrived=_arrival(said),
        headers=literal,
    )


def _arrival(said: bytes) -> datetime | None:
    found = _ARRIVED.search(said)
    try:
        when = imaplib.Internaldate2tuple(found[0]) if found else None
        return datetime.fromtimestamp(mktime(when), UTC) if when else None
    except (ValueError, OverflowError, OSError):
        return None


def _said(lines: list[Any]) -> str:
    return one_line(
        " ".join(str(line, "utf-8", "replace") if isinstance(line, bytes) else str(line) for line in lines), 200
    )


__all__ = ["Folder", "Found", "opened"]
