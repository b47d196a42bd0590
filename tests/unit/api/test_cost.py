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
    counts: dict[str, list[int]] = {"list": [], "show": [], "trace": []}
    for size in (1, 40):
        made = studio.post(f"{API}/projects", json=project(tasks=plan(size))).json()["id"]
        for _ in range(size):
            studio.post(f"{API}/projects", json=project(tasks=plan(1)))
        for name, path in paths(made).items():
            with statements(settings) as seen:
                ask(studio, path)
            counts[name].append(len(seen))

    assert counts["list"] == [3, 3]  # the key, the rows, what open runs have spent
    assert counts["show"] == [8, 8]  # the key, the id; project, runs, dependencies, tasks, files, signals
    assert counts["trace"] == [3, 3]  # the key, the id, the lines


def test_statements_of_a_list_and_a_project_are_written_once(settings: Settings, studio: TestClient) -> None:
    """To make one anew costs several times what it takes to send it."""
    made = studio.post(f"{API}/projects", json=project()).json()["id"]
    for path in (paths(made)["list"], paths(made)["show"]):
        first, second = (elements(settings, studio, path) for _ in range(2))
        assert len(first) > 2
        anew = [str(one) for one, again in zip(first, second, strict=True) if one is not again]
        assert anew == [], path


def paths(project_id: str) -> dict[str, str]:
    of_project = f"{API}/projects/{project_id}"
    return {"list": f"{API}/projects", "show": of_project, "trace": f"{of_project}/events?limit=100"}


def ask(studio: TestClient, path: str) -> None:
    assert studio.get(path, headers={"accept": "application/json"}).status_code == 200


def elements(settings: Settings, studio: TestClient, path: str) -> list[Any]:
    """The statements of a request as they are handed to the engine."""
    seen: list[Any] = []

    def note(_connection: Any, element: Any, *_: Any) -> None:
        seen.append(element)

    engine = get_database(settings).engine
    event.listen(engine, "before_execute", note)
    try:
        ask(studio, path)
    finally:
        event.remove(engine, "before_execute", note)
    return seen


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
