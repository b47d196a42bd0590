"""`telegram.send`: one message through the connected bot (spec: skills 7.25)."""

import re
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal, NoReturn
from urllib.parse import quote

from pydantic import AfterValidator, Field, WithJsonSchema

from registry.base import Json, Model
from registry.connections import TelegramConnection
from registry.errors import Detail, SkillError
from registry.skills import answers
from registry.skills.context import SkillContext
from registry.skills.network import Incoming, Outgoing
from registry.skills.skill import skill

#: UTF-16 units of a message, as Telegram counts them.
MAX_UNITS: Final = 4_096
MAX_CHAT_ID: Final = 2**52
TIMEOUT_S: Final = 15
RECONNECT: Final = "the bot's token is not good any more: its owner has to connect it again"
NOT_WIRED: Final = (
    "no Telegram bot is connected here: nothing was sent. Its owner adds one as a connection of kind telegram"
)
_NAME = re.compile(r"@[A-Za-z][A-Za-z0-9_]{3,31}")
_MODES: Final = {"html": "HTML", "markdown": "MarkdownV2"}


def _text(text: str) -> str:
    if not text.strip():
        raise ValueError("is blank")
    units = len(text.encode("utf-16-le")) // 2
    if units > MAX_UNITS:
        raise ValueError(f"has {units} UTF-16 units, and {MAX_UNITS} is the most; a message is never split")
    return text


def _chat(chat: int | str) -> int | str:
    if isinstance(chat, int):
        if not 0 < abs(chat) <= MAX_CHAT_ID:
            raise ValueError("is no chat id")
    elif not _NAME.fullmatch(chat):
        raise ValueError("is no chat: give its number, or the @name of a public one")
    return chat


Chat = Annotated[
    int | str,
    AfterValidator(_chat),
    WithJsonSchema({"type": ["integer", "string"], "description": "a chat's number, or the @name of a public one"}),
]


class SendTelegram(Model):
    text: Annotated[
        str, AfterValidator(_text), WithJsonSchema({"type": "string", "minLength": 1, "maxLength": MAX_UNITS})
    ]
    chat_id: Chat | None = Field(default=None, description="the connection's own chat when left out")
    format: Literal["plain", "html", "markdown"] = Field(
        default="plain", description="html: b, i, u, s, a, code, pre. markdown: Telegram's MarkdownV2"
    )
    silent: bool = False
    disable_preview: bool = True
    reply_to_message_id: int | None = Field(default=None, ge=1, le=2**31 - 1)


class SentTelegram(Model):
    sent: bool
    message_id: int | None = None
    chat_id: int | str | None = None
    #: When Telegram took it, ISO 8601.
    date: str | None = None
    wired: bool = True
    note: str | None = None


@skill(
    "telegram.send",
    title="Send a Telegram message",
    operations=("network", "world"),
    effect="once",
    rate="telegram_send",
    timeout_s=TIMEOUT_S,
    needs=("connections", "net"),
)
def send_telegram(given: SendTelegram, context: SkillContext) -> SentTelegram:
    """Sends one Telegram message through the bot its owner has connected, after a person said yes to exactly this
    message: at most 4,096 UTF-16 units, never split. Without chatId it goes to the connection's own chat; a connection
    may be bound to chats, others are refused. Sends no files and reads nothing. It is never sent twice: after
    `unknown_delivery` do not try again without asking."""
    bot = context.connections.find(context.caller.owner_id, TelegramConnection) if context.connections else None
    if bot is None or context.net is None:
        note = NOT_WIRED if bot is None else "no network is wired to this call; nothing was sent"
        return SentTelegram(sent=False, wired=False, note=note)
    chat = _allowed(given.chat_id if given.chat_id is not None else bot.chat_id, bot)
    token = quote(bot.token.get_secret_value(), safe=":")
    answer = answers.ask(
        Outgoing(
            f"{bot.api}/bot{token}/sendMessage",
            "POST",
            headers={"Content-Type": "application/json"},
            body=answers.body(_message(given, chat)),
            timeout_s=min(TIMEOUT_S, context.deadline.left),
            max_bytes=answers.MAX_ANSWER,
            redirects=0,
            once=True,
        ),
        context,
    )
    return _read(answer, chat)


def _allowed(chat: int | str | None, bot: TelegramConnection) -> int | str:
    if chat is None:
        words = "the connection names no chat of its own: say which"
        raise SkillError("invalid_input", f"chatId: {words}", details=[Detail("chatId", words)])
    bound = {_folded(one) for one in bot.chats}
    if bound and _folded(chat) not in bound | ({_folded(bot.chat_id)} if bot.chat_id is not None else set()):
        raise SkillError("not_allowed", f"the connection does not allow the chat {chat}; it is bound to others")
    return chat


def _folded(chat: int | str) -> str:
    return str(chat).casefold()


def _message(given: SendTelegram, chat: int | str) -> dict[str, Json]:
    message: dict[str, Json] = {
        "chat_id": chat,
        "text": given.text,
        "disable_notification": given.silent,
        "link_preview_options": {"is_disabled": given.disable_preview},
    }
    if given.format in _MODES:
        message["parse_mode"] = _MODES[given.format]
    if given.reply_to_message_id is not None:
        message["reply_parameters"] = {"message_id": given.reply_to_message_id}
    return message


def _read(answer: Incoming, chat: int | str) -> SentTelegram:
    said = answers.document(answer)
    if not answer.ok or said.get("ok") is not True:
        _refused(answer, said)
    result = said.get("result")
    made: dict[str, Any] = result if isinstance(result, dict) else {}
    number, when, where = made.get("message_id"), made.get("date"), made.get("chat")
    return SentTelegram(
        sent=True,
        message_id=number if isinstance(number, int) else None,
        chat_id=where["id"] if isinstance(where, dict) and isinstance(where.get("id"), int) else chat,
        date=_moment(when),
    )


def _moment(when: Json) -> str | None:
    try:
        return datetime.fromtimestamp(when, UTC).isoformat() if isinstance(when, int) else None
    except (OverflowError, ValueError, OSError):
        return None


def _refused(answer: Incoming, said: dict[str, Any]) -> NoReturn:
    """Their refusal in our codes; every one of them means that the message was not sent."""
    status = answer.status if not answer.ok else said.get("error_code")
    words = answers.words(said.get("description")) or f"status {status}"
    more = said.get("parameters")
    more = more if isinstance(more, dict) else {}
    if status == 429:
        answers.limited("Telegram takes no more messages now", more.get("retry_after"), answer)
    if status in (401, 404):
        raise SkillError("remote_error", RECONNECT)
    if status == 400:
        moved = more.get("migrate_to_chat_id")
        if isinstance(moved, int):
            words += f" (the chat has become {moved})"
        raise SkillError("invalid_input", f"Telegram: {words}; nothing was sent")
    if status == 403:
        raise SkillError("remote_error", f"Telegram: {words}; nothing was sent")
    answers.failed("Telegram", status, words)


__all__ = ["send_telegram"]
