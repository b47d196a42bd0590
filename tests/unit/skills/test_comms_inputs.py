"""What the four skills of mail and messages take, and what they refuse (spec: skills 7.23 to 7.26)."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from registry.connections import ANY, KINDS, secret_fields
from registry.skills.comms import SKILLS
from registry.skills.context import Authority, Caller, SkillContext
from registry.skills.registry import SkillRegistry, SkillResult

REGISTRY = SkillRegistry(SKILLS)
MAIL: dict[str, Any] = {"to": ["bob@example.com"], "subject": "Hello", "text": "Hi"}


def call(name: str, arguments: dict[str, Any]) -> SkillResult:
    return REGISTRY.invoke(name, arguments, SkillContext(Caller("person")), Authority(None))


def mail(**changes: Any) -> SkillResult:
    return call("email.send", MAIL | changes)


def telegram(**changes: Any) -> SkillResult:
    return call("telegram.send", {"text": "Hi"} | changes)


def whatsapp(**changes: Any) -> SkillResult:
    return call("whatsapp.send", {"to": "+48600700800", "text": "Hi"} | changes)


def test_the_four_are_what_the_catalogue_promises() -> None:
    found = {skill.name: skill for skill in SKILLS}

    assert list(found) == ["email.read", "email.send", "telegram.send", "whatsapp.send"]
    assert [name for name, skill in found.items() if skill.world_acting] == list(found)[1:]
    assert all(skill.catalogued and skill.documented and not skill.cost_bearing for skill in SKILLS)
    assert [skill.effect for skill in SKILLS] == ["pure", "once", "once", "once"]
    assert [skill.timeout_s for skill in SKILLS] == [20, 30, 15, 15]
    assert [skill.open_world for skill in SKILLS] == [True, False, False, False]


@pytest.mark.parametrize(
    ("name", "arguments", "claim", "nothing"),
    [
        ("email.read", {}, "messages", []),
        ("email.send", MAIL, "sent", False),
        ("telegram.send", {"text": "Hi"}, "sent", False),
        ("whatsapp.send", {"to": "+48600700800", "text": "Hi"}, "sent", False),
    ],
)
def test_unconnected_they_claim_nothing(name: str, arguments: dict[str, Any], claim: str, nothing: Any) -> None:
    result = call(name, arguments)

    assert result.ok, result.error
    assert (result.output["wired"], result.output[claim]) == (False, nothing)
    assert "nothing was" in result.output["note"]


@pytest.mark.parametrize("name", ["email.send", "telegram.send", "whatsapp.send"])
def test_nothing_is_sent_without_a_person_behind_it(name: str) -> None:
    given = {"email.send": MAIL, "telegram.send": {"text": "Hi"}, "whatsapp.send": {"to": "+48600700800", "text": "x"}}

    assert REGISTRY.invoke(name, given[name], SkillContext(Caller("run"))).code == "denied"


@pytest.mark.parametrize(
    "address",
    [
        "",
        "bob",
        "bob@localhost",
        "bob@example",
        "@example.com",
        "Bob <bob@example.com>",
        "<bob@example.com>",
        '"bob smith"@example.com',
        "bob@[127.0.0.1]",
        "bob@example.com\nBcc: eve@example.com",
        "bob@example.com\r\n",
        "bob@example.com,eve@example.com",
        "bob@example.com;eve@example.com",
        "bob@exa mple.com",
        " bob@example.com",
        "bob(comment)@example.com",
        "a" * 65 + "@example.com",
        "żółw@example.com",
        "bob@example..com",
        "bob@-example.com",
        "bob@example.com\0",
        "bob\u200b@example.com",
        "bob@" + "a" * 250 + ".com",
    ],
)
def test_addresses_that_are_none_are_refused(address: str) -> None:
    for changes in ({"to": [address]}, {"cc": [address]}, {"bcc": [address]}, {"replyTo": address}):
        result = mail(**changes)
        assert result.code == "invalid_input", changes
        assert next(iter(changes)) in result.details[0].path


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"to": []}, "to"),
        ({"to": [f"u{n}@example.com" for n in range(11)]}, "to"),
        ({"to": ["Bob@example.com", "bob@EXAMPLE.com"]}, ""),
        ({"bcc": ["bob@example.com"]}, ""),
        (
            {
                "to": [f"a{n}@example.com" for n in range(7)],
                "cc": [f"b{n}@example.com" for n in range(7)],
                "bcc": [f"c{n}@example.com" for n in range(7)],
            },
            "",
        ),
        ({"subject": ""}, "subject"),
        ({"subject": "   "}, "subject"),
        ({"subject": "x" * 201}, "subject"),
        ({"subject": "Hello\r\nBcc: eve@example.com"}, "subject"),
        ({"subject": "Hello\nworld"}, "subject"),
        ({"subject": "Hello\u2028world"}, "subject"),
        ({"text": ""}, "text"),
        ({"text": "é" * 51_201}, "text"),
        ({"text": "a\0b"}, "text"),
        ({"html": "x" * 204_801}, "html"),
        ({"inReplyTo": "abc"}, "inReplyTo"),
        ({"inReplyTo": "<a@example.com>\r\nBcc: eve@example.com"}, "inReplyTo"),
        ({"inReplyTo": "<a b@example.com>"}, "inReplyTo"),
        ({"attachments": [f"{n}.txt" for n in range(6)]}, "attachments"),
        ({"attachments": ["a.txt", "./a.txt"]}, ""),
        ({"approved": True}, "approved"),
        ({"from": "boss@example.com"}, "from"),
        ({"headers": {"Bcc": "eve@example.com"}}, "headers"),
    ],
)
def test_a_message_out_of_bounds_is_refused(changes: dict[str, Any], field: str) -> None:
    result = mail(**changes)

    assert result.code == "invalid_input"
    assert result.details[0].path.startswith(field)


def test_an_international_domain_is_shown_as_it_is_sent() -> None:
    checked = REGISTRY.check("email.send", MAIL | {"to": ["bob@bücher.example.com"]}, SkillContext(Caller("person")))

    assert checked.canonical["to"] == ["bob@xn--bcher-kva.example.com"]


@pytest.mark.parametrize(
    ("changes", "good"),
    [
        ({"text": "x" * 4_096}, True),
        ({"text": "x" * 4_097}, False),
        ({"text": "😀" * 2_048}, True),
        ({"text": "😀" * 2_049}, False),
        ({"text": ""}, False),
        ({"text": " \n "}, False),
        ({"chatId": -1_001_234_567_890}, True),
        ({"chatId": "@news_channel"}, True),
        ({"chatId": 0}, False),
        ({"chatId": "12345"}, False),
        ({"chatId": "@a"}, False),
        ({"chatId": "@news\n"}, False),
        ({"chatId": 2**60}, False),
        ({"chatId": True}, False),
        ({"chatId": 5.0}, False),
        ({"format": "MarkdownV2"}, False),
        ({"format": "markdown"}, True),
        ({"silent": "yes"}, False),
        ({"replyToMessageId": 0}, False),
        ({"token": "1:x"}, False),
    ],
)
def test_what_telegram_takes(changes: dict[str, Any], good: bool) -> None:
    assert telegram(**changes).code == (None if good else "invalid_input")


@pytest.mark.parametrize(
    ("changes", "good"),
    [
        ({}, True),
        ({"to": "48600700800"}, False),
        ({"to": "+48 600 700 800"}, False),
        ({"to": "+0600700800"}, False),
        ({"to": "+4860070080"}, False),
        ({"to": "+٤٨٦٠٠٧٠٠٨٠٠"}, False),
        ({"to": "+48600700800\n"}, False),
        ({"to": "+1"}, False),
        ({"to": "+1234567890123456"}, False),
        ({"text": "x" * 4_096}, True),
        ({"text": "x" * 4_097}, False),
        ({"text": ""}, False),
        ({"text": "\n"}, False),
        ({"template": {"name": "hello", "language": "en_US"}}, False),
        ({"text": None, "template": {"name": "hello", "language": "en_US"}}, True),
        ({"text": None, "template": {"name": "hello", "language": "pl", "params": ["x"] * 10}}, True),
        ({"text": None, "template": {"name": "hello", "language": "pl", "params": ["x"] * 11}}, False),
        ({"text": None, "template": {"name": "hello", "language": "pl", "params": ["x" * 1_025]}}, False),
        ({"text": None, "template": {"name": "hello", "language": "pl", "params": ["a\nb"]}}, False),
        ({"text": None, "template": {"name": "hello", "language": "pl", "params": ["a     b"]}}, False),
        ({"text": None, "template": {"name": "../me", "language": "pl"}}, False),
        ({"text": None, "template": {"name": "hello", "language": "polish"}}, False),
        ({"text": None}, False),
        ({"replyTo": "wamid.HBgLM=="}, True),
        ({"replyTo": "a b"}, False),
        ({"approved": True}, False),
    ],
)
def test_what_whatsapp_takes(changes: dict[str, Any], good: bool) -> None:
    assert whatsapp(**changes).code == (None if good else "invalid_input")


@pytest.mark.parametrize(
    ("arguments", "good"),
    [
        ({"limit": 50, "maxBodyChars": 20_000, "since": "2026-01-31", "from": "bob", "query": "ż" * 200}, True),
        ({"limit": 0}, False),
        ({"limit": 51}, False),
        ({"maxBodyChars": 199}, False),
        ({"folder": ""}, False),
        ({"folder": "x" * 121}, False),
        ({"folder": "INBOX\r\nA1 DELETE INBOX"}, False),
        ({"from": "bob\r\n"}, False),
        ({"subject": "a\nb"}, False),
        ({"query": "a\0b"}, False),
        ({"query": "x" * 201}, False),
        ({"since": "yesterday"}, False),
        ({"since": 5}, False),
        ({"markSeen": True}, False),
    ],
)
def test_what_reading_takes(arguments: dict[str, Any], good: bool) -> None:
    assert call("email.read", arguments).code == (None if good else "invalid_input")


def test_the_accounts_of_the_page_can_be_connected() -> None:
    page = (Path(__file__).parents[3] / "docs" / "mail-and-messages.md").read_text(encoding="utf-8")
    shown = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", page, re.DOTALL)]

    kinds = [ANY.validate_json(json.dumps(one | secret_of(one)), strict=True).kind for one in shown]

    assert kinds == ["email", "telegram", "whatsapp"]


@pytest.mark.parametrize(
    "changes",
    [
        {"address": "Ann <ann@example.com>"},
        {"address": "ann@example.com\r\nBcc: eve@example.com"},
        {"name": "Ann\r\nBcc: eve@example.com"},
        {"username": "ann\r\nRSET"},
        {"password": "a\r\nb"},
        {"password": ""},
        {"smtp": {"host": "mail.example.com", "port": 25, "security": "none"}},
        {"smtp": {"host": "mail.example.com\r\n", "port": 465}},
        {"folders": ["INBOX\r\n"]},
        {"verify": False},
    ],
)
def test_a_mailbox_that_could_smuggle_something_cannot_be_connected(changes: dict[str, Any]) -> None:
    good = {"kind": "email", "address": "ann@example.com", "username": "ann", "password": "x"}
    ANY.validate_json(json.dumps(good), strict=True)

    with pytest.raises(ValidationError):
        ANY.validate_json(json.dumps(good | changes), strict=True)


def secret_of(shown: dict[str, Any]) -> dict[str, str]:
    return dict.fromkeys(secret_fields(KINDS[shown["kind"]]), "a secret")
