"""What Prometheus scrapes: how much waits, runs, costs and fails, read from the rows at that moment.

A handful of statements a scrape, each over an index or a small table; nothing is counted in memory, so that every
process says the same and a restart loses nothing. Names of projects, agents or owners are in none of it.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy import Connection, func, select

from orchestrator.settings import Settings
from orchestrator.states import RUN_ENDED
from orchestrator.store.database import get_database, now_ms
from orchestrator.store.tables import projects, runs, signals, workers
from orchestrator.store.workers import SILENT_MS

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
#: Failed runs of so many milliseconds are looked at for their codes.
LATELY_MS: Final = 3_600_000


def exposition(settings: Settings) -> bytes:
    """The metrics as text."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Rows(settings))
    return generate_latest(registry)


class _Rows(Collector):
    def __init__(self, settings: Settings) -> None:
        self._database = get_database(settings)

    def collect(self) -> Iterator[Metric]:
        with self._database.read() as connection:
            now = int(connection.execute(select(now_ms())).scalar_one())
            yield from _open_runs(connection, now)
            yield from _totals(connection)
            yield from _failures(connection, now)
            yield from _projects(connection)
            yield from _signals(connection, now)
            yield from _workers(connection, now)


def _open_runs(connection: Connection, now: int) -> Iterator[Metric]:
    r = runs.c
    query = (
        select(r.status, r.waiting_on, func.count().label("many"), func.min(r.due_at).label("due"))
        .where(r.status.not_in(sorted(RUN_ENDED)))
        .group_by(r.status, r.waiting_on)
    )
    rows = connection.execute(query).all()
    states: Counter[str] = Counter()
    parked = GaugeMetricFamily("officina_runs_parked", "Parked runs by what they wait for.", labels=["on"])
    for row in rows:
        states[row.status] += row.many
        if row.status in ("needs_input", "waiting"):
            parked.add_metric([row.waiting_on or "signals"], row.many)
    open_ = GaugeMetricFamily("officina_runs_open", "Runs that have not ended, by state.", labels=["status"])
    for status in ("queued", "running", "needs_input", "waiting"):
        open_.add_metric([status], states[status])
    yield open_
    yield parked
    oldest = connection.execute(select(func.min(r.created_at)).where(r.status == "queued", r.wakes > 0)).scalar()
    age = GaugeMetricFamily("officina_queue_oldest_seconds", "Age of the oldest run that waits for a free slot.")
    age.add_metric([], max(0, now - oldest) / 1000 if oldest else 0)
    yield age


def _totals(connection: Connection) -> Iterator[Metric]:
    """Sums over all runs: their rates say how long a step takes, and what an hour costs."""
    r = runs.c
    sums = (func.sum(r.steps), func.sum(r.running_ms), func.sum(r.turns), func.sum(r.tokens), func.sum(r.cost_micro))
    row = connection.execute(select(*sums)).one()
    named = (
        ("officina_steps", "Steps of runs.", 1),
        ("officina_running_seconds", "Time runs were at work; over officina_steps_total it is the latency.", 1_000),
        ("officina_model_calls", "Model calls of runs.", 1),
        ("officina_tokens", "Tokens of runs.", 1),
        ("officina_cost_usd", "USD spent, where prices are known.", 1_000_000),
    )
    for (name, words, unit), value in zip(named, row, strict=True):
        counter = CounterMetricFamily(name, words)
        counter.add_metric([], float(value or 0) / unit)
        yield counter
    ended = CounterMetricFamily("officina_runs_ended", "Runs that have ended, by how.", labels=["status"])
    by_status = select(r.status, func.count()).where(r.status.in_(sorted(RUN_ENDED))).group_by(r.status)
    found = {row[0]: row[1] for row in connection.execute(by_status)}
    for status in sorted(RUN_ENDED):
        ended.add_metric([status], found.get(status, 0))
    yield ended


def _failures(connection: Connection, now: int) -> Iterator[Metric]:
    r = runs.c
    lately = (r.status == "failed") & (r.ended_at > now - LATELY_MS)
    codes: Counter[str] = Counter()
    for error in connection.execute(select(r.error).where(lately).limit(10_000)).scalars():
        codes[str((error or {}).get("code") or "unknown")[:60]] += 1
    failed = GaugeMetricFamily(
        "officina_runs_failed_last_hour", "Runs that failed within an hour, by code.", labels=["code"]
    )
    for code, many in codes.items():
        failed.add_metric([code], many)
    yield failed
    backing = func.count().filter(r.waiting_on == "backoff")
    errors = func.sum(r.backoffs)
    row = connection.execute(select(backing, errors).where(r.status.not_in(sorted(RUN_ENDED)))).one()
    waits = GaugeMetricFamily("officina_model_backoffs", "Open runs that wait because the model failed them.")
    waits.add_metric([], row[0] or 0)
    yield waits
    in_a_row = GaugeMetricFamily("officina_model_errors_open", "Model calls that failed in a row, over all open runs.")
    in_a_row.add_metric([], float(row[1] or 0))
    yield in_a_row


def _projects(connection: Connection) -> Iterator[Metric]:
    p = projects.c
    query = select(p.status, func.count()).where(p.kind == "project").group_by(p.status)
    gauge = GaugeMetricFamily("officina_projects", "Projects by state.", labels=["status"])
    for row in connection.execute(query):
        gauge.add_metric([row[0]], row[1])
    yield gauge


def _signals(connection: Connection, now: int) -> Iterator[Metric]:
    s = signals.c
    query = select(s.kind, func.count().label("many"), func.min(s.created_at).label("first"))
    open_ = GaugeMetricFamily("officina_signals_open", "Questions that wait for a person, by kind.", labels=["kind"])
    age = GaugeMetricFamily(
        "officina_signal_oldest_seconds", "Age of the oldest open signal, by kind.", labels=["kind"]
    )
    for row in connection.execute(query.where(s.status == "open").group_by(s.kind)):
        open_.add_metric([row.kind], row.many)
        age.add_metric([row.kind], max(0, now - row.first) / 1000)
    yield open_
    yield age


def _workers(connection: Connection, now: int) -> Iterator[Metric]:
    w = workers.c
    sums: tuple[Any, ...] = (func.count(), func.sum(w.slots), func.sum(w.active))
    row = connection.execute(select(*sums).where(w.stopped_at.is_(None), w.seen_at > now - SILENT_MS)).one()
    named = (
        ("officina_workers", "Worker processes seen within a minute."),
        ("officina_slots", "Runs they can carry at once."),
        ("officina_slots_used", "Runs they carry."),
    )
    for (name, words), value in zip(named, row, strict=True):
        gauge = GaugeMetricFamily(name, words)
        gauge.add_metric([], float(value or 0))
        yield gauge


__all__ = ["CONTENT_TYPE", "exposition"]
