"""Points in time as people and programs write them."""

from datetime import UTC, datetime


def iso(epoch_ms: int) -> str:
    """RFC 3339 in UTC, to the millisecond."""
    moment = datetime.fromtimestamp(epoch_ms / 1000, tz=UTC).isoformat(timespec="milliseconds")
    return moment.replace("+00:00", "Z")


def epoch_ms(moment: datetime) -> int:
    """Epoch milliseconds of a moment with an offset."""
    return round(moment.timestamp() * 1000)
