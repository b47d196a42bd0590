"""Pictures and money: what they may cost is reserved before the provider is asked, and a batch that would pass the cap
does not pass it."""

import base64
import io
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from sqlalchemy import select

from orchestrator.settings import Settings
from orchestrator.store.database import get_database
from orchestrator.store.tables import windows
from tests.projects import Watched, start, task
from tests.stub_model import StubModel

#: USD for one picture, and what the project may cost: two pictures fit, a third does not.
PRICE, CAP = "0.2", 0.5


class Studio:
    """An images endpoint that notes, at each request, what the project has reserved at that moment."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.reserved = settings, list[int]()
        picture = io.BytesIO()
        Image.new("RGB", (8, 8), "teal").save(picture, "PNG")
        self._picture = base64.b64encode(picture.getvalue()).decode()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.address = f"127.0.0.1:{self._server.server_address[1]}"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        studio = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
                studio.reserved.append(studio.held())
                said = json.dumps({"data": [{"b64_json": studio._picture}] * asked["n"]}).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            def log_message(self, *_: Any) -> None:
                """Says nothing."""

        return Handler

    def held(self) -> int:
        with get_database(self.settings).read() as connection:
            found = connection.execute(select(windows.c.reserved_micro).where(windows.c.id.startswith("project:")))
            return int(found.scalar() or 0)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def live(tmp_path: Path, sqlite_url: str, redis: Any, redis_url: str) -> Settings:
    return Settings(home=tmp_path / "home", broker_url=redis_url, _env_file=None)  # type: ignore[call-arg]


@pytest.fixture
def studio(live: Settings) -> Iterator[Studio]:
    made = Studio(live)
    yield made
    made.close()


def painted(live: Settings, studio: Studio, worker_process: Any, folder: Path, calls: list[dict[str, Any]]) -> Watched:
    """A project whose agent asks for these pictures at once, at its end."""
    batch = {"calls": [{"name": "image.generate", "args": call} for call in calls]}
    with StubModel([batch, {"text": "done"}]) as model:
        spoken = {"NAME": "stub", "BASE_URL": model.url, "INPUT_PRICE": "0", "OUTPUT_PRICE": "0"}
        environment = {f"MODELS__STANDARD__{name}": value for name, value in spoken.items()}
        drawn = {"NAME": "brush", "BASE_URL": f"http://{studio.address}/v1", "PRICE": PRICE}
        environment |= {f"IMAGES__{name}": value for name, value in drawn.items()}
        worker_process(live, **environment, NET_ALLOW=studio.address, TASK_COST_USD="100").ready()
        agent = {"name": "Ada", "instructions": "Draw.", "skills": ["image.generate"]}
        agent |= {"permissions": {"network": "allow", "fs.write": "allow"}}
        plan = [task("a", agent="ada")]
        made = start(folder, live, plan, {"tasks": {"a": []}}, agents={"ada": agent}, budget={"maxCostUsd": CAP})
        project = Watched(live, made.project_id)
        assert project.ended(60) == "completed"
    return project


def test_of_a_batch_of_pictures_only_those_are_made_that_fit_under_the_cap(
    live: Settings, studio: Studio, worker_process: Any, tmp_path: Path
) -> None:
    calls = [{"prompt": "a bee", "path": f"bee-{number}"} for number in range(4)]

    project = painted(live, studio, worker_process, tmp_path / "p", calls)

    results = project.kinds("tool.result")
    assert sorted(str(one.get("code")) for one in results) == ["None", "None", "budget_exceeded", "budget_exceeded"]
    assert len(studio.reserved) == 2, "what does not fit is not asked for"
    assert min(studio.reserved) >= 200_000, "its money was set aside before the provider heard of it"
    assert max(studio.reserved) <= CAP * 1_000_000
    assert project.tasks["a"].cost_micro == 400_000
    assert studio.held() == 0, "what was set aside was settled"


def test_four_pictures_of_one_call_are_reserved_together_or_not_at_all(
    live: Settings, studio: Studio, worker_process: Any, tmp_path: Path
) -> None:
    project = painted(live, studio, worker_process, tmp_path / "p", [{"prompt": "a bee", "count": 4}])

    (result,) = project.kinds("tool.result")
    assert result["code"] == "budget_exceeded"
    assert "0.8 USD" in result["output"]
    assert (studio.reserved, project.tasks["a"].cost_micro) == ([], 0)
