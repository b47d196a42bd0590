"""Workers and the schema: one that lacks something is refused at once, what a newer release adds disturbs nobody."""

from pathlib import Path
from typing import Any

from sqlalchemy import text

from orchestrator.settings import Settings
from orchestrator.store.database import get_database
from tests.commands import Run
from tests.projects import Watched, start, task


def test_a_worker_refuses_a_database_that_lacks_what_it_needs(settings: Settings, officina: Run) -> None:
    database = get_database(settings)
    database.write(lambda c: c.execute(text("ALTER TABLE runs DROP COLUMN queue")))
    database.dispose()

    done = officina("worker", OFFICINA_BROKER_URL="redis://127.0.0.1:1/0")

    assert done.returncode == 1
    assert "the column runs.queue is missing" in done.stderr


def test_columns_of_a_newer_release_do_not_disturb_a_worker_at_work(
    tmp_path: Path, postgres_url: str, redis: Any, redis_url: str, worker_process: Any
) -> None:
    settings = Settings(home=tmp_path / "home", database_url=postgres_url, broker_url=redis_url, _env_file=None)  # type: ignore[call-arg]
    worker_process(settings).ready()
    said = {"tasks": {"a": [{"say": "done"}]}}
    before = Watched(settings, start(tmp_path / "before", settings, [task("a")], said).project_id)
    assert before.ended() == "completed"

    for table in ("runs", "tasks", "projects", "events", "messages", "checkpoints", "signals", "workers"):
        add = text(f"ALTER TABLE {table} ADD COLUMN of_a_newer_release TEXT")
        get_database(settings).write(lambda c, add=add: c.execute(add))

    after = Watched(settings, start(tmp_path / "after", settings, [task("a")], said).project_id)
    assert after.ended() == "completed"
    assert after.tasks["a"].output == "done"
