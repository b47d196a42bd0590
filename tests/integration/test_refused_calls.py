"""A no holds for its call, and another skill is no way round it (spec: skills 15, 21)."""

import json
from pathlib import Path
from typing import Any

from orchestrator.settings import Settings
from orchestrator.signals import answer
from tests.projects import Watched, start, task
from tests.traps import serving


def test_each_way_to_the_same_address_is_a_decision_of_its_own(
    tmp_path: Path, live_settings: Settings, worker_process: Any
) -> None:
    with serving() as site:
        worker_process(live_settings, NET_ALLOW=f"127.0.0.1:{site.port}").ready()
        request = {"method": "POST", "url": site.url("/pay"), "json": {"sum": 100}}
        turns = [
            {"calls": [{"name": "http.request", "args": request}]},
            {"calls": [{"name": "http.json", "args": request}]},
            {"calls": [{"name": "http__request", "args": request | {"timeoutMs": 15_000, "headers": {}}}]},
            {"say": "refused"},
        ]
        plan = [task("a", role="researcher", skills=["http.request", "http.json"])]
        made = start(tmp_path / "p", live_settings, plan, {"tasks": {"a": turns}})
        project = Watched(live_settings, made.project_id)
        for skill in ("http.request", "http.json"):
            asked = project.open_signal(30)
            assert asked.action["skill"] == skill
            answer(live_settings, asked.id, option="No", by="the test")
        assert project.ended() == "completed"
        assert len(project.signals) == 2, "the same call again is refused at once, whatever it is called"
        assert [result["outcome"] for result in project.kinds("tool.result")] == ["rejected"] * 3
        assert site.requests == [], json.dumps(site.paths)
