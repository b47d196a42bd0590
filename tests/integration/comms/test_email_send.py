"""email.send against a real SMTP server (spec: skills 7.24)."""

import base64
import email
import email.policy
import threading
import time
from collections.abc import Callable
from email.message import EmailMessage
from typing import Any

import pytest
from pydantic import SecretStr

from registry.connections import MailServer
from registry.skills.context import Caller
from registry.skills.registry import SkillResult
from tests.integration.comms.conftest import Desk, mailbox
from tests.mail_servers import PASSWORD, USER, SmtpServer
from tests.support import eventually

# aiosmtpd sees no TLS where the socket is encrypted from the first byte.
pytestmark = pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS:UserWarning")
Start = Callable[..., SmtpServer]
MAIL: dict[str, Any] = {"to": ["bob@example.com"], "subject": "Hello", "text": "How are you?\n"}


def send(desk: Desk, server: SmtpServer, changes: dict[str, Any] | None = None, **context: Any) -> SkillResult:
    desk.connected = [mailbox(smtp=server)]
    return desk.call("email.send", MAIL | (changes or {}), **context)


def read(server: SmtpServer) -> EmailMessage:
    (envelope,) = server.taken
    assert isinstance(envelope.original_content, bytes)
    found = email.message_from_bytes(envelope.original_content, policy=email.policy.default)
    assert isinstance(found, EmailMessage)
    return found


@pytest.mark.parametrize("security", ["tls", "starttls"])
def test_a_message_arrives_as_it_was_written(desk: Desk, smtp_server: Start, security: str) -> None:
    server = smtp_server(security=security)
    (desk.folder / "zażółć.pdf").write_bytes(b"%PDF-1.7 \x00\xff")
    changes = {
        "to": ["bob@example.com", "Cleo@Example.COM"],
        "cc": ["dan@example.com"],
        "bcc": ["eve@example.com"],
        "subject": "Zażółć gęślą jaźń " + "é" * 120,
        "text": ".one dot\n..two\n" + "long " * 400 + "\nZażółć\n",
        "html": "<p>Hello <b>you</b></p>",
        "replyTo": "office@example.com",
        "inReplyTo": "<earlier@example.com>",
        "attachments": ["zażółć.pdf"],
    }
    desk.connected = [mailbox(smtp=server, name="Ann Example, Ltd")]

    result = desk.call("email.send", MAIL | changes)

    assert result.ok, result.error
    everybody = ["bob@example.com", "Cleo@example.com", "dan@example.com", "eve@example.com"]
    assert result.output["sent"] is True
    assert (result.output["accepted"], result.output["rejected"]) == (everybody, [])
    message = read(server)
    assert (server.taken[0].mail_from, server.taken[0].rcpt_tos) == (USER, everybody)
    assert message["From"] == '"Ann Example, Ltd" <ann@example.com>'
    assert (message["To"], message["Cc"]) == ("bob@example.com, Cleo@example.com", "dan@example.com")
    assert (message["Subject"], message["Reply-To"]) == (changes["subject"], "office@example.com")
    assert (message["In-Reply-To"], message["References"]) == ("<earlier@example.com>", "<earlier@example.com>")
    assert message["Message-ID"] == result.output["messageId"]
    plain, html = message.get_body(("plain",)), message.get_body(("html",))
    assert plain is not None and plain.get_content().replace("\r\n", "\n") == changes["text"]
    assert html is not None and html.get_content().strip() == changes["html"]
    (attached,) = message.iter_attachments()
    assert (attached.get_filename(), attached.get_content()) == ("zażółć.pdf", b"%PDF-1.7 \x00\xff")
    assert b"eve@" not in bytes(server.taken[0].original_content or b"")


def test_the_message_id_comes_from_the_call(desk: Desk, smtp_server: Start) -> None:
    server = smtp_server()

    first, again = send(desk, server), send(desk, server)
    other = send(desk, server, caller=Caller("run", run_id="run-1", call_id="call-2"))

    ids = [result.output["messageId"] for result in (first, again, other)]
    assert ids[0] == ids[1] != ids[2]


def test_html_leaves_without_anything_that_acts(desk: Desk, smtp_server: Start) -> None:
    server = smtp_server()
    html = (
        "<p onclick='x()'>Hi</p><script>steal()</script><img src='https://spy.example.com/p.gif'>"
        "<form action='https://evil.example.com'><input name=a></form><a href='javascript:x()'>j</a>"
        "<a href='https://example.com/'>good</a><iframe src='https://evil.example.com'></iframe>"
    )

    assert send(desk, server, {"html": html}).ok

    part = read(server).get_body(("html",))
    assert part is not None
    sent = part.get_content()
    assert "Hi" in sent and 'href="https://example.com/"' in sent
    assert not any(word in sent for word in ("script", "onclick", "steal", "img", "form", "input", "iframe", "spy"))


def test_without_a_mailbox_nothing_is_sent_and_the_answer_says_so(desk: Desk) -> None:
    for connected in ([], [mailbox()]):
        desk.connected = connected
        result = desk.call("email.send", MAIL)

        assert result.ok
        assert (result.output["sent"], result.output["wired"], result.output["messageId"]) == (False, False, None)
        assert "nothing was sent" in result.output["note"]


def test_recipients_the_server_refuses_are_named(desk: Desk, smtp_server: Start) -> None:
    server = smtp_server(replies={"nobody@example.com": "550 5.1.1 no such user", "busy@example.com": "451 later"})

    result = send(desk, server, {"to": ["bob@example.com", "nobody@example.com"], "cc": ["busy@example.com"]})

    assert result.ok, result.error
    assert (result.output["sent"], result.output["accepted"]) == (True, ["bob@example.com"])
    assert result.output["rejected"] == [
        {"address": "nobody@example.com", "reason": "550 5.1.1 no such user"},
        {"address": "busy@example.com", "reason": "451 later"},
    ]
    assert server.taken[0].rcpt_tos == ["bob@example.com"]


def test_a_server_that_repeats_the_login_does_not_give_the_password_away(desk: Desk, smtp_server: Start) -> None:
    forms = [base64.b64encode(text.encode()).decode() for text in (f"\0{USER}\0{PASSWORD}", PASSWORD)]
    result = send(desk, smtp_server(data_reply=f"554 you said {' '.join(forms)}"))
    assert result.code == "remote_error" and "you said *** ***" in str(result.error)


@pytest.mark.parametrize(
    ("behaviour", "code", "words"),
    [
        ({"replies": {"bob@example.com": "550 no such user"}}, "remote_error", "refused every recipient"),
        ({"replies": {"bob@example.com": "451 try later"}}, "remote_error", "refused every recipient"),
        ({"replies": {USER: "550 not you"}}, "remote_error", "refused the sender"),
        ({"data_reply": "554 looks like spam"}, "remote_error", "looks like spam"),
        ({"data_reply": "452 no room"}, "remote_error", "no room"),
        ({"drop_at": "MAIL"}, "network_error", "broke"),
        ({"drop_at": "RCPT"}, "network_error", "broke"),
        ({"drop_at": "DATA"}, "network_error", "broke"),
        ({"size_limit": 100}, "too_large", "bytes"),
        ({"offer_login": False}, "remote_error", "no login"),
        ({"security": "none"}, "remote_error", "offers no TLS"),
    ],
)
def test_what_the_server_refuses_was_not_sent(
    desk: Desk, smtp_server: Start, behaviour: dict[str, Any], code: str, words: str
) -> None:
    server = smtp_server(**behaviour)

    result = send(desk, server)

    assert (result.ok, result.code) == (False, code)
    assert words in str(result.error)
    assert server.taken == []
    assert result.retryable is (code == "network_error")


def test_a_line_that_breaks_behind_the_message_leaves_the_delivery_unknown(desk: Desk, smtp_server: Start) -> None:
    server = smtp_server(drop_at="message")

    result = send(desk, server)

    assert (result.ok, result.code, result.retryable) == (False, "unknown_delivery", False)
    assert "do not send it again" in str(result.error)
    assert server.commands.count("message") == 1


def test_a_server_that_says_nothing_is_left_at_the_deadline(desk: Desk, smtp_server: Start) -> None:
    before, behind = smtp_server(hang_at="RCPT"), smtp_server(hang_at="message")

    started = time.monotonic()
    assert send(desk, before, time_left=1).code == "timeout"
    assert send(desk, behind, time_left=1).code == "unknown_delivery"
    assert time.monotonic() - started < 5


def test_a_cancelled_run_lets_go_of_the_line_at_once(desk: Desk, smtp_server: Start) -> None:
    server = smtp_server(hang_at="RCPT")
    stopped = threading.Event()
    threading.Thread(target=lambda: eventually(lambda: "RCPT" in server.commands) and stopped.set()).start()

    started = time.monotonic()
    result = send(desk, server, cancelled=stopped.is_set)

    assert result.code == "cancelled"
    assert time.monotonic() - started < 5
    assert server.taken == []


def test_a_login_that_is_refused_asks_to_reconnect_and_never_shows_the_password(desk: Desk, smtp_server: Start) -> None:
    desk.connected = [mailbox(smtp=smtp_server(), password=SecretStr("wrong Passphrase 8"))]

    result = desk.call("email.send", MAIL)

    assert (result.code, result.retryable) == ("remote_error", False)
    assert "connect it again" in str(result.error)
    assert "Passphrase" not in str(result.to_json())


def test_a_server_with_another_name_is_not_trusted(desk: Desk, smtp_server: Start) -> None:
    server = smtp_server()
    desk.connected = [mailbox(smtp=server)]
    desk.connected[0] = desk.connected[0].model_copy(update={"smtp": MailServer(host="localhost", port=server.port)})

    result = desk.call("email.send", MAIL)

    assert result.code == "network_error"
    assert "certificate" in str(result.error)
    assert server.commands == []


def test_a_server_nobody_vouches_for_is_not_trusted(
    desk: Desk, smtp_server: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = smtp_server()
    monkeypatch.delenv("SSL_CERT_FILE")

    result = send(desk, server)

    assert result.code == "network_error"
    assert "certificate" in str(result.error)


def test_a_server_that_is_not_there_can_be_tried_again(desk: Desk, smtp_server: Start) -> None:
    desk.connected = [mailbox(smtp=smtp_server()).model_copy(update={"smtp": MailServer(host="127.0.0.1", port=1)})]

    result = desk.call("email.send", MAIL)

    assert (result.code, result.retryable) == ("network_error", True)
    assert "refuses connections" in str(result.error)


@pytest.mark.parametrize(
    ("attachments", "code"),
    [
        (["not-there.txt"], "not_found"),
        (["../secret.txt"], "path_escape"),
        ([".officina/x"], "path_escape"),
        (["link.txt"], "path_escape"),
        (["big.bin"], "too_large"),
        (["half.bin", "other-half.bin"], "too_large"),
    ],
)
def test_attachments_stay_in_the_jail_and_in_their_bounds(
    desk: Desk, smtp_server: Start, attachments: list[str], code: str
) -> None:
    server = smtp_server()
    (desk.folder / "link.txt").symlink_to("/etc/hostname")
    (desk.folder / "big.bin").write_bytes(b"x" * (10 * 1024 * 1024 + 1))
    for name in ("half.bin", "other-half.bin"):
        (desk.folder / name).write_bytes(b"x" * (5 * 1024 * 1024 + 1))

    result = send(desk, server, {"attachments": attachments})

    assert (result.ok, result.code) == (False, code)
    assert server.commands == []


def test_a_password_with_letters_of_all_kinds_goes_through(desk: Desk, smtp_server: Start) -> None:
    desk.connected = [mailbox(smtp=smtp_server(), password=SecretStr(PASSWORD + "ż"))]

    assert desk.call("email.send", MAIL).code == "remote_error"
