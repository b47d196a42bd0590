"""W4: 1,000 runs that wait for a person, in 50 projects, and what an answer takes, beside a Celery job published then.

Each wants to write a file. What they hold while they wait is looked at as well: slots, threads, memory.
"""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

from sqlalchemy import func, select

from benchmarks import projects
from benchmarks.measure import Bar, Figure, tell
from benchmarks.stack import PATIENCE_S, Stack, wait
from orchestrator.producer import submit
from orchestrator.settings import Settings
from orchestrator.signals import answer
from orchestrator.store.tables import runs, signals
from registry.ids import new_id

PROJECTS, EACH = 50, 20
#: Answers given one after the other, and the threads that give all others.
ONE_BY_ONE, ANSWERERS = 40, 4
#: Seconds of rest before memory is read: what the last work left behind is given back by then.
REST_S = 2.0


class _Officina:
    def __init__(self, stack: Stack, settings: Settings, many: int) -> None:
        self.stack, self.settings, self.crew = stack, settings, stack.crew(settings)
        self.count = many * EACH
        self.files = [
            projects.write(stack.folder_of("w4"), projects.asker(), tasks=EACH, turns=[]) for _ in range(many)
        ]

    def park(self) -> list[str]:
        """Submits them; the open questions once all runs wait."""
        made = [submit(file, settings=self.settings).project_id for file in self.files]
        mine = (signals.c.project_id.in_(made), signals.c.status == "open")
        wait(lambda: len(self.stack.rows(select(signals.c.id).where(*mine), self.settings)) == self.count, 0.1)
        wait(lambda: self.running == 0, 0.1)
        self.made = made
        return [row.id for row in self.stack.rows(select(signals.c.id).where(*mine), self.settings)]

    @property
    def running(self) -> int:
        """Slots that are taken."""
        query = select(func.count()).select_from(runs).where(runs.c.status.in_(("running", "queued")))
        return int(self.stack.rows(query, self.settings)[0][0])

    def one_by_one(self, asked: Sequence[str]) -> float:
        """Median milliseconds from an answer to the end of its run."""
        return median(self._one(signal) for signal in asked)

    def _one(self, signal: str) -> float:
        run_id = self.stack.rows(select(signals.c.run_id).where(signals.c.id == signal), self.settings)[0][0]
        ended = select(runs.c.ended_at).where(runs.c.id == run_id)
        begun = time.time()
        self._answer(signal)
        wait(lambda: self.stack.rows(ended, self.settings)[0][0] is not None, 0.002)
        return (float(self.stack.rows(ended, self.settings)[0][0]) / 1000 - begun) * 1000

    def all_at_once(self, asked: Sequence[str]) -> float:
        """Milliseconds until all have ended."""
        begun = time.time()
        with ThreadPoolExecutor(ANSWERERS) as pool:
            list(pool.map(self._answer, asked))
        return (self.stack.ended(self.made, self.settings) - begun) * 1000

    def _answer(self, signal: str) -> None:
        answer(self.settings, signal, option="Do it", by="bench")


class _Floor:
    def __init__(self, stack: Stack, count: int) -> None:
        self.floors, self.count = stack.floor, count
        self.client = self.floors.redis_at(self.floors.app.conf.broker_url)
        self.folder = stack.folder_of("w4-floor")
        self.folder.mkdir(parents=True)

    def park(self) -> list[str]:
        self.run, keys = new_id(), [str(n) for n in range(self.count)]
        for key in keys:
            self.floors.park.delay(self.run, key)
        wait(lambda: int(self.client.get(f"{self.run}:parked") or 0) == self.count)
        return keys

    def one_by_one(self, keys: Sequence[str]) -> float:
        return median(self._one(key) for key in keys) * 1000

    def _one(self, key: str) -> float:
        self._resume(key)
        return self._done()

    def all_at_once(self, keys: Sequence[str]) -> float:
        begun = time.perf_counter()
        with ThreadPoolExecutor(ANSWERERS) as pool:
            list(pool.map(self._resume, keys))
        for _ in keys:
            self._done()
        return (time.perf_counter() - begun) * 1000

    def _resume(self, key: str) -> None:
        self.floors.resume.delay(self.run, key, str(Path(self.folder)), time.time())

    def _done(self) -> float:
        found = self.client.blpop(f"{self.run}:done", PATIENCE_S)
        if found is None:
            raise RuntimeError("the floor's job did not end")
        return float(found[1])


def measure(stack: Stack, rounds: int, *, quick: bool) -> list[Figure]:
    """What workers hold while all wait; milliseconds from an answer to its run's end, and of all answers at once."""
    many = PROJECTS // 5 if quick else PROJECTS
    office, floor = _Officina(stack, stack.office("parked"), many), _Floor(stack, many * EACH)
    found: dict[str, list[float]] = {name: [] for name in ("before", "held", "threads", "slots", "one", "all")}
    bare: dict[str, list[float]] = {"one": [], "all": []}
    _round(office, {name: [] for name in found})  # threads, connections and caches are there from now on
    for number in range(rounds):
        for turn in ("floor", "officina")[:: 1 if number % 2 == 0 else -1]:
            if turn == "floor":
                keys = floor.park()
                bare["one"].append(floor.one_by_one(keys[:ONE_BY_ONE]))
                bare["all"].append(floor.all_at_once(keys[ONE_BY_ONE:]))
            else:
                _round(office, found)
        tell(f"W4, round {number + 1} of {rounds}: " + ", ".join(f"{k} {v[-1]:.3g}" for k, v in found.items()))
    count = office.count
    waiting = f"while {count} runs wait for people"
    each, published = "one answer to the end of its run", "a job published at the answer"
    return [
        Figure("W4", f"slots taken {waiting}", "", found["slots"], bar=Bar(0.5, "value")),
        Figure("W4", f"more threads {waiting}", "", found["threads"], bar=Bar(0.5, "value")),
        Figure("W4", f"memory {waiting}", "MB", found["held"], "before", found["before"], Bar(1.02)),
        Figure("W4", each, "ms", found["one"], published, bare["one"], Bar(2)),
        Figure("W4", f"{count - ONE_BY_ONE} answers at once", "ms", found["all"], published, bare["all"], Bar(1.5)),
    ]


def _round(office: _Officina, found: dict[str, list[float]]) -> None:
    time.sleep(REST_S)
    memory, threads = office.crew.memory_mb, office.crew.threads
    asked = office.park()
    time.sleep(REST_S)
    found["before"].append(memory)
    found["held"].append(office.crew.memory_mb)
    found["threads"].append(max(0, office.crew.threads - threads))
    found["slots"].append(office.running)
    found["one"].append(office.one_by_one(asked[:ONE_BY_ONE]))
    found["all"].append(office.all_at_once(asked[ONE_BY_ONE:]))
