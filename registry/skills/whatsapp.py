"""`whatsapp.send`: one message from the connected business number (spec: skills 7.26)."""

import re
from typing import Annotated, Any, Final, NoReturn

from pydantic import AfterValidator, Field, StringConstraints, WithJsonSchema, model_validator

from registry.base import Json, Model
from registry.connections import WhatsappConnection
from registry.errors import Detail, SkillError
from registry.skills import answers
from registry.skills.context import SkillContext
from registry.skills.network import Incoming, Outgoing
from registry.skills.skill import skill

TIMEOUT_S: Final = 15
RECONNECT: Final = "the access token is not good any more: its owner has to connect WhatsApp again"
NOT_WIRED: Final = (
    "no WhatsApp number is connected here: nothing was sent. Its owner adds one as a connection of kind whatsapp"
)
#: Error codes of the Cloud API. Titles and words of theirs change, codes do not.
WINDOW_CLOSED: Final = 131_047
TOKEN_CODES: Final = frozenset({0, 190})
LIMIT_CODES: Final = frozenset({4, 80_007, 130_429, 131_048, 131_056, 133_016})
PARAMETER_CODES: Final = frozenset(
    {33, 100, 131_008, 131_009, 131_021, 131_051, 132_000, 132_001, 132_005, 132_007, 132_012, 132_018, 135_000}
)

_NUMBER = re.compile(r"\+[1-9][0-9]{6,14}")
_BREAKS = re.compile(r"[\n\r\t]| {5,}")


def _number(text: str) -> str:
    # Digits of other scripts pass the library: ASCII first.
    if not _NUMBER.fullmatch(text):
        raise ValueError("is no number in E.164 form such as +48600700800")
    import phonenumbers

    try:
        valid = phonenumbers.is_valid_number(phonenumbers.parse(text))
    except phonenumbers.NumberParseException:
        valid = False
    if not valid:
        raise ValueError("is no number that its country gives out")
    return text


def _text(text: str) -> str:
    if text and not text.strip():
        raise ValueError("is blank")
    return text


def _parameter(text: str) -> str:
    if not text.strip() or _BREAKS.search(text):
        raise ValueError("a parameter is one line with text in it and no more than four blanks in a row")
    return text


Number = Annotated[str, AfterValidator(_number), WithJsonSchema({"type": "string", "pattern": "^\\+[1-9][0-9]{6,14}$"})]


class Template(Model):
    name: Annotated[str, StringConstraints(pattern=r"^[a-z0-9_]{1,512}$")]
    language: Annotated[str, StringConstraints(pattern=r"^[a-z]{2,3}(_[A-Z]{2,4})?$")]
    #: What fills the placeholders of its body, in order.
    params: list[Annotated[str, StringConstraints(min_length=1, max_length=1024), AfterValidator(_parameter)]] = Field(
        default=[], max_length=10
    )


class SendWhatsapp(Model):
    to: Number
    text: Annotated[str, StringConstraints(min_length=1, max_length=4096), AfterValidator(_text)] | None = None
    template: Template | None = Field(default=None, description="an approved template, for people who did not write")
    preview_url: bool = False
    reply_to: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._=+/-]{1,200}$")] | None = Field(
        default=None, description="the messageId of the message this one answers"
    )

    @model_validator(mode="after")
    def _one_content(self) -> "SendWhatsapp":
        if (self.text is None) == (self.template is None):
            raise ValueError("give exactly one of text and template")
        return self


class SentWhatsapp(Model):
    sent: bool
    message_id: str | None = None
    to: str
    #: They took it. Whether it arrives is not known here.
    accepted: bool = False
    wired: bool = True
    note: str | None = None


@skill(
    "whatsapp.send",
    title="Send a WhatsApp message",
    operations=("network", "world"),
    effect="once",
    rate="whatsapp_send",
    timeout_s=TIMEOUT_S,
    needs=("connections", "net"),
)
def send_whatsapp(given: SendWhatsapp, context: SkillContext) -> SentWhatsapp:
    """Sends one WhatsApp message from the business number its owner has connected, after a person said yes to exactly
    this message. `text` reaches only people who wrote in the last 24 hours (else the failure says `window_closed`);
    an approved `template` reaches others. `accepted` is not delivered: whether it arrives is not known here. Sends no
    files and reads nothing. It is never sent twice: after `unknown_delivery` do not try again without asking."""
    number = context.connections.find(context.caller.owner_id, WhatsappConnection) if context.connections else None
    if number is None or context.net is None:
        note = NOT_WIRED if number is None else "no network is wired to this call; nothing was sent"
        return SentWhatsapp(sent=False, to=given.to, wired=False, note=note)
    if number.numbers and given.to not in number.numbers:
        raise SkillError("not_allowed", f"the connection does not allow the number {given.to}; it is bound to others")
    answer = answers.ask(
        Outgoing(
            f"{number.api}/{number.graph_version}/{number.number_id}/messages",
            "POST",
            headers={
                "Content-Type": "application/json",
                "Authorization": f"Bearer {number.token.get_secret_value()}",
            },
            body=answers.body(_message(given)),
            timeout_s=min(TIMEOUT_S, context.deadline.left),
            max_bytes=answers.MAX_ANSWER,
            redirects=0,
            once=True,
        ),
        context,
    )
    return _read(answer, given.to)


def _message(given: SendWhatsapp) -> dict[str, Json]:
    message: dict[str, Json] = {
        "messaging_product": "whatsapp",
        "recipient_type": "individual",
        "to": given.to.removeprefix("+"),
    }
    if given.template is None:
        message |= {"type": "text", "text": {"body": given.text, "preview_url": given.preview_url}}
    else:
        filled: dict[str, Json] = {"name": given.template.name, "language": {"code": given.template.language}}
        if given.template.params:
            texts = [{"type": "text", "text": text} for text in given.template.params]
            filled["components"] = [{"type": "body", "parameters": texts}]
        message |= {"type": "template", "template": filled}
    if given.reply_to is not None:
        message["context"] = {"message_id": given.reply_to}
    return message


def _read(answer: Incoming, to: str) -> SentWhatsapp:
    said = answers.document(answer)
    fault = said.get("error")
    if not answer.ok or isinstance(fault, dict):
        _refused(answer, fault if isinstance(fault, dict) else {})
    messages = said.get("messages")
    first = messages[0] if isinstance(messages, list) and messages and isinstance(messages[0], dict) else {}
    known = first.get("id")
    return SentWhatsapp(
        sent=True, message_id=known[:200] if isinstance(known, str) else None, to=to, accepted=isinstance(known, str)
    )


def _refused(answer: Incoming, fault: dict[str, Any]) -> NoReturn:
    """Their refusal in our codes, told by code and details."""
    code = fault.get("code")
    more = fault.get("error_data")
    details = more.get("details") if isinstance(more, dict) else None
    words = answers.words(details) or answers.words(fault.get("message")) or f"status {answer.status}"
    if code == WINDOW_CLOSED:
        said = "window_closed: they did not write in the last 24 hours; use an approved template. Nothing was sent"
        raise SkillError("remote_error", said, details=[Detail("reason", "window_closed")])
    if code in LIMIT_CODES or (answer.status == 429 and code is None):
        answers.limited(f"WhatsApp takes no more messages now ({words})", None, answer)
    if code in TOKEN_CODES or answer.status == 401:
        raise SkillError("remote_error", RECONNECT)
    if code in PARAMETER_CODES:
        raise SkillError("invalid_input", f"WhatsApp: {words} (code {code}); nothing was sent")
    answers.failed("WhatsApp", answer.status, f"{words}, code {code}" if code is not None else words)


__all__ = ["send_whatsapp"]
