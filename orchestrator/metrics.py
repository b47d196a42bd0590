"""What Prometheus scrapes: how much waits, runs, costs and fails.

Nothing is counted in memory, so that every process says the same and a restart loses nothing. What is open is read at
that moment, by indices. Sums over all runs there ever were come from `tallies`, which bounds what they may cost. Names
of projects, agents or owners are in none of it.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy import Connection, Row, Select, func, select

from orchestrator import tallies
from orchestrator.settings import Settings
from orchestrator.states import PROJECT_ENDED, RUN_ENDED, RUN_OPEN, RUN_PARKED
from orchestrator.store import tables, workers
from orchestrator.store.database import Database, get_database, now_ms
from orchestrator.store.tables import projects, runs, signals
from registry.queues import DEFAULT, names

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
#: What runs count as whose queue no rule names and no worker serves: a label has no more values than there are queues.
OTHER: Final = "other"
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
    registry.register(_Rows(get_database(settings), names(settings.queues)))
    return generate_latest(registry)


class _Rows(Collector):
    def __init__(self, database: Database, queues: Sequence[str]) -> None:
        self._database = database
        self._queues = queues

    def collect(self) -> Iterator[Metric]:
        yield from _totals(tallies.of(self._database))
        with self._database.read() as connection:
            now = int(connection.execute(select(now_ms())).scalar_one())
            rows = connection.execute(open_runs()).all()
            yield from _states(rows)
            yield from _model_errors(rows)
            yield from _queues(rows, workers.slots(connection), self._queues, now)
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


def _queues(
    rows: Sequence[Row[Any]], served: Mapping[str, tuple[int, int]], ruled: Sequence[str], now: int
) -> Iterator[Metric]:
    """Of every queue that a rule names or a worker serves: what waits, what works, and who is there for it."""
    known = sorted({*ruled, *served})
    waits, works, oldest = Counter[str](), Counter[str](), dict[str, int]()
    for row in rows:
        name = row.queue or DEFAULT
        name = name if name in known else OTHER
        if row.status == "queued":
            waits[name] += row.sent
            oldest[name] = min(oldest.get(name, now), row.oldest or now)
        elif row.status == "running":
            works[name] += row.many
    strays = [OTHER] if waits[OTHER] or works[OTHER] else []
    ages = {name: max(0, now - oldest.get(name, now)) / 1000 for name in [*known, *strays]}
    slots, processes = ({name: served.get(name, (0, 0))[place] for name in known} for place in (1, 0))
    for metric, words, values in (
        ("depth", "Runs whose wake-up is sent and that no worker has claimed, by queue.", waits),
        ("oldest_seconds", "Age of the oldest run that waits for a free slot, by queue.", ages),
        ("active", "Runs that workers carry, by queue.", works),
        ("slots", "Slots of living workers that serve a queue; those of a worker count for each it serves.", slots),
        ("workers", "Worker processes that serve a queue.", processes),
    ):
        gauge = GaugeMetricFamily(f"officina_queue_{metric}", words, labels=["queue"])
        for name in [*known, *strays]:
            gauge.add_metric([name], float(values.get(name, 0)))
        yield gauge


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
    w = tables.workers.c
    sums: tuple[Any, ...] = (func.count(), func.sum(w.slots), func.sum(w.active))
    row = connection.execute(select(*sums).where(w.stopped_at.is_(None), w.seen_at > now - workers.SILENT_MS)).one()
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
