"""Sending one message by SMTP (RFC 5321), so that it is known afterwards what became of it.

Up to the reply to DATA nothing has been delivered and every fault says so. From the first byte of the message to the
server's word about it, a broken connection leaves the delivery unknown: it is never tried again here.
"""

import base64
import re
import smtplib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, NoReturn

from registry import masking
from registry.connections import EmailConnection, MailServer
from registry.errors import Detail, SkillError
from registry.skills.context import SkillContext
from registry.skills.mail.texts import one_line
from registry.skills.mail.wire import Line, explain

#: How we greet a server: the name of the machine is nobody's business.
GREETING: Final = "[127.0.0.1]"
RECONNECT: Final = "its owner has to connect it again"
_LEADING_DOT = re.compile(rb"^\.", re.MULTILINE)


@dataclass(frozen=True)
class Delivery:
    """What the server took: for whom, and for whom not and why."""

    accepted: list[str]
    rejected: list[tuple[str, str]]


def deliver(
    mailbox: EmailConnection,
    server: MailServer,
    sender: str,
    recipients: Sequence[str],
    message: bytes,
    context: SkillContext,
) -> Delivery:
    """Hands the message over for everybody the server takes it for.

    Args:
        message: with CRLF line ends.

    Raises:
        SkillError: `remote_error`, `too_large`, `network_error`, `timeout`, `cancelled`: nothing was delivered;
            `unknown_delivery`: it may have been.
    """
    talk = None
    try:
        line = Line(context, server)
        with line.watched():
            talk = _Talk(line, context)
            talk.open()
            talk.login(mailbox.username, mailbox.password.get_secret_value())
            delivery = talk.envelope(sender, recipients, len(message))
            context.check()
            talk.hand_over(message)
            return delivery
    except (OSError, smtplib.SMTPException, ValueError) as error:  # ValueError: a reply that is no SMTP
        if talk is not None and talk.leaving:
            words = "the connection broke after the message had left: it may have been delivered, or not"
            raise SkillError("unknown_delivery", f"{words}; do not send it again without asking") from None
        raise explain(error, server, context) from None


class _Talk:
    """The commands of one delivery, in order."""

    def __init__(self, line: Line, context: SkillContext) -> None:
        self._line = line
        self._context = context
        self._smtp = smtplib.SMTP(local_hostname=GREETING)
        self._smtp.sock = line.sock
        #: Bytes of the message may be under way.
        self.leaving = False

    def open(self) -> None:
        """Greeting, and TLS before anything else is said."""
        code, words = self._smtp.getreply()
        if code != 220:
            self._refused("does not take connections now", code, words)
        self._hello()
        if self._line.server.security == "starttls":
            self._encrypt()
            self._hello()

    def login(self, username: str, password: str) -> None:
        methods = str(self._smtp.esmtp_features.get("auth", "")).upper().split()
        secret, alone = (
            base64.b64encode(text.encode()).decode("ascii") for text in (f"\0{username}\0{password}", password)
        )
        for form in (secret, alone):  # a server may repeat what it was told, in the form it was told
            masking.remember(form)
        try:
            if "PLAIN" in methods:
                code, words = self._smtp.docmd("AUTH", f"PLAIN {secret}")
                accepted = code in (235, 503)
            else:
                self._smtp.login(username, password)
                accepted, code, words = True, 235, b""
        except smtplib.SMTPAuthenticationError as error:
            accepted, code, words = False, error.smtp_code, _bytes(error.smtp_error)
        except (smtplib.SMTPNotSupportedError, UnicodeError):
            host = self._line.server.host
            raise SkillError("remote_error", f"{host} offers no login that we know; nothing was sent") from None
        if not accepted:
            self._refused(f"refused the login; {RECONNECT}", code, words)

    def envelope(self, sender: str, recipients: Sequence[str], size: int) -> Delivery:
        """Sender and recipients; those the server refuses are named, and all of them refused is an error."""
        limit = str(self._smtp.esmtp_features.get("size", ""))
        if limit.isdigit() and 0 < int(limit) < size:
            raise SkillError("too_large", f"the message has {size} bytes, and the server takes {limit}")
        code, words = self._smtp.mail(sender, [f"size={size}"] if limit else [])
        if code != 250:
            self._refused("refused the sender", code, words)
        accepted, rejected = [], []
        for address in recipients:
            self._context.check()
            code, words = self._smtp.rcpt(address)
            if code in (250, 251):
                accepted.append(address)
            else:
                rejected.append((address, _reply(code, words)))
            if code == 421:  # it is about to hang up, and takes nothing from here on
                self._refused("ended the conversation", code, words)
        if not accepted:
            details = [Detail(address, reason) for address, reason in rejected[:10]]
            raise SkillError("remote_error", "the server refused every recipient; nothing was sent", details=details)
        return Delivery(accepted, rejected)

    def hand_over(self, message: bytes) -> None:
        code, words = self._smtp.docmd("DATA")
        if code != 354:
            self._refused("refused the message", code, words)
        self.leaving = True
        body = _LEADING_DOT.sub(b"..", message)
        self._smtp.send(body + (b"" if body.endswith(b"\r\n") else b"\r\n") + b".\r\n")
        code, words = self._smtp.getreply()
        self.leaving = code < 0  # no reply at all; any other one is the server's word
        if self.leaving:
            raise smtplib.SMTPServerDisconnected("no reply")
        if code != 250:
            self._refused("refused the message", code, words)
        with suppress(OSError, smtplib.SMTPException):  # it has the message, whatever becomes of the good-bye
            self._smtp.docmd("QUIT")

    def _hello(self) -> None:
        code, words = self._smtp.ehlo()
        if code != 250:
            self._refused("does not speak extended SMTP, which TLS needs", code, words)

    def _encrypt(self) -> None:
        if not self._smtp.has_extn("starttls"):
            words = "offers no TLS, and mail is sent by nothing less; nothing was sent"
            raise SkillError("remote_error", f"{self._line.server.host} {words}")
        code, words_ = self._smtp.docmd("STARTTLS")
        if code != 220:
            self._refused("refused TLS", code, words_)
        self._line.encrypt()
        # What it said before, and what came in clear behind the command, counts no more.
        self._smtp.sock, self._smtp.file = self._line.sock, None
        self._smtp.ehlo_resp = self._smtp.helo_resp = None
        self._smtp.esmtp_features = {}
        self._smtp.does_esmtp = False

    def _refused(self, what: str, code: int, words: bytes) -> NoReturn:
        reply = _reply(code, words)
        raise SkillError("remote_error", f"{self._line.server.host} {what} ({reply}); nothing was sent")


def _reply(code: int, words: bytes) -> str:
    return one_line(f"{code} {_bytes(words).decode('utf-8', 'replace')}", 200)


def _bytes(words: bytes | str) -> bytes:
    return words if isinstance(words, bytes) else words.encode()


__all__ = ["RECONNECT", "Delivery", "deliver"]
