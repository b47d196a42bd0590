"""Mail servers on loopback: an SMTP server that behaves as badly as a test wants, and a real Dovecot for IMAP."""

import asyncio
import imaplib
import os
import pwd
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, Session

from orchestrator.stack.processes import Process
from tests.certificates import Certificates
from tests.services import ServiceMissing
from tests.support import eventually

USER, PASSWORD = "ann@example.com", "a wonderful Passphrase 7"


@dataclass
class SmtpServer:
    """What it does, and what it was handed. Addresses map to the reply their RCPT gets."""

    security: str = "tls"
    replies: dict[str, str] = field(default_factory=dict)
    #: Where it hangs up without a word: `connect`, `MAIL`, `RCPT`, `DATA` (before the message), `message` (after it).
    drop_at: str | None = None
    #: Where it says nothing any more, for ever.
    hang_at: str | None = None
    data_reply: str = "250 taken"
    offer_login: bool = True
    size_limit: int = 30_000_000
    port: int = 0
    taken: list[Envelope] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)

    async def _at(self, point: str, server: SMTP) -> None:
        self.commands.append(point)
        if self.drop_at == point:
            server.transport.abort()
            raise ConnectionResetError
        if self.hang_at == point:
            await asyncio.sleep(3600)

    async def handle_EHLO(  # noqa: N802
        self, _server: SMTP, session: Session, _envelope: Envelope, hostname: str, lines: list[str]
    ) -> list[str]:
        session.host_name = hostname
        return [line for line in lines if self.offer_login or "AUTH" not in line]

    async def handle_MAIL(  # noqa: N802
        self, server: SMTP, _session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        await self._at("MAIL", server)
        envelope.mail_from = address
        return self.replies.get(address, "250 OK")

    async def handle_RCPT(  # noqa: N802
        self, server: SMTP, _session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        await self._at("RCPT", server)
        reply = self.replies.get(address, "250 OK")
        if reply.startswith("2"):
            envelope.rcpt_tos.append(address)
        return reply

    async def handle_DATA(self, server: SMTP, _session: Session, envelope: Envelope) -> str:  # noqa: N802
        if self.data_reply.startswith("2"):
            self.taken.append(envelope)
        await self._at("message", server)
        return self.data_reply


def _authenticated(_server: SMTP, _session: Session, _envelope: Envelope, _mechanism: str, given: Any) -> AuthResult:
    good = (given.login, given.password) == (USER.encode(), PASSWORD.encode())
    return AuthResult(success=good, handled=False)


class _Smtp(SMTP):
    """Hangs up before it takes a message, where its test wants that."""

    async def smtp_DATA(self, arg: str) -> None:  # noqa: N802
        await self.event_handler._at("DATA", self)
        await super().smtp_DATA(arg)


@contextmanager
def smtp(certificates: Certificates, **behaviour: Any) -> Iterator[SmtpServer]:
    """A running server that speaks TLS from the first byte (`tls`), when asked to (`starttls`), or never (`none`)."""
    found = SmtpServer(**behaviour)
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda _loop, _context: None)  # hanging up is what some are here for
    secure = certificates.server()

    made: list[SMTP] = []

    def protocol() -> SMTP:
        made.append(_begin())
        return made[-1]

    def _begin() -> SMTP:
        return _Smtp(
            found,
            hostname="mail.example.com",
            data_size_limit=found.size_limit,
            tls_context=secure if found.security == "starttls" else None,
            require_starttls=found.security == "starttls",
            auth_required=found.offer_login,
            auth_require_tls=found.security == "starttls",
            authenticator=_authenticated,
            loop=loop,
        )

    async def start() -> asyncio.Server:
        return await loop.create_server(protocol, "127.0.0.1", 0, ssl=secure if found.security == "tls" else None)

    server = loop.run_until_complete(start())
    found.port = server.sockets[0].getsockname()[1]
    thread = threading.Thread(target=loop.run_forever, name="smtp-server", daemon=True)
    thread.start()
    try:
        yield found
    finally:
        loop.call_soon_threadsafe(_end, loop, server, made)
        thread.join(5)


def _end(loop: asyncio.AbstractEventLoop, server: asyncio.Server, made: list[SMTP]) -> None:
    server.close()
    for one in made:
        if one.transport is not None:
            one.transport.abort()
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.call_later(0.05, loop.stop)


@dataclass(frozen=True)
class ImapServer:
    """A running Dovecot with one mailbox."""

    port: int
    starttls_port: int
    certificates: Certificates

    def client(self) -> imaplib.IMAP4_SSL:
        """Someone else who uses the mailbox."""
        client = imaplib.IMAP4_SSL("127.0.0.1", self.port, ssl_context=self.certificates.trusting(), timeout=20)
        client.login(USER, PASSWORD)
        return client

    def put(self, *messages: bytes, folder: str = "INBOX", flags: str = "", date: str | None = None) -> None:
        """Lays messages into a folder, in order."""
        with self.client() as client:
            client.create(folder)
            for message in messages:
                status, words = client.append(
                    folder, flags, date, message.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
                )
                assert status == "OK", words

    def flags(self, folder: str = "INBOX") -> list[bytes]:
        """The flags of each message."""
        with self.client() as client:
            client.select(folder, readonly=True)
            return [line for line in client.fetch("1:*", "(FLAGS)")[1] if isinstance(line, bytes)]

    def empty(self) -> None:
        """Without mail, and with no folder but the INBOX."""
        with self.client() as client:
            _, count = client.select("INBOX")
            if count[0] != b"0":
                client.store("1:*", "+FLAGS", r"\Deleted")
                client.expunge()
            client.close()
            for line in client.list()[1]:
                name = bytes(line).rsplit(b' "/" ', 1)[-1].decode() if isinstance(line, bytes) else "INBOX"
                if name.strip('"') != "INBOX":
                    client.delete(name)  # one that only leads to others cannot be, and holds nothing


CONFIGURATION = """
protocols = imap
listen = 127.0.0.1
base_dir = {folder}/base
state_dir = {folder}/state
log_path = {folder}/dovecot.log
ssl = yes
ssl_cert = <{chain}
ssl_key = <{chain}
disable_plaintext_auth = no
default_internal_user = {internal}
default_internal_group = {group}
default_login_user = {login}
first_valid_uid = 1
mail_location = maildir:{folder}/mail
mail_max_userip_connections = 100
passdb {{
  driver = passwd-file
  args = scheme=PLAIN username_format=%u {folder}/users
}}
userdb {{
  driver = static
  args = uid={uid} gid={gid} home={folder}/home
}}
namespace inbox {{
  inbox = yes
  separator = /
}}
service anvil {{
  chroot =
}}
service imap-login {{
  chroot =
  inet_listener imap {{
    port = {starttls_port}
  }}
  inet_listener imaps {{
    port = {port}
    ssl = yes
  }}
}}
"""


@contextmanager
def dovecot(certificates: Certificates) -> Iterator[ImapServer]:
    """Dovecot for one mailbox, in a folder of its own."""
    program = shutil.which("dovecot") or shutil.which("dovecot", path="/usr/sbin:/usr/local/sbin")
    if program is None:
        raise ServiceMissing("Dovecot is not installed: apt-get install dovecot-imapd")
    folder = Path(tempfile.mkdtemp(prefix="officina-imap-"))
    folder.chmod(0o755)
    try:
        port, starttls_port = _free_ports(2)
        owner = pwd.getpwnam("nobody") if os.getuid() == 0 else pwd.getpwuid(os.getuid())
        for name in ("mail", "home"):
            (folder / name).mkdir()
            os.chown(folder / name, owner.pw_uid, owner.pw_gid)
        (folder / "users").write_text(f"{USER}:{{PLAIN}}{PASSWORD}\n")
        (folder / "chain.pem").write_bytes(certificates.chain.read_bytes())
        root = os.getuid() == 0
        configuration = CONFIGURATION.format(
            folder=folder,
            chain=folder / "chain.pem",
            internal="dovecot" if root else owner.pw_name,
            group="dovecot" if root else _group(owner.pw_gid),
            login="dovenull" if root else owner.pw_name,
            uid=owner.pw_uid,
            gid=owner.pw_gid,
            port=port,
            starttls_port=starttls_port,
        )
        (folder / "dovecot.conf").write_text(configuration)
        log = folder / "start.log"
        log.touch()
        server = Process([program, "-F", "-c", str(folder / "dovecot.conf")], log=log)
        try:
            found = ImapServer(port, starttls_port, certificates)
            eventually(lambda: _answers(found), 20, 0.1)
            yield found
        finally:
            server.end(5)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _answers(server: ImapServer) -> bool:
    try:
        server.client().logout()
    except OSError:
        return False
    return True


def _group(number: int) -> str:
    import grp

    return grp.getgrgid(number).gr_name


def _free_ports(count: int) -> list[int]:
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports
