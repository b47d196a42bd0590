"""W9: the API's list and show at 10,000 projects and 1,000,000 events, beside the same queries bare in the driver.

The API is a process of its own, asked over one connection with the standard library's client: a more comfortable one
takes longer for a request than the API for its answer. Its statements are recorded once, in this process; the floor
sends the same statements with the same values through psycopg and fetches every row.
"""

import time
from collections.abc import Callable
from contextlib import closing
from http.client import HTTPConnection
from statistics import median
from typing import Any

from benchmarks.measure import Bar, Figure, interleaved, tell
from benchmarks.stack import Stack
from orchestrator.settings import Settings

PROJECTS, TASKS, EVENTS = 10_000, 3, 100
#: Requests of one value.
TIMES = 20
LIST = "/api/studio/projects"

Statement = tuple[str, Any]


def measure(stack: Stack, rounds: int, *, quick: bool) -> list[Figure]:
    """Milliseconds of a request, and of its queries alone."""
    import psycopg

    from orchestrator import keys
    from orchestrator.api import server

    count = PROJECTS // 10 if quick else PROJECTS
    settings = stack.bare_office("api")
    tell(f"W9: filling {count} projects and {count * EVENTS} events")
    newest = fill(settings, count)
    _, key = keys.add(settings, "bench")
    listening = server.bind("127.0.0.1", 0)
    stack.start_api(settings, listening)
    paths = {"list": LIST, "show": f"{LIST}/{newest}", "trace": f"{LIST}/{newest}/events?limit={EVENTS}"}
    with (
        closing(HTTPConnection("127.0.0.1", listening.getsockname()[1], timeout=60)) as client,
        psycopg.connect(settings.database.replace("+psycopg", ""), autocommit=True) as bare,
    ):
        recorded = {name: _record(settings, key, path) for name, path in paths.items()}
        works: dict[str, Callable[[], float]] = {}
        for name, path in paths.items():
            works[f"{name} bare"] = lambda name=name: _median(lambda: _replay(bare, recorded[name]))  # type: ignore[misc]
            works[name] = lambda path=path: _over_http(client, path, key)  # type: ignore[misc]
        for work in works.values():
            work()
        taken = interleaved("W9", "ms", rounds, works)
    words = {"list": "a list of 50", "show": "one project", "trace": f"{EVENTS} lines of its trace"}
    against = "its queries alone in psycopg"
    return [
        Figure(
            "W9",
            f"{what}, {count} projects, {count * EVENTS} events",
            "ms",
            taken[name],
            f"{against} ({len(recorded[name])})",
            taken[f"{name} bare"],
            Bar(3),
        )
        for name, what in words.items()
    ]


def _over_http(client: HTTPConnection, path: str, key: str) -> float:
    client.close()  # the server may have, for idleness
    _ask(client, path, key)
    return _median(lambda: _ask(client, path, key))


def _median(once: Callable[[], object]) -> float:
    values = []
    for _ in range(TIMES):
        begun = time.perf_counter()
        once()
        values.append((time.perf_counter() - begun) * 1000)
    return median(values)


def _headers(key: str) -> dict[str, str]:
    # Without the second a trace is a stream.
    return {"authorization": f"Bearer {key}", "accept": "application/json"}


def _ask(client: HTTPConnection, path: str, key: str) -> None:
    client.request("GET", path, headers=_headers(key))
    answer = client.getresponse()
    body = answer.read()
    if answer.status != 200:
        raise RuntimeError(f"GET {path}: {answer.status} {body[:200]!r}")


def _replay(bare: Any, statements: list[Statement]) -> None:
    for words, values in statements:
        bare.execute(words, values).fetchall()


def _record(settings: Settings, key: str, path: str) -> list[Statement]:
    """The statements of the second time a request is answered, so that nothing is in them that is done only once."""
    from fastapi.testclient import TestClient
    from sqlalchemy import event

    from orchestrator.api.app import create_app
    from orchestrator.store.database import get_database

    found: list[Statement] = []
    engine = get_database(settings).engine

    def note(_c: Any, _cursor: Any, words: str, values: Any, _context: Any, _many: bool) -> None:
        found.append((words, values))

    with TestClient(create_app(settings), base_url="http://localhost") as client:
        client.get(path, headers=_headers(key)).raise_for_status()
        event.listen(engine, "before_cursor_execute", note)
        try:
            client.get(path, headers=_headers(key)).raise_for_status()
        finally:
            event.remove(engine, "before_cursor_execute", note)
    return found


def fill(settings: Settings, count: int) -> str:
    """Writes that many ended projects, each with its tasks and a trace; gives the id of the newest."""
    from sqlalchemy import Connection, text

    from orchestrator.store.database import get_database

    def write(connection: Connection) -> str:
        connection.execute(text("INSERT INTO definitions (digest, body) VALUES ('d', '{}')"))
        values = {"owner": settings.owner, "most": count, "tasks": TASKS, "each": EVENTS}
        for statement in (_PROJECTS, _TASKS, _TRACES, _EVENTS):
            connection.execute(text(statement), values)
        return str(connection.execute(text("SELECT max(id) FROM projects")).scalar_one())

    newest = get_database(settings).write(write)
    with get_database(settings).engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM ANALYZE"))
    return newest


#: The nth project and its kth task, ids as ours look.
_PROJECT = "('0194' || lpad(to_hex(n), 4, '0') || '-7c1e-7a60-8000-000000000000')"
_TASK = "('0194' || lpad(to_hex(n), 4, '0') || '-7c1e-7a60-8000-00000000001' || k)"
_PROJECTS = f"""
INSERT INTO projects (id, owner_id, file_digest, title, brief, status, permissions, approvals, max_parallel, priority,
                      skills, workspace, completed_tasks, created_at, ended_at)
SELECT {_PROJECT}, :owner, 'd', 'Project ' || n, 'b', 'completed', '{{}}', 'park', 1, 5, '[]', 'p' || n, :tasks,
       1700000000000 + n, 1700000000500 + n FROM generate_series(1, :most) AS n
"""
_TASKS = f"""
INSERT INTO tasks (id, project_id, position, key, title, role, instruction, deliverables, agent_id, agent_name, skills,
                   tier, definition_digest, status, retries, created_at)
SELECT {_TASK}, {_PROJECT}, k, 't' || k, 'Task', 'writer', 'w', '[]', 'a', 'A', '[]', 'standard', 'd', 'completed', 0,
       1700000000000 FROM generate_series(1, :most) AS n, generate_series(0, :tasks - 1) AS k
"""
_TRACES = "INSERT INTO traces (id, seq) SELECT id, :each FROM projects"
_EVENTS = f"""
INSERT INTO events (trace_id, seq, at, kind, data)
SELECT {_PROJECT}, k, 1700000000000 + k, 'task.status', '{{"status": "running", "from": "queued"}}'
FROM generate_series(1, :most) AS n, generate_series(1, :each) AS k
"""
