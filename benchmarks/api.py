"""The API with 10,000 projects: what a list, a page of one and a submit of 1,000 tasks take, beside the bare answer."""

import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.measure import Bar, Figure, interleaved

PROJECTS, TASKS = 10_000, 1_000


def measure(rounds: int, *, quick: bool = False) -> list[Figure]:
    """Milliseconds of a request in this process, the database an SQLite file."""
    from fastapi.testclient import TestClient

    from orchestrator import keys
    from orchestrator.api.app import create_app
    from orchestrator.settings import Settings
    from orchestrator.store.database import upgrade

    with tempfile.TemporaryDirectory(prefix="officina-bench-") as folder:
        settings = Settings(home=Path(folder), _env_file=None)  # type: ignore[call-arg]
        upgrade(settings)
        newest = _fill(settings, PROJECTS // 10 if quick else PROJECTS)
        _, key = keys.add(settings, "bench")
        with TestClient(create_app(settings), base_url="http://localhost") as client:
            client.headers["authorization"] = f"Bearer {key}"

            def taken(path: str) -> float:
                begun = time.perf_counter()
                assert client.get(path).status_code == 200
                return (time.perf_counter() - begun) * 1000

            def submit() -> float:
                plan = [{"key": f"t{n}", "role": "writer", "instruction": "w"} for n in range(TASKS)]
                body = {"title": "Large", "brief": "b", "tasks": plan, "rehearse": True}
                begun = time.perf_counter()
                assert client.post("/api/studio/projects", json=body).status_code == 201
                return (time.perf_counter() - begun) * 1000

            taken("/health"), taken("/api/studio/projects"), submit()
            found: dict[str, list[float]] = interleaved(
                "api",
                "ms",
                rounds,
                {
                    "floor": lambda: median(taken("/health") for _ in range(20)),
                    "list": lambda: median(taken("/api/studio/projects") for _ in range(10)),
                    "show": lambda: median(taken(f"/api/studio/projects/{newest}") for _ in range(10)),
                    "submit": submit,
                },
            )
    words = {
        "list": ("a list of 50 at 10,000 projects", 50),
        "show": ("one project of them", 50),
        "submit": ("submit of 1,000 tasks", 1_000),
    }
    return [
        Figure("api", what, "ms", found[name], "an empty answer", found["floor"], Bar(most, "value"))
        for name, (what, most) in words.items()
    ]


def _fill(settings: Any, count: int) -> str:
    """Writes that many ended projects of a few tasks; gives the id of the newest."""
    from sqlalchemy import insert, select

    from orchestrator.store.database import get_database
    from orchestrator.store.tables import definitions, projects, tasks
    from registry.ids import new_id

    made = [new_id() for _ in range(count)]
    project = {"owner_id": "local", "file_digest": "d", "brief": "b", "status": "completed", "permissions": {}}
    project |= {"approvals": "park", "max_parallel": 1, "priority": 5, "skills": [], "title": "t"}
    task = {"role": "writer", "instruction": "w", "deliverables": [], "agent_id": "a", "agent_name": "A", "skills": []}
    task |= {"tier": "standard", "definition_digest": "d", "status": "completed", "retries": 0, "created_at": 1}

    def write(connection: Any) -> str:
        connection.execute(insert(definitions).values(digest="d", body={}))
        rows = [project | {"id": id_, "workspace": id_, "created_at": n} for n, id_ in enumerate(made)]
        connection.execute(insert(projects), rows)
        lines = [
            task | {"id": f"{id_[:-1]}{n}", "project_id": id_, "key": f"t{n}", "title": "t", "position": n}
            for id_ in made
            for n in range(3)
        ]
        connection.execute(insert(tasks), lines)
        return str(connection.execute(select(projects.c.id).order_by(projects.c.created_at.desc()).limit(1)).scalar())

    return get_database(settings).write(write)
