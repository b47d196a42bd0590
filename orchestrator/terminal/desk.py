"""The desk as pages: what waits for a person as a line each, or one signal whole."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from orchestrator.records import wall_ms
from orchestrator.terminal.pages import console
from orchestrator.terminal.prompting import show
from orchestrator.terminal.rendering import answer_command
from orchestrator.terminal.wording import one_line, visible
from registry.base import Json
from registry.jsontext import compact

View = dict[str, Any]

#: Characters of an id that stand for it in a table; a command takes six.
SHORT_ID = 8
#: Characters of an input in a line: enough to know which call it is. Nobody is asked for a yes to a line.
HEAD = 120


def print_signals(found: Sequence[View], places: Mapping[str, str], *, full: bool = False) -> None:
    """A line a signal: id, age, where it comes from, what it wants, the head of its input.

    Args:
        places: titles of projects and keys of tasks, by id.
        full: each one whole instead.
    """
    out = console()
    if not found:
        out.print("nothing waits for you")
        return
    if full:
        for number, signal in enumerate(found):
            out.print(Text("\n" * bool(number) + f"{_from(signal, places)}  {age(wall_ms() - signal['createdAt'])}"))
            print_signal(signal, places)
        return
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", show_edge=False, expand=True)
    for head in ("id", "waits", "from", "wants"):
        table.add_column(head, no_wrap=True)
    table.add_column("", no_wrap=True, overflow="ellipsis", ratio=1)
    now = wall_ms()
    for signal in found:
        status = "" if signal["status"] == "open" else f"{signal['status']}: "
        table.add_row(
            signal["id"][-SHORT_ID:],
            age(now - signal["createdAt"]),
            Text(_from(signal, places)),
            Text(status + _wants(signal), style="yellow" if signal["status"] == "open" else "dim"),
            Text(_head(signal)),
        )
    out.print(table)
    out.print(
        Text(f"whole: officina signals show ID, or --full for all   answer: {_example(found)}", style="dim"),
        soft_wrap=True,
    )


def print_signal(signal: View, places: Mapping[str, str]) -> None:
    """One signal with all that would run; for an open one the command that answers it."""
    out = console()
    show(signal, out, task=places.get(signal.get("taskId") or "", ""))
    if signal["status"] == "open":
        out.print(Text(_command(signal), style="bold"), soft_wrap=True)
        return
    by = f" by {one_line(signal['answeredBy'], 60)}" if signal["answeredBy"] else ""
    out.print(Text(f"{signal['status']}{by}{_said(signal)}"))
    _print_outcome(signal, out)


def age(ms: float) -> str:
    """How long ago, in the one unit that matters."""
    seconds = max(0, round(ms / 1000))
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def _from(signal: View, places: Mapping[str, str]) -> str:
    named = [places.get(signal.get(which) or "", "") for which in ("projectId", "taskId")]
    return " / ".join(one_line(name, 28) for name in named if name)


def _wants(signal: View) -> str:
    skill = (signal.get("action") or {}).get("skill")
    return one_line(skill or signal["kind"], 28)


def _head(signal: View) -> str:
    action = signal.get("action")
    return one_line(compact(action.get("input")) if action else signal["title"], HEAD)


def _example(found: Sequence[View]) -> str:
    first = next((one for one in found if one["status"] == "open"), None)
    return _command(first).replace(first["id"], "ID", 1) if first else 'officina answer ID "Do it"'


def _command(signal: dict[str, Json]) -> str:
    if signal["kind"] in ("notice", "alert", "result"):
        return f"officina signals dismiss {signal['id']}"
    return answer_command(signal)


def _said(signal: View) -> str:
    if signal["status"] != "answered":
        return ""
    return ": rejected" if signal["rejected"] else f": {one_line(compact(signal['answer']), 200)}"


def _print_outcome(signal: View, out: Console) -> None:
    if signal["execution"] == "none":
        return
    out.print(Text(f"what came of it: {signal['execution']}"))
    if signal["result"] is not None:
        out.print(Text(visible(compact(signal["result"]))), soft_wrap=True)
