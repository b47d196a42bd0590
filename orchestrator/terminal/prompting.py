"""Asking a person in the terminal: exactly what would run, whole, and then one question.

Everything is drawn from the stored signal, never from what an agent says about it. Nothing is cut: a long input
scrolls. What cannot be seen (controls, bidi marks, zero width) is written out.
"""

import json
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from orchestrator.records import UNSET, wall_ms
from orchestrator.terminal.wording import countdown, one_line, several, unseen, visible
from registry.base import Json
from registry.jsontext import JsonFault, parse

#: Languages of `code.execute`, as the highlighter calls them.
_LEXERS: Final = {"python": "python", "javascript": "javascript", "shell": "bash"}
#: A text longer than this, or of several lines, gets a panel of its own.
_SHORT: Final = 60
_YES: Final = frozenset({"do it", "y", "yes"})
_NO: Final = frozenset({"no", "n"})

_HEADS: Final = {"decision": "Your yes is needed", "budget": "Your word on the budget is needed"}
_FRAME: Final[dict[str, Any]] = {"border_style": "yellow", "padding": (1, 2)}

Signal = dict[str, Json]


@dataclass(frozen=True)
class Reply:
    """What the person chose: an option's id, or a payload of their own."""

    option: str | None = None
    payload: Json = UNSET

    def arguments(self) -> dict[str, Json]:
        """As `orchestrator.signals.answer` takes it."""
        return {"payload": self.payload} if self.option is None else {"option": self.option}


#: Shows a signal and gives the answer, or None to leave it open; the text is the title of its task.
Answerer = Callable[[Signal, Console, str], Reply | None]


def answerer(*, ask: bool, yes: bool) -> Answerer | None:
    """How questions are met here: by a standing yes, by asking, or (None) not at all."""
    if yes:
        return _do_it
    return _ask_here if ask else None


def _do_it(signal: Signal, console: Console, task: str) -> Reply | None:
    if signal["kind"] != "decision":  # money and open questions stay a person's own
        return None
    told = f'{_asked(signal)}{f" in {one_line(task, 60)}" if task else ""}: answered "Do it", because --yes says so'
    console.print(Text(told), soft_wrap=True)
    console.print(Text(f"  officina signals --all shows what that was ({signal['id']})", style="dim"), soft_wrap=True)
    return Reply(option="Do it")


def _asked(signal: Signal) -> str:
    skill = (signal.get("action") or {}).get("skill")
    return f"{one_line(skill or signal['title'], 60)}, asked by {one_line(signal.get('agent') or 'Officina', 40)}"


def _ask_here(signal: Signal, console: Console, task: str) -> Reply | None:
    show(signal, console, task=task)
    return ask(signal, console, read_line)


def read_line(question: str) -> str:
    """One line from the terminal; keys struck before the question was shown answer nothing."""
    with suppress(ImportError, OSError):
        import termios

        termios.tcflush(sys.stdin, termios.TCIFLUSH)
    return input(question)


def show(signal: Signal, console: Console, *, task: str = "") -> None:
    """Prints who asks, why, and the exact input in full."""
    console.print(whole(signal, task=task))


def whole(signal: Signal, *, task: str = "", now: int | None = None) -> Group:
    """Who asks, why, and the exact input in full.

    Args:
        task: title of its task.
        now: epoch milliseconds; given, it counts down to the end of the signal's time.
    """
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    who = signal.get("agent") or "Officina"
    facts.add_row("what", Text(visible(signal["title"]), style="bold yellow"))
    facts.add_row("who", Text(visible(who) + (f", in the task {visible(task)!r}" if task else "")))
    action = signal.get("action") or {}
    if action:
        facts.add_row("skill", Text(visible(str(action.get("skill"))), style="bold"))
    if signal.get("reason"):
        facts.add_row("why", Text(visible(signal["reason"])))
    if signal.get("body"):
        facts.add_row("says", Text(visible(signal["body"])))
    if signal.get("digest"):
        facts.add_row("digest", Text(one_line(signal["digest"], 80), style="dim"))
    if signal.get("status") == "open" and signal.get("expiresAt"):
        left = signal["expiresAt"] - (wall_ms() if now is None else now)
        facts.add_row("expires", Text(f"in {countdown(left)}" if left > 0 else "now"))
    short, long = _input(action.get("input")) if action else ([], [])
    title = _HEADS.get(signal["kind"], signal["kind"])
    return Group(Panel(Group(facts, *short), title=title, title_align="left", **_FRAME), *long)


def _input(value: Json) -> tuple[list[RenderableType], list[RenderableType]]:
    """An input, whole: short values in a list, and each long text in a panel of its own with line numbers."""
    fields = value if isinstance(value, dict) else {"input": value}
    long = {key: text for key, text in fields.items() if _is_long(text)}
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for key, short in fields.items():
        if key not in long:
            table.add_row(Text(visible(str(key))), Text(visible(json.dumps(short, ensure_ascii=False, indent=1))))
    lexer = _LEXERS.get(str(fields.get("language")), "text")
    blocks = [_block(str(key), text, lexer if key == "code" else "text") for key, text in long.items()]
    return ([Text(), table] if table.row_count else []), [*blocks]


def _is_long(value: Json) -> bool:
    return isinstance(value, str) and (len(value) > _SHORT or "\n" in value)


def _block(name: str, text: str, lexer: str) -> RenderableType:
    look: dict[str, Any] = {"theme": "ansi_dark", "background_color": "default"}
    code = Syntax(visible(text), lexer, line_numbers=True, word_wrap=True, **look)
    facts = f"{visible(name)}: {several(text.count(chr(10)) + 1, 'line')}, {several(len(text), 'character')}"
    hidden = unseen(text)
    note = Text(f"{several(hidden, 'unseen character')} written out as ⟦U+…⟧", style="bold red") if hidden else None
    return Panel(code, title=Text(facts), title_align="left", subtitle=note, border_style="yellow")


def ask(signal: Signal, console: Console, read: Callable[[str], str]) -> Reply | None:
    """Asks until there is an answer; None when the person leaves it open (an empty line, end of input)."""
    options = signal.get("options") or []
    question = _question(signal, options)
    while True:
        try:
            typed = read(question).strip()
        except EOFError:
            return None
        if not typed:
            console.print(Text("it stays open; answer it later with the command shown"))
            return None
        reply = _understood(typed, signal, options)
        if reply is not None:
            return reply
        console.print(Text(_help(options)))


def _question(signal: Signal, options: list[Any]) -> str:
    if not options:
        return f"Your answer{'' if _is_free(signal) else ' as JSON'} (empty: later) > "
    if signal["kind"] == "decision":
        return f'{_asked(signal)}: "Do it" or "No" (empty: later) > '
    listed = "  ".join(f"{number} {one_line(_label(option), 60)}" for number, option in enumerate(options, 1))
    return f"{listed}\nWhich (empty: later) > "


def _understood(typed: str, signal: Signal, options: list[Any]) -> Reply | None:
    word = typed.strip("\"'").lower()
    if not options:
        try:
            return Reply(payload=parse(typed))
        except JsonFault:
            return Reply(payload={"text": typed}) if _is_free(signal) else None
    if signal["kind"] == "decision" and word in _YES | _NO:
        word = "do it" if word in _YES else "no"
    chosen = [option["id"] for option in options if word == _label(option).lower()]
    if not chosen and word.isdecimal() and 1 <= int(word) <= len(options):
        chosen = [options[int(word) - 1]["id"]]
    if not chosen and _is_free(signal):
        return Reply(payload={"text": typed})
    return Reply(option=chosen[0]) if chosen else None


def _is_free(signal: Signal) -> bool:
    """Whether a question takes any words for an answer, as those an agent asks do."""
    properties = (signal.get("schema") or {}).get("properties") or {}
    return signal["kind"] == "question" and (properties.get("text") or {}).get("type") == "string"


def _label(option: Any) -> str:
    return str(option.get("label") or option.get("id"))


def _help(options: list[Any]) -> str:
    if not options:
        return 'that is no JSON; an object looks like {"approved": true}'
    return "please type one of: " + ", ".join(f'"{one_line(_label(option), 60)}"' for option in options)
