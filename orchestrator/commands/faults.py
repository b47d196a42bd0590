"""From an exception to what a person at a terminal reads: a line a fault, and an exit code (spec: design 7)."""

import os
import sys
import traceback
from collections.abc import Iterator

from orchestrator.commands.output import note
from registry import masking
from registry.errors import OfficinaError, WrongUse

WRONG_USE = 2
FAILED = 1


def report(error: Exception) -> int:
    """Prints the error, one line a fault, and gives the exit code; with OFFICINA_DEBUG=1 the traceback as well."""
    if os.environ.get("OFFICINA_DEBUG") == "1":
        sys.stderr.write(masking.mask_text("".join(traceback.format_exception(error))))
    for line in _lines(error):
        note(" ".join(line.splitlines()))
    return WRONG_USE if isinstance(error, WrongUse) or _is_setting(error) else FAILED


def _lines(error: Exception) -> Iterator[str]:
    if isinstance(error, WrongUse) and error.faults:
        yield from map(str, error.faults)
    elif isinstance(error, OfficinaError):
        yield f"{error.code}: {error.message}"
    elif _is_setting(error):
        yield from _settings(error)
    else:
        yield _foreign(error)


def _is_setting(error: Exception) -> bool:
    """Whether a setting cannot be used: one of the wrong kind, or JSON that does not parse."""
    judged = getattr(error, "title", None) == "Settings" and hasattr(error, "errors")
    return judged or type(error).__name__ == "SettingsError"


def _settings(error: Exception) -> Iterator[str]:
    if not hasattr(error, "errors"):
        name = "OFFICINA_" + str(error).partition('"')[2].partition('"')[0].upper()
        yield f"{name}: invalid_json: is no JSON; single values are set as {name}__…"
        return
    from orchestrator.settings import variables
    from registry.graph.findings import nearest

    for fault in error.errors(include_url=False, include_input=False):
        name = "OFFICINA_" + "__".join(str(part) for part in fault["loc"]).upper()
        if fault["type"] == "extra_forbidden":
            yield f"{name}: unknown_field: there is no such setting{nearest(name, variables())}"
        else:
            yield f"{name}: invalid_setting: {fault['msg'].removeprefix('Value error, ')}"


def _foreign(error: Exception) -> str:
    """Errors of the parts we stand on, told by where their class lives: importing them here would cost every start."""
    home, first = type(error).__module__.split(".")[0], _first_line(error)
    if home == "sqlalchemy":
        if any(words in first for words in ("no such table", "no such column", "UndefinedTable", "UndefinedColumn")):
            return "schema_outdated: the database is not at this release: run `officina db upgrade`"
        return f"database: {first}"
    if home in ("redis", "kombu", "amqp"):
        return f"broker: {first}; `officina doctor` tests every connection"
    return f"{type(error).__name__}: {first} (OFFICINA_DEBUG=1 shows where)"


def _first_line(error: Exception) -> str:
    return next(iter(str(getattr(error, "orig", None) or error).splitlines()), "no message")
