"""Moments in an input: ISO 8601 with an offset, so that they mean one point in time."""

from datetime import datetime
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, WithJsonSchema

_EXPECTED: Final = "ISO 8601 with an offset is needed, such as 2027-03-01T09:00:00+01:00"


def _parsed(value: Any) -> datetime:
    # A number is not taken for seconds since 1970, nor a moment without an offset for one of some zone.
    if not isinstance(value, str):
        raise ValueError(f"is no text; {_EXPECTED}")
    try:
        moment = datetime.fromisoformat(value)
        moment.timestamp()
    except (ValueError, OverflowError):
        raise ValueError(f"is no moment; {_EXPECTED}") from None
    if moment.tzinfo is None:
        raise ValueError(f"has no offset; {_EXPECTED}")
    return moment


#: A datetime that knows its offset.
Moment = Annotated[
    datetime,
    BeforeValidator(_parsed),
    WithJsonSchema({"type": "string", "format": "date-time", "description": "ISO 8601 with an offset"}),
]

__all__ = ["Moment"]
