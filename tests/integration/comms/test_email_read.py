"""email.read against a real IMAP server, with mail that means no good (spec: skills 7.23)."""

import email.policy
import socket
import threading
import time
from collections.abc import Iterator
from email.message import EmailMessage
from typing import Any

import pytest
from pydantic import SecretStr

from registry.connections import MailServer
from registry.skills.registry import SkillResult
from tests.integration.comms.conftest import Desk, mailbox
from tests.mail_servers import ImapServer

pytestmark = pytest.mark.slow  # a Dovecot takes seconds to start


def written(subject: str = "Hello", text: str = "How are you?", sender: str = "Bob <bob@example.com>") -> EmailMessage:
    message = EmailMessage(policy=email.policy.SMTP)
    message["From"], message["To"], message["Subject"] = sender, "ann@example.com", subject
    message["Date"] = "Mon, 05 Oct 2026 10:00:00 +0200"
    message["Message-ID"] = f"<{subject.encode().hex()[:40]}@example.com>"
    message.set_content(text)
    return message


def read(desk: Desk, server: ImapServer, **arguments: Any) -> SkillResult:
    desk.connected = [mailbox(imap=server)]
    return desk.call("email.read", arguments)


def messages(desk: Desk, server: ImapServer, **arguments: Any) -> list[dict[str, Any]]:
    result = read(desk, server, **arguments)
    assert result.ok, result.error
    assert (result.output["wired"], result.output["untrusted"]) == (True, True)
    return list(result.output["messages"])


def test_a_message_is_read_and_nothing_changes(desk: Desk, imap_server: ImapServer) -> None:
    message = written("Zażółć gęślą jaźń", "Dzień dobry\n")
    message["Cc"] = "Cleo <cleo@example.com>, dan@example.com"
    message.add_alternative("<p>Dzień <b>dobry</b></p>", subtype="html")
    message.add_attachment(b"\x00" * 4_000, maintype="application", subtype="pdf", filename="umowa ą.pdf")
    imap_server.put(message.as_bytes())

    (found,) = messages(desk, imap_server)

    assert (found["from"], found["to"]) == ("Bob <bob@example.com>", ["ann@example.com"])
    assert found["cc"] == ["Cleo <cleo@example.com>", "dan@example.com"]
    assert (found["subject"], found["body"], found["bodyTruncated"]) == ("Zażółć gęślą jaźń", "Dzień dobry", False)
    assert (found["date"], found["seen"]) == ("2026-10-05T10:00:00+02:00", False)
    assert (found["messageId"], found["headersOnly"]) == (message["Message-ID"], False)
    assert found["attachments"] == [{"name": "umowa ą.pdf", "type": "application/pdf", "bytes": 4_000}]
    assert found["uid"] > 0 and found["uidValidity"] > 0
    assert b"\\Seen" not in b"".join(imap_server.flags())
    assert list(desk.folder.iterdir()) == []


def test_the_newest_come_first_and_no_more_than_asked_for(desk: Desk, imap_server: ImapServer) -> None:
    imap_server.put(*(written(f"Number {n}").as_bytes() for n in range(1, 8)))

    found = messages(desk, imap_server, limit=3)

    assert [one["subject"] for one in found] == ["Number 7", "Number 6", "Number 5"]


def test_messages_are_found_by_what_is_asked(desk: Desk, imap_server: ImapServer) -> None:
    imap_server.put(written("Old", "rent").as_bytes(), date='"01-Jan-2026 10:00:00 +0000"')
    imap_server.put(written("Read", "paid").as_bytes(), flags=r"\Seen")
    imap_server.put(written("Zażółć", "żółw").as_bytes(), written("Rent", "due", "Eve <eve@example.com>").as_bytes())

    def subjects(**asked: Any) -> list[str]:
        return [one["subject"] for one in messages(desk, imap_server, **asked)]

    assert subjects(unreadOnly=True) == ["Rent", "Zażółć", "Old"]
    assert subjects(since="2026-02-01") == ["Rent", "Zażółć", "Read"]
    assert subjects(**{"from": "eve@example.com"}) == ["Rent"]
    assert subjects(subject="zażółć") == ["Zażółć"]
    assert subjects(query="żółw") == ["Zażółć"]
    assert subjects(query='a "quote" and \\ more') == []
    assert subjects(query="rent", unreadOnly=True, since="2025-12-01") == ["Rent", "Old"]
    assert subjects(subject='x" OR ALL (') == []


def test_a_full_mailbox_is_searched_piece_by_piece(
    desk: Desk, imap_server: ImapServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from registry.skills.mail import imap

    monkeypatch.setattr(imap, "WINDOW", 3)
    imap_server.put(*(written(f"Number {n}", "even" if n % 2 == 0 else "odd").as_bytes() for n in range(1, 12)))

    found = messages(desk, imap_server, query="even", limit=4)

    assert [one["subject"] for one in found] == ["Number 10", "Number 8", "Number 6", "Number 4"]


def test_folders_may_have_any_name_and_only_allowed_ones_are_opened(desk: Desk, imap_server: ImapServer) -> None:
    imap_server.put(written("Kept").as_bytes(), folder='"Archiwum &AQU-/2026 x"')

    assert [one["subject"] for one in messages(desk, imap_server, folder="Archiwum ą/2026 x")] == ["Kept"]
    assert read(desk, imap_server, folder="Nowhere").code == "not_found"
    assert read(desk, imap_server, folder='x" ("').code == "not_found"
    desk.connected = [mailbox(imap=imap_server, folders=("Archiwum ą/2026 x", "inbox"))]
    assert desk.call("email.read", {"folder": "Archiwum ą/2026 x"}).ok
    assert desk.call("email.read", {"folder": "INBOX"}).ok
    assert desk.call("email.read", {"folder": "Trash"}).code == "not_allowed"


def test_bodies_are_cut_or_left_out(desk: Desk, imap_server: ImapServer) -> None:
    message = written(text="word " * 2_000)
    message.add_attachment(b"x", maintype="text", subtype="csv", filename="a.csv")
    imap_server.put(message.as_bytes())

    (cut,) = messages(desk, imap_server, maxBodyChars=200)
    (none,) = messages(desk, imap_server, includeBody=False)

    assert (len(cut["body"]), cut["bodyTruncated"]) == (200, True)
    assert (none["body"], none["bodyTruncated"]) == ("", False)
    assert none["attachments"] == cut["attachments"] == [{"name": "a.csv", "type": "text/csv", "bytes": 1}]


def test_a_message_over_ten_mebibytes_comes_with_its_headers(desk: Desk, imap_server: ImapServer) -> None:
    message = written("Big")
    message.add_attachment(b"\x01" * 8 * 1024 * 1024, maintype="application", subtype="zip", filename="a.zip")
    imap_server.put(written("Small").as_bytes(), message.as_bytes())

    big, small = messages(desk, imap_server)

    assert (big["subject"], big["headersOnly"], big["body"], big["attachments"]) == ("Big", True, "", [])
    assert (small["subject"], small["headersOnly"], small["body"]) == ("Small", False, "How are you?")


HOSTILE = {
    "not a message at all": b"\xff\xfe\x00 no headers here",
    "headers without an end": b"Subject: x\n" + b"X-Filler: y\n" * 20_000,
    "dates of another planet": b"Date: Mon, 99 Foo 99999 99:99:99 +9999\nSubject: when\n\nbody",
    "a charset that is none": b"Content-Type: text/plain; charset=rot13\n\nhello",
    "a codec that takes for ever": b"Content-Type: text/plain; charset=punycode\n\n" + b"a-" * 500_000,
    "bytes of no charset": b"Subject: \xe9\xe8 \xff\n\n" + bytes(range(128, 256)) * 50,
    "a thousand parts": b"Content-Type: multipart/mixed; boundary=b\n\n" + b"--b\n\nhi\n" * 1_000 + b"--b--\n",
    "parts within parts": b"".join(
        b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (n, n) for n in range(1_000)
    )
    + b"\n" * 300_000,
    "a boundary that is everywhere": b"Content-Type: multipart/mixed; boundary=x\n\n" + b"--xx\n" * 500_000,
    "tags without an end": b"Content-Type: text/html\n\n" + b"<div>" * 400_000,
    "a header of comments": b"From: " + b"(" * 50_000 + b"\nTo: " + b"a@b.example," * 9_000 + b"\n\nhi",
    "encoded words without an end": b"Subject: " + b"=?utf-8?q?" * 6_000 + b"\n\nhi",
    "a name that is a path": b"Content-Type: application/zip; name=x\n"
    b'Content-Disposition: attachment; filename="../../../etc/pass\r wd"\n\nzip',
}


@pytest.mark.parametrize("raw", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_mail_is_read_within_bounds(desk: Desk, imap_server: ImapServer, raw: bytes) -> None:
    imap_server.put(raw)

    started = time.monotonic()
    (found,) = messages(desk, imap_server)

    assert time.monotonic() - started < 8
    assert len(found["body"]) <= 4_000
    assert len(found["attachments"]) <= 100 and len(found["to"]) <= 50
    assert not any(mark in one["name"] for one in found["attachments"] for mark in "/\\\r\n\0")
    assert "\n" not in found["subject"] + found["from"]


def test_without_a_mailbox_nothing_is_read_and_the_answer_says_so(desk: Desk) -> None:
    for connected in ([], [mailbox()]):
        desk.connected = connected
        result = desk.call("email.read", {})

        assert result.ok
        assert (result.output["messages"], result.output["wired"]) == ([], False)
        assert "nothing was read" in result.output["note"]


def test_starttls_is_spoken_before_the_login(desk: Desk, imap_server: ImapServer) -> None:
    imap_server.put(written("Safe").as_bytes())
    server = MailServer(host="127.0.0.1", port=imap_server.starttls_port, security="starttls")
    desk.connected = [mailbox().model_copy(update={"imap": server})]

    result = desk.call("email.read", {})

    assert result.ok, result.error
    assert result.output["messages"][0]["subject"] == "Safe"


@pytest.mark.parametrize("password", ["wrong Passphrase 8", "złe Passphrase 8"])
def test_a_login_that_is_refused_asks_to_reconnect(desk: Desk, imap_server: ImapServer, password: str) -> None:
    desk.connected = [mailbox(imap=imap_server, password=SecretStr(password))]

    result = desk.call("email.read", {})

    assert (result.code, result.retryable) == ("remote_error", False)
    assert "connect it again" in str(result.error)
    assert "Passphrase" not in str(result.to_json())


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_server_that_says_nothing_is_left_at_the_deadline(desk: Desk, silent_port: int) -> None:
    for security in ("tls", "starttls"):
        server = MailServer(host="127.0.0.1", port=silent_port, security=security)  # type: ignore[arg-type]
        desk.connected = [mailbox().model_copy(update={"imap": server})]

        started = time.monotonic()
        assert desk.call("email.read", {}, time_left=1).code == "timeout"
        assert time.monotonic() - started < 4


def test_a_server_that_drips_is_left_at_the_deadline(desk: Desk, certificates: Any, trusted: None) -> None:
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def drip() -> None:
            plain, _ = listener.accept()
            with certificates.server().wrap_socket(plain, server_side=True) as line:
                line.sendall(b"* OK ")
                while not over.wait(0.05):
                    try:
                        line.sendall(b"x")
                    except OSError:
                        return

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        server = MailServer(host="127.0.0.1", port=listener.getsockname()[1])
        desk.connected = [mailbox().model_copy(update={"imap": server})]

        started = time.monotonic()
        assert desk.call("email.read", {}, time_left=1.5).code == "timeout"
        assert time.monotonic() - started < 5
        over.set()
        thread.join(5)
