"""Sums over all runs there ever were, for the metrics: counted from the rows, and never at any price.

To count them takes a look at every run. As long as that is quick, each scrape counts anew. Later a scrape gets the last
count at once, and the next one is made behind it, in at most a fiftieth of the time.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary

from sqlalchemy import func, select

from orchestrator.states import RUN_ENDED
from orchestrator.store.database import Database, now_ms
from orchestrator.store.house_tables import bygone
from orchestrator.store.tables import runs

log = logging.getLogger(__name__)

#: Seconds a count may take for a scrape to wait for it.
QUICK_S: Final = 0.1
#: Seconds in which a count is as good as new, and how many times as long as it took.
FRESH_S, FRESH_TIMES = 1.0, 50
#: Failed runs of so many milliseconds are looked at for their codes.
LATELY_MS: Final = 3_600_000
#: Failed runs that are looked at most.
MOST_FAILED: Final = 10_000


@dataclass(frozen=True)
class Tally:
    """One count."""

    #: Column -> its sum over all runs.
    sums: Mapping[str, int]
    #: Status -> runs that ended so.
    ended: Mapping[str, int]
    #: Code -> runs that failed with it within an hour.
    failed_lately: Mapping[str, int]
    #: When it was done, on the monotonic clock, and how long it took.
    at: float
    took_s: float

    @property
    def age_s(self) -> float:
        return time.monotonic() - self.at

    @property
    def due(self) -> bool:
        """Whether it is time for the next one."""
        return self.age_s > max(FRESH_S, FRESH_TIMES * self.took_s)


class _Kept:
    """The last count of one database."""

    def __init__(self) -> None:
        self.tally: Tally | None = None
        self.counting = threading.Lock()

    def get(self, database: Database) -> Tally:
        known = self.tally
        if known is not None and not known.due:
            return known
        if known is None or known.took_s <= QUICK_S:
            with self.counting:
                if self.tally is known:  # nobody counted while we waited
                    self.tally = count(database)
                assert self.tally is not None
                return self.tally
        if self.counting.acquire(blocking=False):
            threading.Thread(target=self._behind, args=(database,), name="tally", daemon=True).start()
        return known

    def _behind(self, database: Database) -> None:
        try:
            self.tally = count(database)
        except Exception as error:  # the last one stands, and the next scrape tries again
            log.warning("runs could not be counted: %s", error)
        finally:
            self.counting.release()


_kept: WeakKeyDictionary[Database, _Kept] = WeakKeyDictionary()
_lock = threading.Lock()


def of(database: Database) -> Tally:
    """The sums as they stood a moment ago; how long ago, the tally says."""
    with _lock:
        kept = _kept.setdefault(database, _Kept())
    return kept.get(database)


def count(database: Database) -> Tally:
    """Looks at every run and at the sums of those that were pruned, and once more at those that failed lately."""
    begun = time.monotonic()
    r = runs.c
    sums = (r.steps, r.running_ms, r.turns, r.tokens, r.cost_micro)
    query = select(r.status, func.count().label("many"), *(func.sum(one).label(one.name) for one in sums))
    b = bygone.c
    gone = select(b.status, b.runs.label("many"), *(b[one.name] for one in sums))
    lately = (r.status == "failed") & (r.ended_at > now_ms() - LATELY_MS)
    with database.read() as connection:
        there = connection.execute(query.group_by(r.status)).all()
        rows = [*there, *connection.execute(gone)]
        any_failed = any(row.status == "failed" for row in there)
        errors = select(r.error).where(lately).limit(MOST_FAILED)
        failed = connection.execute(errors).scalars().all() if any_failed else []
    done, ended = time.monotonic(), Counter[str]()
    for row in rows:
        ended[row.status] += row.many
    return Tally(
        sums={one.name: sum(int(row._mapping[one.name] or 0) for row in rows) for one in sums},
        ended={status: many for status, many in ended.items() if status in RUN_ENDED},
        failed_lately=Counter(str((error or {}).get("code") or "unknown")[:60] for error in failed),
        at=done,
        took_s=done - begun,
    )
