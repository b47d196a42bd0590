"""What every command shares: JSON and lines on standard output, and the database opened to look."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from registry import masking
from registry.base import Json
from registry.errors import Refused

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from orchestrator.settings import Settings


def say(text: str = "") -> None:
    """One line of the answer, on standard output."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def note(text: str) -> None:
    """A remark that is no part of the answer, on standard error."""
    sys.stderr.write(masking.mask_text(text) + "\n")
    sys.stderr.flush()


def say_json(value: Json) -> None:
    """One line of JSON, readable where the terminal can write it and escaped where it cannot."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    say(text)


@contextmanager
def looking(settings: "Settings") -> "Iterator[Connection]":
    """A transaction that only looks.

    Raises:
        Refused: `no_database` when the SQLite file is not there; looking makes none.
    """
    from orchestrator.store.database import get_database

    database = get_database(settings)
    name = database.url.database
    if database.sqlite and name and name != ":memory:":
        from pathlib import Path

        if not Path(name).exists():
            raise Refused(
                f"there is no database at {name} yet: `officina up` starts a stack, `officina submit` makes one",
                code="no_database",
            )
    with database.read() as connection:
        yield connection
