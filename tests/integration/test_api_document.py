"""The OpenAPI document against the API itself: whatever fits it gets an answer that it promises, and never a 500."""

from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from orchestrator.api.app import create_app
from orchestrator.settings import Settings
from orchestrator.store.database import upgrade
from tests.studio import API, asked, bearer, key_of, session_of

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    home: Path = tmp_path_factory.mktemp("document") / "home"
    found = Settings(home=home, api={"hosts": ("testserver", "localhost")}, _env_file=None)  # type: ignore[call-arg]
    upgrade(found)
    return found


@pytest.fixture(scope="module")
def key(installed: Settings) -> str:
    return key_of(installed)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("examples", [8, pytest.param(50, marks=pytest.mark.long)])  # of each of some fifty operations
def test_every_answer_is_one_that_the_document_promises(installed: Settings, key: str, examples: int) -> None:
    document = schemathesis.openapi.from_asgi("/openapi.json", create_app(installed))
    person, program = session_of(installed), bearer(key)
    operations = [found.ok() for found in document.get_all_operations()]

    for operation in operations:
        if operation.path == f"{API}/session" and operation.method == "delete":
            continue  # it would end the session that the others need

        @hypothesis_settings(
            max_examples=examples,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            derandomize=True,
            database=None,
        )
        @given(operation.as_strategy())
        def answers(case: schemathesis.Case) -> None:
            who = program if case.method == "GET" else person
            case.call_and_validate(checks=CHECKS, headers=who | {"accept": "application/json"})

        answers()
    assert len(operations) >= 45


def test_the_document_explains_every_operation(settings: Settings) -> None:
    document = create_app(settings).openapi()
    operations = [(m, p, one) for p, all_ in document["paths"].items() for m, one in all_.items()]

    assert len(operations) >= 45
    unexplained = [f"{m} {p}" for m, p, one in operations if not one.get("summary")]
    assert unexplained == []
    assert not [f"{m} {p}" for m, p, one in operations if "422" in one["responses"]]
    assert "HTTPValidationError" not in document["components"]["schemas"]
    with asked(settings) as client:
        assert client.get("/openapi.json").json() == document
        assert client.get(f"{API}/nothing").json()["code"] == "not_found"
