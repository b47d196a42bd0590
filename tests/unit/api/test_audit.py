"""The audit log over HTTP, and the rate of requests."""

import pytest
from fastapi.testclient import TestClient

from orchestrator import keys
from orchestrator.settings import Settings
from tests.studio import API, asked, bearer, key_of, session_of


def test_what_a_key_and_a_person_do_is_told_to_their_owner_alone(settings: Settings) -> None:
    with asked(settings, session_of(settings, "ann")) as ann, asked(settings, session_of(settings, "bob")) as bob:
        made = ann.post(f"{API}/keys", json={"name": "ci", "scopes": ["read", "write"]}).json()
        with asked(settings, bearer(made["key"])) as program:
            agent = program.post(f"{API}/agents", json={"name": "Ada", "instructions": "Work."}).json()
        assert ann.delete(f"{API}/keys/{made['id']}").status_code == 204

        lines = ann.get(f"{API}/audit").json()["items"]
        told = [(one["act"], one["by"], one["subject"]) for one in lines]
        assert told[:3] == [
            ("key.revoked", "ann", made["id"]),
            ("agent.saved", "key ci", agent["id"]),
            ("key.made", "ann", made["id"]),
        ]
        assert made["key"] not in str(lines)
        assert [one["act"] for one in ann.get(f"{API}/audit", params={"act": "agent"}).json()["items"]] == [
            "agent.saved"
        ]
        assert [one["by"] for one in bob.get(f"{API}/audit").json()["items"]] == ["bob"], "only that bob came in"


def test_pages_follow_one_another(settings: Settings) -> None:
    with asked(settings, session_of(settings)) as client:
        for n in range(4):
            keys.add(settings, f"k{n}")
        first = client.get(f"{API}/audit", params={"limit": 3, "act": "key"}).json()
        rest = client.get(f"{API}/audit", params={"limit": 3, "act": "key", "cursor": first["next"]}).json()
    assert [one["data"]["name"] for one in [*first["items"], *rest["items"]]] == ["k3", "k2", "k1", "k0"]


def test_a_key_needs_the_scope(settings: Settings) -> None:
    with asked(settings, bearer(key_of(settings, scopes=["read"]))) as client:
        refused = client.get(f"{API}/audit")
    assert refused.status_code == 403
    assert refused.json()["code"] == "scope"


@pytest.fixture
def limited(settings: Settings) -> Settings:
    rates = settings.rates.model_copy(update={"api": "3/minute"})
    return settings.model_copy(update={"rates": rates})


def test_a_key_that_asks_too_often_is_told_when_to_come_again_and_others_are_not(limited: Settings) -> None:
    with asked(limited) as client:
        one, other = bearer(key_of(limited)), bearer(key_of(limited))
        assert [status(client, one) for _ in range(4)] == [200, 200, 200, 429]
        refused = client.get(f"{API}/projects", headers=one)
        assert refused.json()["code"] == "rate_limited"
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert status(client, other) == 200
        assert client.get("/health").status_code == 200, "a probe is nobody's"


def status(client: TestClient, headers: dict[str, str]) -> int:
    return client.get(f"{API}/projects", headers=headers).status_code
