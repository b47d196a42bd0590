"""How tasks end: what counts as done, what is tried again, and what of money stays (spec: skills 13.1 to 13.4)."""

import json
from pathlib import Path
from typing import Any

from sqlalchemy import select

from orchestrator.store.database import get_database
from orchestrator.store.tables import reservations, windows
from tests.projects import Watched, start, task
from tests.stub_model import StubModel


def write(path: str) -> dict[str, Any]:
    return {"calls": [{"name": "files.write", "args": {"path": path, "content": "7"}}]}


def test_an_empty_answer_is_enough_where_a_file_was_written(tmp_path: Path, live_settings, worker_process) -> None:
    worker_process(live_settings).ready()
    plan = [
        task("promised", deliverables=["a.txt"], retries=0),
        task("unasked", retries=0),
        task("neither", retries=0),
        task("other", deliverables=["b.txt", "c.txt"]),
    ]
    turns = {
        "promised": [write("a.txt"), {"say": ""}],
        "unasked": [write("d.txt"), {"say": " "}],
        "neither": [{"say": ""}],
        "other": [write("c.txt"), {"say": ""}],
    }

    project = Watched(live_settings, start(tmp_path / "p", live_settings, plan, {"tasks": turns}).project_id)

    assert project.ended() == "partial"
    rows = project.tasks
    assert {key: row.status for key, row in rows.items()} == {
        "promised": "completed",
        "unasked": "completed",
        "neither": "failed",
        "other": "completed",
    }
    assert rows["neither"].error["code"] == "empty_output"
    assert rows["other"].reason == "deliverables not found: b.txt"


def test_a_new_attempt_sees_the_error_on_one_line_and_the_files_that_were_left(
    tmp_path: Path, live_settings, worker_process
) -> None:
    worker_process(live_settings, LIMITS__RETRY_BACKOFF_S="0").ready()
    turns = {"a": [write("draft.txt"), {"say": "{{ nothing.here }}"}]}

    project = Watched(live_settings, start(tmp_path / "p", live_settings, [task("a")], {"tasks": turns}).project_id)

    assert project.ended() == "failed"
    assert [run.attempt for run in project.runs] == [1, 2], "one task retry unless the task says otherwise"
    told = [m["text"] for m in project.kinds("message") if m["role"] == "user"]
    assert "An earlier attempt failed" not in told[0]
    assert "An earlier attempt failed:\n<error>\nmodel_failed: " in told[1]
    assert "- draft.txt (1 bytes, sha256 " in told[1]


def test_a_failure_that_does_not_pass_is_not_tried_again(tmp_path: Path, live_settings, worker_process) -> None:
    worker_process(live_settings).ready()
    script = {"tasks": {"a": [{"calls": [{"name": "files.list", "args": {"path": "."}}]}]}}

    project = Watched(live_settings, start(tmp_path / "p", live_settings, [task("a", retries=3)], script).project_id)

    assert project.ended() == "failed"
    assert (project.tasks["a"].error["code"], len(project.runs)) == ("model_script_exhausted", 1)
    with get_database(live_settings).read() as connection:
        assert connection.execute(select(reservations)).all() == []
        assert {row.reserved_micro for row in connection.execute(select(windows))} <= {0}


def test_what_failed_attempts_and_the_planning_cost_is_counted(tmp_path: Path, live_settings, worker_process) -> None:
    plan = {"tasks": [{"key": "a", "title": "A", "role": "writer", "instruction": "Do it."}]}
    with StubModel([{"text": ""}, {"text": json.dumps(plan)}]) as stub:
        model = {"NAME": "stub", "BASE_URL": stub.url, "MAX_TOKENS": "500", "INPUT_PRICE": "1", "OUTPUT_PRICE": "2"}
        prices = {f"MODELS__{tier}__{name}": value for tier in ("STANDARD", "DEEP") for name, value in model.items()}
        worker_process(live_settings, **prices, LIMITS__RETRY_BACKOFF_S="0").ready()
        project = Watched(live_settings, start(tmp_path / "p", live_settings, [], {}).project_id)

        assert project.ended() == "failed", "no attempt says anything"

    used = [think["usage"] for think in project.kinds("think")]
    assert len(used) == 4
    costs = [one["inputTokens"] + 2 * one["outputTokens"] for one in used]
    assert project.tasks["a"].cost_micro == sum(costs[2:]) > 0
    assert project.shown["costUsd"] == sum(costs) / 1_000_000
