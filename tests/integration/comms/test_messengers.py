"""telegram.send and whatsapp.send against stubs of their services, through the real guard (spec: skills 7.25, 7.26)."""

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import SecretStr

from registry.connections import TelegramConnection, WhatsappConnection
from registry.skills.registry import SkillResult
from tests import stub_messengers
from tests.integration.comms.conftest import Desk
from tests.stub_messengers import BEARER, NUMBER_ID, TOKEN, Messenger
from workers.net.guard import Guard

NUMBER = "+48600700800"


@pytest.fixture
def service(desk: Desk) -> Iterator[Messenger]:
    with stub_messengers.serving() as found:
        desk.net = Guard(allow=[("127.0.0.1", found.port)])
        desk.connected = [bot(found), number(found)]
        yield found


def bot(service: Messenger, **changes: Any) -> TelegramConnection:
    values: dict[str, Any] = {"chat_id": 42, "api": service.origin, "token": SecretStr(TOKEN)}
    return TelegramConnection(**(values | changes))


def number(service: Messenger, **changes: Any) -> WhatsappConnection:
    values: dict[str, Any] = {"number_id": NUMBER_ID, "api": service.origin, "token": SecretStr(BEARER)}
    return WhatsappConnection(**(values | changes))


def telegram(desk: Desk, text: str = "Hi", **changes: Any) -> SkillResult:
    return desk.call("telegram.send", {"text": text} | changes)


def whatsapp(desk: Desk, **changes: Any) -> SkillResult:
    return desk.call("whatsapp.send", {"to": NUMBER, "text": "Hi"} | changes)


def test_a_telegram_message_goes_to_the_chat_of_the_connection(desk: Desk, service: Messenger) -> None:
    result = telegram(desk, "Zażółć 😀", silent=True, disablePreview=False, replyToMessageId=7)

    assert result.ok, result.error
    assert result.output == {
        "sent": True,
        "messageId": 1,
        "chatId": 42,
        "date": "2026-09-21T14:13:20+00:00",
        "wired": True,
        "note": None,
    }
    assert service.delivered == [
        {
            "chat_id": 42,
            "text": "Zażółć 😀",
            "disable_notification": True,
            "link_preview_options": {"is_disabled": False},
            "reply_parameters": {"message_id": 7},
        }
    ]


@pytest.mark.parametrize(
    ("format_", "text", "good"),
    [
        ("plain", "<b>as it is</b> *and* [this", True),
        ("html", "<b>bold</b> <a href='https://example.com'>x</a>", True),
        ("html", "<div>no</div>", False),
        ("markdown", "*bold* and done\\.", True),
        ("markdown", "not escaped.", False),
    ],
)
def test_telegram_reads_formats_and_its_words_come_back(
    desk: Desk, service: Messenger, format_: str, text: str, good: bool
) -> None:
    result = telegram(desk, text, format=format_)

    assert result.ok is good
    if not good:
        assert result.code == "invalid_input"
        assert "can't parse entities" in str(result.error)
        assert service.delivered == []


@pytest.mark.parametrize(
    ("changes", "chat", "code"),
    [
        ({"chat_id": None}, None, "invalid_input"),
        ({"chat_id": None}, 5, None),
        ({"chats": (5, "@News_Channel")}, 5, None),
        ({"chats": (5, "@News_Channel")}, "@news_channel", None),
        ({"chats": (5, "@News_Channel")}, None, None),
        ({"chats": (5, "@News_Channel")}, 6, "not_allowed"),
        ({"chats": (5, "@News_Channel")}, "@other_channel", "not_allowed"),
        ({"chats": (5,), "chat_id": None}, -5, "not_allowed"),
    ],
)
def test_a_connection_may_bind_chats(
    desk: Desk, service: Messenger, changes: dict[str, Any], chat: int | str | None, code: str | None
) -> None:
    desk.connected = [bot(service, **changes)]

    result = telegram(desk, **({} if chat is None else {"chatId": chat}))

    assert result.code == code
    assert len(service.requests) == (code is None)


def test_telegram_refusals_have_our_codes(desk: Desk, service: Messenger) -> None:
    service.unknown, service.blocked, service.moved = {1}, {2}, {3: -100_300}

    refused = [telegram(desk, chatId=chat) for chat in (1, 2, 3)]

    assert [one.code for one in refused] == ["invalid_input", "remote_error", "invalid_input"]
    assert "chat not found" in str(refused[0].error)
    assert "blocked by the user" in str(refused[1].error)
    assert "-100300" in str(refused[2].error)
    assert not any(one.retryable for one in refused)


@pytest.mark.parametrize("token", ["987654321:AAanother_token_of_the_right_shape0", "broken"])
def test_a_token_that_is_no_good_asks_to_reconnect(desk: Desk, service: Messenger, token: str) -> None:
    desk.connected = [bot(service, token=SecretStr(token))]

    result = telegram(desk)

    assert result.code == "remote_error"
    assert "connect it again" in str(result.error)


def test_telegrams_limit_says_how_long_to_wait(desk: Desk, service: Messenger) -> None:
    service.retry_after = 35

    result = telegram(desk)

    assert (result.code, result.retryable) == ("rate_limited", True)
    assert [one.to_json() for one in result.details] == [{"path": "retryAfter", "message": "35"}]


def test_a_whatsapp_text_is_accepted(desk: Desk, service: Messenger) -> None:
    result = whatsapp(desk, previewUrl=True, replyTo="wamid.HBgLold==")

    assert result.ok, result.error
    assert result.output == {
        "sent": True,
        "messageId": "wamid.HBgL00000001",
        "to": NUMBER,
        "accepted": True,
        "wired": True,
        "note": None,
    }
    assert service.delivered[0]["text"] == {"body": "Hi", "preview_url": True}
    assert service.delivered[0]["context"] == {"message_id": "wamid.HBgLold=="}
    assert service.requests[0]["path"] == f"/v23.0/{NUMBER_ID}/messages"


def test_a_whatsapp_template_is_filled(desk: Desk, service: Messenger) -> None:
    template = {"name": "order_sent", "language": "en_US", "params": ["Ann", "12"]}

    assert whatsapp(desk, text=None, template=template).output["accepted"] is True
    missing = whatsapp(desk, text=None, template=template | {"params": []})
    unknown = whatsapp(desk, text=None, template={"name": "nope", "language": "en_US"})

    assert (missing.code, unknown.code) == ("invalid_input", "invalid_input")
    assert "does not match" in str(missing.error)
    assert len(service.delivered) == 1


def test_outside_the_window_the_advice_is_a_template(desk: Desk, service: Messenger) -> None:
    service.open_windows = {"48111222333"}

    result = whatsapp(desk)

    assert (result.code, result.retryable) == ("remote_error", False)
    assert str(result.error).startswith("window_closed")
    assert "template" in str(result.error)


@pytest.mark.parametrize(
    ("status", "code", "ours"),
    [
        (401, 190, "remote_error"),
        (400, 0, "remote_error"),
        (429, 130_429, "rate_limited"),
        (400, 131_056, "rate_limited"),
        (400, 80_007, "rate_limited"),
        (400, 131_008, "invalid_input"),
        (400, 132_012, "invalid_input"),
        (400, 131_026, "remote_error"),
        (403, 131_031, "remote_error"),
        (500, 131_000, "remote_error"),
        (503, 131_016, "remote_error"),
    ],
)
def test_whatsapp_refusals_are_told_by_their_code(
    desk: Desk, service: Messenger, status: int, code: int, ours: str
) -> None:
    service.fault = {"status": status, "code": code}

    result = whatsapp(desk)

    assert result.code == ours
    assert "A title" not in str(result.error)
    assert result.retryable is (ours == "rate_limited")


def test_a_connection_may_bind_numbers(desk: Desk, service: Messenger) -> None:
    desk.connected = [number(service, numbers=("+48111222333",))]

    assert whatsapp(desk).code == "not_allowed"
    assert service.requests == []


@pytest.mark.parametrize("send", [telegram, whatsapp])
class TestBoth:
    def test_an_answer_that_never_comes_leaves_the_delivery_unknown(
        self, desk: Desk, service: Messenger, send: Any
    ) -> None:
        service.instead = "drop"

        result = send(desk)

        assert (result.code, result.retryable) == ("unknown_delivery", False)
        assert len(service.requests) == 1

    @pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"\xff", b'{"a": 1, "a": 2}'])
    def test_an_answer_nobody_can_read_leaves_it_unknown(
        self, desk: Desk, service: Messenger, send: Any, body: bytes
    ) -> None:
        service.instead = (200, body)

        assert send(desk).code == "unknown_delivery"

    def test_a_failing_server_is_asked_once(self, desk: Desk, service: Messenger, send: Any) -> None:
        service.instead = (502, b"<html>bad gateway</html>")

        result = send(desk)

        assert (result.code, result.retryable) == ("remote_error", False)
        assert "may have been sent" in str(result.error)
        assert len(service.requests) == 1

    def test_a_redirect_is_not_followed_with_the_token(self, desk: Desk, service: Messenger, send: Any) -> None:
        service.instead = (307, b"{}")

        assert send(desk).code == "remote_error"
        assert len(service.requests) == 1

    def test_a_private_address_is_refused(self, desk: Desk, service: Messenger, send: Any) -> None:
        desk.net = Guard()

        assert send(desk).code == "network_blocked"
        assert service.requests == []

    def test_no_answer_shows_the_token(self, desk: Desk, service: Messenger, send: Any) -> None:
        shown = [send(desk)]
        service.instead = (502, TOKEN.encode() + BEARER.encode())
        shown.append(send(desk))
        service.instead = "drop"
        shown.append(send(desk))

        assert "canary" not in str([one.to_json() for one in shown])
