"""What a database costs as it grows: `python -m benchmarks.growth postgresql+psycopg://... [--events 1000000]`.

Fills an empty, upgraded PostgreSQL database with projects that ended long ago, and says what the daily work costs in
it: a page of a trace, another event, a scrape, a look at what is too old, and taking that away.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import text

from orchestrator import metrics, pruning, views
from orchestrator.records import Event
from orchestrator.settings import Settings
from orchestrator.store import events
from orchestrator.store.database import Database, get_database
from registry.ids import new_id

#: Of each project: events, and for every fourth of them a message and a checkpoint.
EVENTS = 1_000
#: What writes one such project.
STATEMENTS = Path(__file__).with_suffix(".sql").read_text(encoding="utf-8").strip().rstrip(";").split(";\n")
#: Bytes of an event's data, about as a tool's result has.
BYTES = 600
DAY_MS = 24 * 3_600_000


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("database")
    options.add_argument("--events", type=int, default=1_000_000)
    given = options.parse_args()
    settings = Settings(database_url=given.database, _env_file=None)  # type: ignore[call-arg]
    database = get_database(settings)
    count = max(1, given.events // EVENTS)
    took = _timed(lambda: _fill(database, count))
    sys.stdout.write(f"{count:,} projects, {count * EVENTS:,} events: filled in {took:.0f} s\n")
    _sizes(database)
    _daily(settings, database)
    _prune(settings)
    _sizes(database)
    return 0


def _fill(database: Database, count: int) -> None:
    ids = [new_id() for _ in range(count)]
    define = "INSERT INTO definitions (digest, body) VALUES ('f', '{\"id\": \"ada\"}') ON CONFLICT DO NOTHING"
    database.write(lambda c: c.execute(text(define)))
    for start in range(0, count, 20):
        some = ids[start : start + 20]
        database.write(lambda c, some=some: [_project(c, id_) for id_ in some])
    with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("ANALYZE"))


def _project(connection: Any, id_: str) -> None:
    values = {"id": id_, "task": f"t-{id_}", "run": f"r-{id_}", "events": EVENTS, "bytes": BYTES}
    values["old"] = int(time.time() * 1000) - 400 * DAY_MS
    for statement in STATEMENTS:
        connection.execute(text(statement), values)


def _daily(settings: Settings, database: Database) -> None:
    with database.read() as connection:
        some = [row.id for row in connection.execute(text("SELECT id FROM projects ORDER BY random() LIMIT 20"))]
    looks: dict[str, Callable[[str], Any]] = {
        "a page of 200 events": lambda id_: _read(database, lambda c: events.after(c, id_, 500, limit=200)),
        "the project, whole": lambda id_: _read(database, lambda c: views.project(c, id_, settings)),
        "one more event": lambda id_: database.write(lambda c: events.append(c, id_, [Event("output", {"text": "x"})])),
        "a list of projects": lambda _: _read(database, lambda c: views.project_list(c, "local", limit=50)),
        "a scrape of /metrics": lambda _: metrics.exposition(settings),
    }
    for name, look in looks.items():
        look(some[0])
        times = [_timed(lambda look=look, id_=id_: look(id_)) * 1000 for id_ in some]  # type: ignore[misc]
        sys.stdout.write(f"  {name:<24} {statistics.median(times):8.1f} ms (worst {max(times):.1f})\n")


def _prune(settings: Settings) -> None:
    policy = pruning.Policy(history=30)
    begun = time.monotonic()
    found = pruning.look(settings, policy).to_json()["history"]
    looked = time.monotonic() - begun
    rows = sum(count for name, count in found.items() if name != "projects")
    took = _timed(lambda: pruning.prune(settings, policy, by="benchmark"))
    sys.stdout.write(f"  a look at what is too old {looked * 1000:8.0f} ms\n")
    sys.stdout.write(f"  {rows:,} rows of history taken away in {took:.0f} s ({rows / took:,.0f} a second)\n")


def _sizes(database: Database) -> None:
    query = "SELECT relname, pg_total_relation_size(oid) AS size FROM pg_class WHERE relname IN ('events', 'messages', "
    query += "'checkpoints') ORDER BY relname"
    with database.read() as connection:
        sizes = ", ".join(f"{row.relname} {row.size / 1e6:,.0f} MB" for row in connection.execute(text(query)))
    sys.stdout.write(f"  on disk: {sizes}\n")


def _read(database: Database, look: Callable[[Any], Any]) -> Any:
    with database.read() as connection:
        return look(connection)


def _timed(work: Callable[[], Any]) -> float:
    begun = time.monotonic()
    work()
    return time.monotonic() - begun


if __name__ == "__main__":
    sys.exit(main())
