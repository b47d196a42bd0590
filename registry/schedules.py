"""When a schedule runs: once, every so many minutes, or by five cron fields in a time zone (spec: skills 7.22, 19).

Pure: times go in and come out as epoch milliseconds, and nothing here reads a clock.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from importlib import resources
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Final, Literal
from zoneinfo import ZoneInfo

from registry.base import Json
from registry.times import epoch_ms

if TYPE_CHECKING:
    from cronsim import CronSim

Kind = Literal["at", "every", "cron"]

MINUTE_MS: Final = 60_000
#: What five fields may be made of. `L`, `#` and a sixth field, which the library knows, are no cron of other tools.
_FIELD_CHARACTERS: Final = frozenset("0123456789*,-/") | frozenset("abcdefghijklmnopqrstuvwxyz")
_NAMES: Final = frozenset(
    "jan feb mar apr may jun jul aug sep oct nov dec mon tue wed thu fri sat sun".split()  # noqa: SIM905
)


@dataclass(frozen=True)
class Schedule:
    """What runs when. Times are epoch milliseconds."""

    title: str
    kind: Kind
    #: A moment in epoch milliseconds, minutes, or five cron fields.
    spec: str
    #: IANA name.
    timezone: str
    #: {kind: prompt, text} | {kind: skill, skill, input} | {kind: generator, generatorId, inputs}
    action: dict[str, Json]
    #: From when `every` counts.
    anchor: int
    start_at: int | None = None
    end_at: int | None = None
    max_runs: int | None = None

    def times(self, after: int) -> Iterator[int]:
        """Its times strictly after one, in order; a `cron` may give endlessly many."""
        for moment in self._times(max(after, (self.start_at or 0) - 1)):
            if self.end_at is not None and moment > self.end_at:
                return
            yield moment

    def next_time(self, after: int) -> int | None:
        """The next time strictly after one; None: never again."""
        return next(self.times(after), None)

    @property
    def words(self) -> str:
        """When it runs, for people."""
        if self.kind == "at":
            return f"once, at {local(int(self.spec), self.timezone)}"
        if self.kind == "every":
            return "every minute" if self.spec == "1" else f"every {self.spec} minutes"
        explained = _cron(self.spec, datetime.fromtimestamp(0, tz=UTC)).explain()
        return f"{explained[:1].lower()}{explained[1:]}, {self.timezone}"

    def _times(self, after: int) -> Iterator[int]:
        if self.kind == "at":
            return iter([int(self.spec)] if int(self.spec) > after else [])
        if self.kind == "every":
            return self._every(after)
        return self._by_cron(after)

    def _every(self, after: int) -> Iterator[int]:
        # Real time: neither zone nor clock change plays a part.
        step, first = int(self.spec) * MINUTE_MS, self.start_at
        begin = first if first is not None else self.anchor + step
        moment = begin if begin > after else begin + ((after - begin) // step + 1) * step
        while True:
            yield moment
            moment += step

    def _by_cron(self, after: int) -> Iterator[int]:
        begin = datetime.fromtimestamp(after / 1000, tz=zone(self.timezone))
        moments = (epoch_ms(found) for found in _cron(self.spec, begin))
        return (moment for moment in moments if moment > after)


def check_cron(spec: str) -> str | None:
    """What is wrong with the five fields of a cron line; None: nothing."""
    fields = spec.split(" ")
    if len(fields) != 5 or not all(fields):
        return "has to have five fields parted by one blank: minute, hour, day of month, month, day of week"
    for field in fields:
        low = field.lower()
        words = "".join(c if c.isalpha() else " " for c in low).split()
        if not set(low) <= _FIELD_CHARACTERS or not set(words) <= _NAMES:
            return f"{field!r} is no cron field: numbers, names, * , - and / only"
    from cronsim import CronSimError

    try:
        next(_cron(spec, datetime(2024, 1, 1, tzinfo=UTC)))
    except CronSimError as error:
        return str(error).lower()
    except StopIteration:
        return "never comes due"
    return None


def least_gap(schedule: Schedule, after: int, count: int) -> int | None:
    """Milliseconds between the two closest of the next times; None: there are not two."""
    moments = list(islice(schedule.times(after), count))
    return min((late - soon for soon, late in pairwise(moments)), default=None)


def local(moment: int, timezone: str) -> str:
    """A time as its zone writes it, with offset."""
    return datetime.fromtimestamp(moment / 1000, tz=zone(timezone)).isoformat(timespec="seconds")


@lru_cache(maxsize=1)
def _zones() -> frozenset[str]:
    return frozenset(resources.files("tzdata").joinpath("zones").read_text(encoding="utf-8").split())


def is_zone(name: str) -> bool:
    """Whether the text is the name of a time zone."""
    return name in _zones()


@lru_cache(maxsize=64)
def zone(name: str) -> ZoneInfo:
    """A time zone by its IANA name, from the data that is installed with us: the same on every machine.

    Raises:
        ValueError: there is no such zone.
    """
    if not is_zone(name):
        raise ValueError(f"{name[:60]!r} is no time zone")
    with resources.files("tzdata.zoneinfo").joinpath(*name.split("/")).open("rb") as data:
        return ZoneInfo.from_file(data, key=name)


def _cron(spec: str, begin: datetime) -> "CronSim":
    from cronsim import CronSim

    return CronSim(spec, begin)


__all__ = ["MINUTE_MS", "Kind", "Schedule", "check_cron", "is_zone", "least_gap", "local", "zone"]
