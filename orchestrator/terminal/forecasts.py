"""The page of `plan`: what a project would do, laid out for reading."""

from collections.abc import Iterator, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from orchestrator.terminal.outline import outline
from orchestrator.terminal.pages import console
from orchestrator.terminal.wording import duration, money, one_line, several

View = dict[str, Any]

_PLAYERS = {
    "stand-in": "the stand-in plays the model: no model is called, and nothing is spent",
    "model": "costs are estimates; worst is what the limits let happen",
    "nobody": "no model is configured, so costs are unknown and submit would refuse: docs/models.md, or --rehearse",
}


def print_forecast(found: View) -> None:
    """Head, tasks as an outline, where a person is asked, team."""
    out = console()
    out.print(Text(one_line(found["title"], 200), style="bold"))
    out.print(Text("  ".join(_facts(found)), style="dim"))
    out.print(Text(_PLAYERS[found["player"]], style="dim"))
    out.print()
    if not found["planned"]:
        out.print("The planner makes the tasks from the brief once it is submitted; they cannot be told before.")
        return
    out.print(_tasks(found["tasks"]))
    for head, lines in (("Asks you", _asks(found["tasks"])), ("Not known before", _unknown(found["tasks"]))):
        shown = list(lines)
        if shown:
            out.print()
            out.print(Text(head, style="bold"))
            out.print(_pairs(shown))
    out.print()
    out.print(Text("Team", style="bold"))
    out.print(_pairs([(member["id"], _work(member)) for member in found["team"]]))


def _facts(found: View) -> Iterator[str]:
    yield several(len(found["tasks"]), "task") if found["planned"] else "no tasks yet"
    cost = found["costUsd"]
    yield f"cost {_money(cost['low'])} low, {_money(cost['likely'])} likely, {_money(cost['worst'])} worst"
    yield f"at most {money(found['limits']['maxCostUsd'])}, {found['limits']['maxParallel']} runs at once"
    if found["mode"]:
        yield f"mode {found['mode']}"


def _tasks(tasks: Sequence[View]) -> Table:
    by_key = {task["key"]: task for task in tasks}
    table = _table("task", "agent", "limits", "low", "likely", "worst")
    for line in outline({key: task["dependsOn"] for key, task in by_key.items()}):
        task = by_key[line.key]
        also = f"  also after {', '.join(line.also_after)}" if line.also_after else ""
        cost = task["costUsd"]
        table.add_row(
            Text(f"{line.guides}{task['key']}{also}", overflow="fold"),
            f"{one_line(task['agent'], 30)} ({task['tier']})",
            ", ".join(_limits(task["limits"])),
            *(_money(cost[name]) for name in ("low", "likely", "worst")),
        )
    return table


def _limits(limits: View) -> Iterator[str]:
    if limits["turns"] is not None:
        yield several(limits["turns"], "turn")
    if limits["maxSteps"] is not None:
        yield several(limits["maxSteps"], "step") + (", then asks" if limits["policy"] == "ask" else "")
    if limits["maxTokens"] is not None:
        yield several(limits["maxTokens"], "token")
    if limits["deadlineMs"] is not None:
        yield duration(limits["deadlineMs"])


def _asks(tasks: Sequence[View]) -> Iterator[tuple[str, str]]:
    for task in tasks:
        yield from ((task["key"], f"{gated['skill']}: {gated['reason']}") for gated in task["asks"])
        yield from ((task["key"], f"at {stop['node']}: {stop['reason']}") for stop in task["stops"])
        if task["mayAsk"]:
            yield task["key"], f"perhaps {', '.join(g['skill'] for g in task['mayAsk'])}: it depends on the call"


def _unknown(tasks: Sequence[View]) -> Iterator[tuple[str, str]]:
    """Each thing once, with the tasks it holds for."""
    by_words: dict[str, list[str]] = {}
    for task in tasks:
        for words in task["unknown"]:
            by_words.setdefault(words, []).append(task["key"])
    for words, keys in by_words.items():
        yield ", ".join(keys) if len(keys) <= 3 else several(len(keys), "task"), words


def _work(member: View) -> str:
    does = ", ".join(member["tasks"]) if len(member["tasks"]) <= 8 else several(len(member["tasks"]), "task")
    who = one_line(member["name"], 40) + (f", {member['role']}" if member["role"] else "")
    return f"{who}: {does or 'no task of its own'}"


def _money(usd: float | None) -> str:
    return "unknown" if usd is None else money(usd)


def _pairs(rows: Sequence[tuple[str, str]]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, words in rows:
        table.add_row(one_line(name, 40), Text(one_line(words, 300)))
    return table


def _table(*heads: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", show_edge=False)
    for head in heads:
        table.add_column(head, overflow="fold", justify="right" if head in ("low", "likely", "worst") else "left")
    return table
