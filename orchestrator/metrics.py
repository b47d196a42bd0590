"""What Prometheus scrapes: how much waits, runs, costs and fails.

Nothing is counted in memory, so that every process says the same and a restart loses nothing. What is open is read at
that moment, by indices. Sums over all runs there ever were come from `tallies`, which bounds what they may cost. Names
of projects, agents or owners are in none of it.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy import Connection, Row, Select, func, select

from orchestrator import tallies
from orchestrator.settings import Settings
from orchestrator.states import PROJECT_ENDED, RUN_ENDED, RUN_OPEN, RUN_PARKED
from orchestrator.store.database import Database, get_database, now_ms
from orchestrator.store.tables import projects, runs, signals, workers
from orchestrator.store.workers import SILENT_MS
from registry.queues import DEFAULT

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
#: Name, column, words and unit of each sum over all runs.
_SUMS: Final = (
    ("officina_steps", "steps", "Steps of runs.", 1),
    ("officina_running_seconds", "running_ms", "Time at work; its rate over that of steps is their latency.", 1_000),
    ("officina_model_calls", "turns", "Model calls of runs.", 1),
    ("officina_tokens", "tokens", "Tokens of runs.", 1),
    ("officina_cost_usd", "cost_micro", "USD spent, where prices are known.", 1_000_000),
)


def exposition(settings: Settings) -> bytes:
    """The metrics as text."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Rows(get_database(settings)))
    return generate_latest(registry)


class _Rows(Collector):
    def __init__(self, database: Database) -> None:
        self._database = database

    def collect(self) -> Iterator[Metric]:
        yield from _totals(tallies.of(self._database))
        with self._database.read() as connection:
            now = int(connection.execute(select(now_ms())).scalar_one())
            yield from _open_runs(connection, now)
            yield from _projects(connection)
            yield from _signals(connection, now)
            yield from _workers(connection, now)


def open_runs() -> Select[Any]:
    """Runs that have not ended: those of open projects, found by an index, however many have ended before."""
    r = runs.c
    # No join: SQLite would look through all runs for the projects' sake.
    open_projects = select(projects.c.id).where(projects.c.status.not_in(sorted(PROJECT_ENDED)))
    return (
        select(
            r.status,
            r.waiting_on,
            r.queue,
            func.count().label("many"),
            func.count().filter(r.wakes > 0).label("sent"),
            func.min(r.created_at).filter(r.wakes > 0).label("oldest"),
            func.sum(r.backoffs).label("backoffs"),
        )
        .where(r.project_id.in_(open_projects), r.status.in_(sorted(RUN_OPEN)))
        .group_by(r.status, r.waiting_on, r.queue)
    )


def _open_runs(connection: Connection, now: int) -> Iterator[Metric]:
    rows = connection.execute(open_runs()).all()
    yield from _states(rows)
    yield from _queue([row for row in rows if row.status == "queued"], now)
    yield from _model_errors(rows)


def _states(rows: Sequence[Row[Any]]) -> Iterator[Metric]:
    states: Counter[str] = Counter()
    waits: Counter[str] = Counter()
    for row in rows:
        states[row.status] += row.many
        if row.status in RUN_PARKED:
            waits[row.waiting_on or "signals"] += row.many
    parked = GaugeMetricFamily("officina_runs_parked", "Parked runs by what they wait for.", labels=["on"])
    for on, many in sorted(waits.items()):
        parked.add_metric([on], many)
    yield parked
    open_ = GaugeMetricFamily("officina_runs_open", "Runs that have not ended, by state.", labels=["status"])
    for status in sorted(RUN_OPEN):
        open_.add_metric([status], states[status])
    yield open_


def _queue(rows: Sequence[Row[Any]], now: int) -> Iterator[Metric]:
    words = "Runs whose wake-up is sent and that no worker has claimed, by queue."
    depth = GaugeMetricFamily("officina_queue_depth", words, labels=["queue"])
    words = "Age of the oldest run that waits for a free slot, by queue."
    age = GaugeMetricFamily("officina_queue_oldest_seconds", words, labels=["queue"])
    sent: Counter[str] = Counter({DEFAULT: 0})
    oldest: dict[str, int] = {}
    for row in rows:
        name = row.queue or DEFAULT
        sent[name] += row.sent
        oldest[name] = min(oldest.get(name, now), row.oldest or now)
    for name, many in sorted(sent.items()):
        depth.add_metric([name], many)
        age.add_metric([name], max(0, now - oldest.get(name, now)) / 1000)
    yield depth
    yield age


def _totals(tally: tallies.Tally) -> Iterator[Metric]:
    """Sums over all runs: their rates say how long a step takes, and what an hour costs."""
    for name, column, words, unit in _SUMS:
        counter = CounterMetricFamily(name, words)
        counter.add_metric([], tally.sums[column] / unit)
        yield counter
    ended = CounterMetricFamily("officina_runs_ended", "Runs that have ended, by how.", labels=["status"])
    for status in sorted(RUN_ENDED):
        ended.add_metric([status], tally.ended.get(status, 0))
    yield ended
    words = "Runs that failed within an hour, by code."
    failed = GaugeMetricFamily("officina_runs_failed_last_hour", words, labels=["code"])
    for code, many in tally.failed_lately.items():
        failed.add_metric([code], many)
    yield failed
    age = GaugeMetricFamily("officina_totals_age_seconds", "Age of the sums over all runs.")
    age.add_metric([], tally.age_s)
    yield age


def _model_errors(rows: Sequence[Row[Any]]) -> Iterator[Metric]:
    backing_off = sum(row.many for row in rows if row.waiting_on == "backoff")
    waits = GaugeMetricFamily("officina_model_backoffs", "Open runs that wait because the model failed them.")
    waits.add_metric([], backing_off)
    yield waits
    in_a_row = GaugeMetricFamily("officina_model_errors_open", "Model calls that failed in a row, over all open runs.")
    in_a_row.add_metric([], sum(int(row.backoffs or 0) for row in rows))
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
