"""A state as an icon: each has an outline of its own, so that none is told by its colour alone."""

from collections.abc import Mapping
from typing import Final

_RING: Final = "M8 2.2a5.8 5.8 0 1 0 0 11.6a5.8 5.8 0 1 0 0-11.6Z"

#: State or kind of thing -> a path in a square of 16, drawn with a line.
ICONS: Final[Mapping[str, str]] = {
    "planning": "M3 13l.7-3L11 2.7l2.3 2.3L6 12.3ZM9.4 4.3l2.3 2.3",
    "pending": _RING,
    "queued": _RING + "M5.4 8h.01M8 8h.01M10.6 8h.01",
    "running": _RING + "M6.7 5.6l3.7 2.4l-3.7 2.4Z",
    "needs_input": "M2.2 2.8h11.6v8.4H7.4l-3 2.6v-2.6H2.2ZM8 5v2.6M8 9.3h.01",
    "waiting": _RING + "M8 4.8V8l2.2 1.5",
    "completed": _RING + "M5.3 8.3l1.9 1.9l3.6-4.1",
    "partial": _RING + "M8 2.2v11.6M10.5 3.2v9.6",
    "failed": "M5.5 2.2h5l3.3 3.3v5l-3.3 3.3h-5l-3.3-3.3v-5ZM5.9 5.9l4.2 4.2M10.1 5.9l-4.2 4.2",
    "skipped": "M2.2 8h7.6M6.8 5l3 3l-3 3M13.2 3.6v8.8",
    "cancelled": _RING + "M4 12l8-8",
    "decision": "M8 2l5 2v4c0 3-2 5-5 6c-3-1-5-3-5-6V4ZM5.8 8l1.6 1.6l3-3.2",
    "question": _RING + "M6.3 6.3a1.8 1.8 0 1 1 2.6 1.7c-.6.3-.9.6-.9 1.2M8 11.2h.01",
    "interrupt": "M5.5 3v10M10.5 3v10",
    "gate": "M2.5 13.5v-9M13.5 13.5v-9M2.5 6h11M2.5 10h11",
    "budget": _RING + "M9.9 6c-.5-.8-3.6-1-3.6.5c0 1.8 3.7.9 3.7 2.8c0 1.6-3.3 1.4-4 .4M8 4v8",
    "notice": _RING + "M8 7.4v3.6M8 5h.01",
    "alert": "M8 2.4l6.2 11H1.8ZM8 6.6v3M8 11.4h.01",
    "result": "M3.5 1.8h6l3 3v9.4h-9ZM9.5 1.8v3h3M5.5 8h5M5.5 10.6h5",
    "file": "M3.5 1.8h6l3 3v9.4h-9ZM9.5 1.8v3h3",
    "folder": "M1.8 3.5h4.7l1.4 1.7h6.3v8H1.8Z",
    "think": "M8 1.8l1.5 4.7L14.2 8l-4.7 1.5L8 14.2L6.5 9.5L1.8 8l4.7-1.5Z",
    "tool": "M13.8 4.2a3.4 3.4 0 0 1-4.6 4.2L4.6 13a1.6 1.6 0 0 1-2.2-2.2L7 6.2A3.4 3.4 0 0 1 11.4 1.8L9.4 3.9L11.6 6Z",
    "message": "M2.2 2.8h11.6v8.4H7.4l-3 2.6v-2.6H2.2ZM5 5.8h6M5 8.2h4",
    "team": (
        "M6 7.6a2.4 2.4 0 1 0 0-4.8a2.4 2.4 0 1 0 0 4.8ZM1.8 13.2c0-2.7 1.7-4 4.2-4s4.2 1.3 4.2 4"
        "M10.8 3.2a2.2 2.2 0 0 1 0 4.2M12 9.6c1.5.5 2.3 1.7 2.3 3.6"
    ),
    "more": "M6 3.5L10.5 8L6 12.5",
}
_OTHER: Final = "M8 7.2a.8.8 0 1 0 0 1.6a.8.8 0 1 0 0-1.6Z"


def icon(name: str) -> str:
    """The path of an icon; a dot for what has none."""
    return ICONS.get(name, _OTHER)
