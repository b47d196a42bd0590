"""Values in which something looks like a secret lie encrypted in the database and come back exactly as they were."""

from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import SecretStr

from orchestrator.settings import Settings
from orchestrator.store import columns
from orchestrator.store.columns import SealedJson
from orchestrator.store.database import get_database, shares_key
from orchestrator.vault import Sealed, Vault, new_key
from registry import masking
from registry.errors import OfficinaError

CALL = {"url": "https://example.com/?token=abc123", "headers": {"X-Api-Key": "käy"}, "n": 1}


def dialect(settings: Settings) -> Any:
    return SimpleNamespace(**{columns.SEAL: Vault(settings)})


def keyed(settings: Settings, key: str) -> Settings:
    return settings.model_copy(update={"secret_key": SecretStr(key)})


def test_a_secret_is_sealed_and_comes_back_as_it_was(settings: Settings) -> None:
    ours = dialect(settings)

    stored = SealedJson().process_bind_param(CALL, ours)

    assert stored is not None and stored.startswith("sealed:")
    assert "abc123" not in stored and "example" not in stored
    assert SealedJson().process_result_value(stored, ours) == CALL


@pytest.mark.parametrize("value", [None, {"path": "a.md"}, "a sentence about an author", ["sealed:x"], 5])
def test_anything_else_is_stored_as_it_is(settings: Settings, value: Any) -> None:
    ours = dialect(settings)

    stored = SealedJson().process_bind_param(value, ours)

    assert stored == columns.JsonText().process_bind_param(value, ours)
    assert SealedJson().process_result_value(stored, ours) == value


def test_a_value_of_a_connection_is_sealed_whatever_it_looks_like(settings: Settings) -> None:
    masking.remember("an ordinary word of ann")

    stored = SealedJson().process_bind_param({"text": "say an ordinary word of ann"}, dialect(settings))

    assert stored is not None and "ordinary" not in stored


def test_a_key_that_was_changed_still_opens_what_it_closed(settings: Settings) -> None:
    old, new = new_key(), new_key()
    stored = SealedJson().process_bind_param(CALL, dialect(keyed(settings, old)))

    both = dialect(keyed(settings, f"{new},{old}"))

    assert SealedJson().process_result_value(stored, both) == CALL
    with pytest.raises(Sealed):
        SealedJson().process_result_value(stored, dialect(keyed(settings, new)))
    with pytest.raises(OfficinaError, match="OFFICINA_SECRET_KEY"):
        SealedJson().process_result_value(stored, SimpleNamespace())


def test_a_database_of_many_machines_seals_with_a_key_that_was_set(settings: Settings) -> None:
    shared = settings.model_copy(update={"database_url": "postgresql+psycopg://db.example.com/x"})

    assert not shares_key(shared), "a key in the home of one machine would lock the others out"
    assert shares_key(keyed(shared, new_key()))
    assert shares_key(settings)
    assert getattr(get_database(settings).engine.dialect, columns.SEAL) is not None
