"""A plain function is answered by one thread, and says so when something it depends on would have it wait."""

import asyncio
import threading
from typing import Annotated, Any

import pytest
from fastapi import Depends, FastAPI
from fastapi.testclient import TestClient

from orchestrator.api.parts import in_thread, router
from orchestrator.api.replies import Reply


async def _looked() -> int:
    return await in_thread(threading.get_ident)


async def _waited() -> None:
    await asyncio.sleep(0)


Looked = Annotated[int, Depends(_looked)]


def client() -> TestClient:
    route = router("tests", prefix="")

    @route.get("/plain")
    def plain(looked: Looked) -> Reply:
        return Reply({"looked": looked, "answered": threading.get_ident()})

    @route.post("/plain")
    def with_body(looked: Looked, body: dict[str, Any]) -> Reply:
        return Reply({"looked": looked, "answered": threading.get_ident(), "body": body})

    @route.get("/waits")
    async def waits(looked: Looked) -> Reply:
        return Reply({"looked": looked, "answered": threading.get_ident()})

    @route.get("/wrong")
    def wrong(waited: Annotated[None, Depends(_waited)]) -> Reply:
        return Reply({})

    app = FastAPI()
    app.include_router(route)
    return TestClient(app)


def test_a_plain_function_and_what_it_depends_on_run_in_one_thread() -> None:
    for answer in (client().get("/plain"), client().post("/plain", json={"a": 1})):
        told = answer.json()
        assert told["looked"] == told["answered"] != threading.get_ident()
    assert told["body"] == {"a": 1}


def test_a_function_that_waits_is_not_kept_from_its_loop() -> None:
    told = client().get("/waits").json()
    assert told["looked"] != told["answered"]


def test_a_plain_function_may_not_depend_on_what_waits() -> None:
    with pytest.raises(RuntimeError, match="/wrong: a plain function may not depend on what waits"):
        client().get("/wrong")
