"""`email.send`: one message from the connected mailbox (spec: skills 7.24)."""

import hashlib
import mimetypes
import re
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from registry.base import Model
from registry.errors import Detail, SkillError
from registry.ids import new_id
from registry.skills.context import SkillContext, Workspace
from registry.skills.mail import addresses
from registry.skills.mail.addresses import Address
from registry.skills.paths import WorkspacePath
from registry.skills.skill import skill
from registry.text import one_line

if TYPE_CHECKING:
    from registry.connections import EmailConnection

MAX_TEXT_BYTES: Final = 100 * 1024
MAX_HTML_BYTES: Final = 200 * 1024
MAX_RECIPIENTS: Final = 20
MAX_ATTACHED_BYTES: Final = 10 * 1024 * 1024
NOT_WIRED: Final = "no mailbox is connected here: nothing was sent. Its owner adds one as a connection of kind email"
#: Seven-bit transport everywhere; a server need promise nothing else.
_POLICY: Final = SMTP.clone(cte_type="7bit")
_MESSAGE_ID = re.compile(r"<[!#$%&'*+/=?^_`{|}~A-Za-z0-9.\-]{1,150}@[\[\]!#$%&'*+/=?^_`{|}~A-Za-z0-9.:\-]{1,95}>")


def _subject(text: str) -> str:
    return one_line(text).strip()


def _sized(limit: int) -> AfterValidator:
    def judge(text: str) -> str:
        if (size := len(text.encode())) > limit:
            raise ValueError(f"has {size} bytes, and {limit} is the most")
        if "\0" in text:
            raise ValueError("holds a NUL character")
        return text

    return AfterValidator(judge)


def _message_id(text: str) -> str:
    if not _MESSAGE_ID.fullmatch(text):
        raise ValueError("is no message id such as <abc@example.com>")
    return text


class SendEmail(Model):
    to: list[Address] = Field(min_length=1, max_length=10)
    cc: list[Address] = Field(default=[], max_length=10)
    bcc: list[Address] = Field(default=[], max_length=10)
    subject: Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_subject)]
    text: Annotated[str, StringConstraints(min_length=1), _sized(MAX_TEXT_BYTES)] = Field(
        description="plain text, at most 100 KiB"
    )
    html: Annotated[str, _sized(MAX_HTML_BYTES)] = Field(
        default="", description="the same as HTML, at most 200 KiB; scripts, forms and styles are taken out"
    )
    reply_to: Address | None = None
    in_reply_to: Annotated[str, StringConstraints(max_length=250), AfterValidator(_message_id)] | None = Field(
        default=None, description="the messageId of the message this one answers"
    )
    attachments: list[WorkspacePath] = Field(default=[], max_length=5)

    @model_validator(mode="after")
    def _recipients(self) -> "SendEmail":
        everybody = [*self.to, *self.cc, *self.bcc]
        if len(everybody) > MAX_RECIPIENTS:
            raise ValueError(f"to, cc and bcc name {len(everybody)} addresses, and {MAX_RECIPIENTS} is the most")
        if len({addresses.same(one) for one in everybody}) != len(everybody):
            raise ValueError("an address stands twice in to, cc and bcc")
        if len(set(self.attachments)) != len(self.attachments):
            raise ValueError("a file stands twice in attachments")
        return self


class RejectedAddress(Model):
    address: str
    reason: str


class SentEmail(Model):
    sent: bool
    message_id: str | None = None
    #: Addresses the mail server took the message for; that it arrives there is for their servers to say.
    accepted: list[str] = Field(default_factory=list)
    rejected: list[RejectedAddress] = Field(default_factory=list)
    wired: bool = True
    note: str | None = None


@skill(
    "email.send",
    title="Send e-mail",
    operations=("network", "world"),
    effect="once",
    rate="email_send",
    timeout_s=30,
    loads=("registry.skills.mail.smtp", "nh3"),
    needs=("connections", "workspace"),
)
def send_email(given: SendEmail, context: SkillContext) -> SentEmail:
    """Sends one e-mail from the mailbox its owner has connected, after a person said yes to exactly this message: at
    most 20 recipients, plain text and, if given, HTML, up to 5 workspace files of 10 MiB together. The sender is the
    mailbox's own address. `sent` means that its server took the message; `rejected` names recipients it refused. It is
    never sent twice: after `unknown_delivery` do not try again without asking."""
    from registry.connections import EmailConnection

    mailbox = context.connections.find(context.caller.owner_id, EmailConnection) if context.connections else None
    if mailbox is None or mailbox.smtp is None:
        note = NOT_WIRED if mailbox is None else "the connected mailbox has no SMTP server: nothing was sent"
        return SentEmail(sent=False, wired=False, note=note)
    if given.attachments and context.workspace is None:
        return SentEmail(sent=False, wired=False, note="no workspace is wired to this call; nothing was sent")
    sender = mailbox.address
    message = _written(given, mailbox, sender, context)
    if context.workspace is not None:
        _attach(message, given.attachments, context.workspace)
    context.check()
    from registry.skills.mail import smtp

    everybody = [*given.to, *given.cc, *given.bcc]
    delivery = smtp.deliver(mailbox, mailbox.smtp, sender, everybody, message.as_bytes(), context)
    return SentEmail(
        sent=True,
        message_id=str(message["Message-ID"]),
        accepted=delivery.accepted,
        rejected=[RejectedAddress(address=address, reason=reason) for address, reason in delivery.rejected],
    )


def _written(given: SendEmail, mailbox: "EmailConnection", sender: str, context: SkillContext) -> EmailMessage:
    """The message without its attachments. Who is in bcc stands nowhere in it."""
    message = EmailMessage(policy=_POLICY)
    message["From"] = _named(mailbox.name, sender)
    message["To"] = ", ".join(given.to)
    if given.cc:
        message["Cc"] = ", ".join(given.cc)
    if given.reply_to:
        message["Reply-To"] = given.reply_to
    message["Subject"] = given.subject
    message["Date"] = format_datetime(datetime.fromtimestamp(context.now_ms() / 1000, UTC))
    message["Message-ID"] = _own_id(sender, context)
    if given.in_reply_to:
        message["In-Reply-To"] = given.in_reply_to
        message["References"] = given.in_reply_to
    message.set_content(given.text)
    if html := _sanitised(given.html):
        message.add_alternative(html, subtype="html")
    return message


def _named(name: str | None, address: str) -> object:
    from email.headerregistry import Address as HeaderAddress

    return HeaderAddress(display_name=name or "", addr_spec=address)


def _own_id(sender: str, context: SkillContext) -> str:
    """The same for the same call, so that copies of one message can be told from two messages."""
    caller = context.caller
    key = "\n".join(map(str, (caller.owner_id, caller.project_id, caller.run_id, caller.call_id or new_id())))
    return f"<{hashlib.sha256(key.encode()).hexdigest()[:40]}@{sender.rpartition('@')[2]}>"


def _sanitised(html: str) -> str:
    """HTML without anything that acts: no scripts, forms, styles, frames, no pictures that tell who looked."""
    if not html.strip():
        return ""
    import nh3

    from registry.skills.mail.page import is_hostile

    if is_hostile(html):
        message = "html nests too deep or has a tag that is too long; send it simpler"
        raise SkillError("invalid_input", message, details=[Detail("html", message)])
    cleaned = nh3.clean(html, tags=nh3.ALLOWED_TAGS - {"img"}, url_schemes={"http", "https", "mailto"})
    return cleaned if cleaned.strip() else ""


def _attach(message: EmailMessage, paths: list[str], workspace: Workspace) -> None:
    left = MAX_ATTACHED_BYTES
    for path in paths:
        try:
            content = workspace.read(path, max_bytes=left)
        except SkillError as error:
            if error.code != "too_large":
                raise
            words = f"the attachments have more than {MAX_ATTACHED_BYTES} bytes together; {path!r} does not fit"
            raise SkillError("too_large", words, details=[Detail("attachments", words)]) from None
        left -= len(content)
        guessed, packed = mimetypes.guess_type(path)
        kind = guessed if guessed and not packed else "application/octet-stream"
        main, _, sub = kind.partition("/")
        if main in ("message", "multipart"):  # such parts have rules of their own, and a file is a file
            main, sub = "application", "octet-stream"
        message.add_attachment(content, maintype=main, subtype=sub, filename=path.rsplit("/", 1)[-1])


__all__ = ["send_email"]
