"""Connections: stored by a person, opened for a call, shown to nobody (spec: skills 7 and 20)."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy import select

from orchestrator import connections
from orchestrator.ports.connections import StoredConnections
from orchestrator.settings import Settings
from orchestrator.store import tables
from orchestrator.store.database import get_database
from orchestrator.vault import FILE, Vault, new_key
from registry import masking
from registry.connections import HttpConnection, TelegramConnection
from registry.errors import Refused, SkillError, WrongUse
from registry.skills.urls import parse_url

HTTP = {"kind": "http", "hosts": ["API.example.com", "http://127.0.0.1:8080"], "secret": "hunter2-of-http"}
TELEGRAM = {"kind": "telegram", "chatId": 7, "token": "123456:hunter2-of-telegram"}


@pytest.fixture
def settings(tmp_path: Path, database_url: str) -> Settings:
    return Settings(home=tmp_path / "home", database_url=database_url, _env_file=None)  # type: ignore[call-arg]


def port(settings: Settings) -> StoredConnections:
    return StoredConnections(settings, get_database(settings))


def test_a_connection_is_stored_and_opened_for_its_owner_alone(settings: Settings) -> None:
    assert connections.save(settings, "local", "gh", HTTP) is True
    found = port(settings).find("local", HttpConnection, "gh")
    assert found is not None
    assert found.header_value() == "Bearer hunter2-of-http"
    assert found.hosts == ("https://api.example.com", "http://127.0.0.1:8080")
    assert port(settings).find("someone", HttpConnection, "gh") is None
    assert port(settings).find("local", TelegramConnection, "gh") is None
    assert port(settings).find("local", HttpConnection, "other") is None


def test_saved_again_it_is_replaced(settings: Settings) -> None:
    connections.save(settings, "local", "gh", HTTP)
    assert connections.save(settings, "local", "gh", HTTP | {"secret": "another-secret"}) is False
    found = port(settings).find("local", HttpConnection, "gh")
    assert found is not None and found.secret.get_secret_value() == "another-secret"


def test_without_a_name_the_default_is_taken_then_the_oldest(settings: Settings) -> None:
    assert port(settings).find("local", TelegramConnection) is None
    for number, name in enumerate(("b", "a")):
        connections.save(settings, "local", name, TELEGRAM | {"chatId": number})
    oldest = port(settings).find("local", TelegramConnection)
    assert oldest is not None and oldest.chat_id == 0
    connections.save(settings, "local", "default", TELEGRAM | {"chatId": 9})
    chosen = port(settings).find("local", TelegramConnection)
    assert chosen is not None and chosen.chat_id == 9


def test_secrets_are_shown_nowhere(settings: Settings) -> None:
    connections.save(settings, "local", "gh", HTTP)
    shown = connections.listed(settings, "local")
    assert shown[0]["secrets"] == ["secret"]
    with get_database(settings).read() as connection:
        row = connection.execute(select(tables.connections)).one()
    opened = port(settings).find("local", HttpConnection)
    for text in (json.dumps(shown), repr(row), repr(opened), str(opened)):
        assert "hunter2" not in text
    assert masking.mask_text("it said hunter2-of-http") == "it said ***"


def test_removed_it_is_gone(settings: Settings) -> None:
    connections.save(settings, "local", "gh", HTTP)
    with pytest.raises(Refused):
        connections.remove(settings, "someone", "gh")
    connections.remove(settings, "local", "gh")
    assert port(settings).find("local", HttpConnection, "gh") is None
    with pytest.raises(Refused):
        connections.remove(settings, "local", "gh")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"hosts": []}, "hosts"),
        ({"hosts": ["https://a.example/path"]}, "hosts.0"),
        ({"hosts": ["ftp://a.example"]}, "hosts.0"),
        ({"hosts": ["a.example", "user@b.example"]}, "hosts.1"),
        ({"secret": ""}, "secret"),
        ({"secret": "hunter2\r\nX: y"}, "secret"),
        ({"header": "X Y"}, "header"),
        ({"header": "Host"}, "header"),
        ({"header": "Proxy-Authorization"}, "header"),
        ({"prefix": "Be\narer"}, "prefix"),
        ({"kind": "ssh"}, "kind"),
        ({"approved": True}, "approved"),
    ],
)
def test_a_document_that_is_none_is_refused_by_field(settings: Settings, change: dict[str, Any], field: str) -> None:
    with pytest.raises(WrongUse) as refused:
        connections.save(settings, "local", "gh", HTTP | change)
    assert field in {fault.path for fault in refused.value.faults}
    assert "hunter2" not in str(refused.value.faults)
    assert connections.listed(settings, "local") == []


@pytest.mark.parametrize("name", ["", "A", "a b", "-a", "a" * 41, "ä", "../x"])
def test_a_name_is_plain(settings: Settings, name: str) -> None:
    with pytest.raises(WrongUse):
        connections.save(settings, "local", name, HTTP)


@pytest.mark.parametrize(
    ("url", "bound"),
    [
        ("https://api.example.com/x", True),
        ("https://api.example.com:443/x", True),
        ("http://127.0.0.1:8080/", True),
        ("http://api.example.com/", False),
        ("https://api.example.com:8443/", False),
        ("https://evil.api.example.com/", False),
        ("https://api.example.com.evil.example/", False),
        ("https://127.0.0.1:8080/", False),
    ],
)
def test_a_secret_is_bound_to_whole_origins(url: str, bound: bool) -> None:
    connection = HttpConnection.model_validate_json(json.dumps(HTTP))
    assert connection.bound_to(parse_url(url)) is bound


class TestKeys:
    def test_the_home_keeps_one_for_its_owner_alone(self, settings: Settings) -> None:
        closed = Vault(settings).close({"a": "b"})
        assert Vault(settings).open(closed) == {"a": "b"}
        file = settings.home / FILE
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert [path.name for path in settings.home.iterdir() if "key" in path.name] == [FILE]

    def test_one_that_others_can_read_is_refused(self, settings: Settings) -> None:
        Vault(settings)
        (settings.home / FILE).chmod(0o644)
        with pytest.raises(WrongUse, match="chmod"):
            Vault(settings)

    def test_a_new_key_opens_what_the_old_one_closed(self, settings: Settings) -> None:
        old, new = new_key(), new_key()
        closed = Vault(_keyed(settings, old)).close("x")
        assert Vault(_keyed(settings, f"{new}, {old}")).open(closed) == "x"

    def test_under_another_key_a_call_is_told_so(self, settings: Settings) -> None:
        connections.save(_keyed(settings, new_key()), "local", "gh", HTTP)
        with pytest.raises(SkillError, match="save it anew") as refused:
            port(_keyed(settings, new_key())).find("local", HttpConnection)
        assert refused.value.code == "tool_failed"

    def test_what_is_no_key_is_refused(self, settings: Settings) -> None:
        with pytest.raises(WrongUse, match="new-key"):
            Vault(_keyed(settings, "secret"))


def _keyed(settings: Settings, key: str) -> Settings:
    return settings.model_copy(update={"secret_key": SecretStr(key)})
