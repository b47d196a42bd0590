"""What a request costs in statements: the same however many rows there are."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fastapi.testclient import TestClient
from sqlalchemy import event

from orchestrator.settings import Settings
from orchestrator.store.database import get_database
from tests.studio import API
from tests.unit.api.test_projects import project


@contextmanager
def statements(settings: Settings) -> Iterator[list[str]]:
    """What is executed inside, but for the begins and ends of transactions."""
    seen: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if not statement.startswith(("BEGIN", "COMMIT", "PRAGMA")):
            seen.append(statement)

    engine = get_database(settings).engine
    event.listen(engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(engine, "before_cursor_execute", note)


def plan(count: int) -> list[dict[str, Any]]:
    return [{"key": f"t{n}", "role": "writer", "instruction": "w"} for n in range(count)]


def test_a_list_and_a_project_take_as_many_statements_whatever_their_size(
    settings: Settings, studio: TestClient
) -> None:
    counts: dict[str, list[int]] = {"list": [], "show": []}
    for size in (1, 40):
        made = studio.post(f"{API}/projects", json=project(tasks=plan(size))).json()["id"]
        for _ in range(size):
            studio.post(f"{API}/projects", json=project(tasks=plan(1)))
        for name, path in (("list", "projects"), ("show", f"projects/{made}")):
            with statements(settings) as seen:
                assert studio.get(f"{API}/{path}").status_code == 200
            counts[name].append(len(seen))

    assert counts["list"] == [3, 3]  # the key, the rows, what open runs have spent
    assert counts["show"][0] == counts["show"][1]
    assert counts["show"][0] <= 12


def test_a_large_submit_takes_hardly_more_statements_than_a_small_one(settings: Settings, studio: TestClient) -> None:
    counts = []
    for size in (2, 300):
        with statements(settings) as seen:
            assert studio.post(f"{API}/projects", json=project(tasks=plan(size))).status_code == 201
        counts.append(len(seen))

    assert counts[1] <= counts[0] + 20, counts


def test_a_list_goes_along_an_index(settings: Settings, studio: TestClient) -> None:
    studio.post(f"{API}/projects", json=project())
    with statements(settings) as seen:
        studio.get(f"{API}/projects", params={"cursor": studio.get(f"{API}/projects?limit=1").json()["next"]})
    query = next(one for one in seen if "all_tasks" in one)
    with get_database(settings).read() as connection:
        rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}", ("local", 10**13, "x", 50)[: query.count("?")])
        steps = [row[3] for row in rows]

    assert any("ix_projects_owner_id_created_at_id" in step for step in steps), steps
    assert not any("TEMP B-TREE FOR ORDER BY" in step for step in steps), steps
