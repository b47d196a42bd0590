"""Texts as points, from a real endpoint on loopback."""

from collections.abc import Iterator
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from orchestrator.sections import EmbeddingModel
from orchestrator.settings import Settings
from registry.errors import SkillError
from workers.models.embedding import BATCH, GuardedEmbeddings, embeddings_for
from workers.net.wiring import guard_for

ASKED: list[dict[str, Any]] = []


def answer(request: Request) -> Response:
    body = request.get_json()
    ASKED.append({"key": request.headers.get("Authorization"), "model": body["model"], "count": len(body["input"])})
    rows = [{"index": n, "embedding": [float(len(text)), 1]} for n, text in enumerate(body["input"])]
    from json import dumps

    return Response(dumps({"data": rows[::-1]}), content_type="application/json")


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    ASKED.clear()
    with HTTPServer("127.0.0.1") as made:
        yield made


def port(server: HTTPServer, **about: Any) -> GuardedEmbeddings:
    chosen = EmbeddingModel(name="near-1", base_url=f"http://127.0.0.1:{server.port}/v1", **about)
    place = f"127.0.0.1:{server.port}"
    settings = Settings(embeddings=chosen, net_allow=place, model_api_key="of-models", _env_file=None)  # type: ignore[arg-type,call-arg]
    made = embeddings_for(settings, guard_for(settings))
    assert made is not None
    return made


def test_texts_become_points_in_their_order_and_in_batches(server: HTTPServer) -> None:
    server.expect_request("/v1/embeddings", method="POST").respond_with_handler(answer)
    texts = ["x" * (n + 1) for n in range(BATCH + 3)]
    places = port(server, key="mine").embed(texts, timeout_s=20)

    assert [place[0] for place in places] == [float(n + 1) for n in range(BATCH + 3)]
    assert [one["count"] for one in ASKED] == [BATCH, 3]
    assert all(one["key"] == "Bearer mine" and one["model"] == "near-1" for one in ASKED)


def test_the_key_of_the_models_is_not_shown_to_another_host(server: HTTPServer) -> None:
    server.expect_request("/v1/embeddings", method="POST").respond_with_handler(answer)
    port(server).embed(["x"], timeout_s=20)
    assert ASKED[0]["key"] is None


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ("{}", 200, "invalid_output"),
        ("no json", 200, "invalid_output"),
        ('{"data": []}', 200, "invalid_output"),
        ('{"data": [{"index": 0, "embedding": []}]}', 200, "invalid_output"),
        ('{"data": [{"index": 0, "embedding": ["x"]}]}', 200, "invalid_output"),
        ('{"data": [{"index": 0, "embedding": [1e999]}]}', 200, "invalid_output"),
        ("busy", 503, "remote_error"),
    ],
)
def test_an_answer_that_is_none_is_a_failure_with_a_code(server: HTTPServer, body: str, status: int, code: str) -> None:
    server.expect_request("/v1/embeddings").respond_with_data(body, status=status, content_type="application/json")
    with pytest.raises(SkillError) as failed:
        port(server).embed(["x"], timeout_s=20)
    assert failed.value.code == code


def test_nothing_is_set_up_unless_the_settings_say_so() -> None:
    settings = Settings(_env_file=None)  # type: ignore[call-arg]
    assert embeddings_for(settings, guard_for(settings)) is None
