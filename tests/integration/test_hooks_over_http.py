"""Webhooks over real HTTP: the API as a process, a worker that answers, and senders who do not know the secret."""

import json
import time
from pathlib import Path
from typing import Any

import httpx2
from sqlalchemy import select

from orchestrator.ports.wiring import wire
from orchestrator.receiving import sign
from orchestrator.store import agents, kept
from orchestrator.store import tables as t
from orchestrator.store.database import get_database
from registry.agents import AgentDefinition
from registry.skills import catalogue
from registry.skills.context import Caller
from registry.skills.triggers import Hand, Hooked
from tests.studio import ApiProcess
from tests.support import eventually

BODY = json.dumps({"text": "The build is red."}).encode()


def test_what_is_signed_starts_a_run_and_what_is_not_starts_nothing(
    tmp_path: Path, live_settings: Any, worker_process: Any
) -> None:
    settings = live_settings.model_copy(update={"stand_in": True})
    database = get_database(settings)
    ada = AgentDefinition.model_validate({"id": "ada", "name": "Ada", "instructions": "Answer."})
    database.write(lambda c: agents.save(c, "local", ada, name_key="ada", call_key=None))
    port = wire(settings, catalogue.build()).webhooks
    hook = str(port.save(Hand(Caller("person")), Hooked(name="Builds", agent_id="ada"))["id"])
    secret = str(port.reveal("local", hook))

    def runs() -> list[Any]:
        with database.read() as connection:
            return list(connection.execute(select(t.runs)))

    api = ApiProcess(settings, tmp_path / "api.log").start()
    try:

        def post(at: int, signature: str | None, **more: str) -> httpx2.Response:
            headers = {"content-type": "application/json", "x-officina-timestamp": str(at)} | more
            headers |= {"x-officina-signature": signature} if signature is not None else {}
            return httpx2.post(f"{api.url}/api/studio/hooks/{hook}", content=BODY, headers=headers, timeout=20)

        now = int(time.time())
        refused = [
            post(now, None),
            post(now, sign("wrong", now, BODY)),
            post(now, sign(secret, now, BODY + b" ")),
            post(now - 400, sign(secret, now - 400, BODY)),
            post(now + 400, sign(secret, now + 400, BODY)),
        ]
        assert [answer.status_code for answer in refused] == [401] * 5
        assert runs() == []

        taken = post(now, sign(secret, now, BODY), **{"x-officina-delivery": "d-1"})
        assert (taken.status_code, taken.json()["accepted"]) == (202, True)
        assert post(now, sign(secret, now, BODY)).status_code == 401, "a replay"
        again = post(now + 1, sign(secret, now + 1, BODY), **{"x-officina-delivery": "d-1"})
        assert again.json() == {"accepted": False, "reason": "duplicate", "runId": taken.json()["runId"]}
        nowhere = httpx2.post(
            f"{api.url}/api/studio/hooks/nowhere", content=BODY, headers={"content-type": "application/json"}
        )
        assert nowhere.status_code == 404
        assert [run.id for run in runs()] == [taken.json()["runId"]]
    finally:
        api.close()

    worker_process(settings, STAND_IN="true").ready()
    eventually(lambda: runs()[0].status == "completed", 30)
    with database.read() as connection:
        said = connection.execute(select(t.messages.c.body).where(t.messages.c.run_id == runs()[0].id)).scalars().all()
        assert len(connection.execute(select(kept.deliveries)).all()) == 2
    assert said[0]["content"] == "The build is red." and said[0]["origin"] == "webhook"
