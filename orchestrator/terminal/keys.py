"""What a key does on the live page: it changes what is seen, or asks for something to be done."""

from dataclasses import dataclass
from typing import Final

from orchestrator.terminal.interface import VIEWS, Interface
from orchestrator.terminal.prompting import Reply, Signal
from orchestrator.terminal.scene import Scene

#: Seconds a question has to be on the screen before a key answers it: a key struck for the last one is none for this.
SETTLED_S: Final = 0.7
_FAR: Final = 10
_TO_END: Final = 1_000_000


@dataclass(frozen=True)
class Answer:
    """Answers a question; without a reply the person is asked to type one."""

    signal: Signal
    reply: Reply | None = None


@dataclass(frozen=True)
class Leave:
    """Leaves the page; the project goes on."""


def press(page: Interface, key: str, scene: Scene) -> Answer | Leave | None:
    """Does what a key means on this page; what is more than looking is handed back."""
    if page.typing is not None:
        _type(page, key)
        return None
    page.notice = ""
    if key == "q":
        return Leave()
    if key in ("tab", "back tab"):
        page.step(1 if key == "tab" else -1)
    elif key.isdecimal() and 1 <= int(key) <= len(VIEWS):
        page.show(VIEWS[int(key) - 1])
    elif key in _SCROLLS:
        page.scroll(_SCROLLS[key])
    elif page.view == "trace":
        _filter(page, key)
    elif page.view == "questions":
        return _question(page, key, scene)
    return None


_SCROLLS: Final = {
    "up": -1,
    "k": -1,
    "down": 1,
    "j": 1,
    "page up": -_FAR,
    "page down": _FAR,
    "home": -_TO_END,
    "g": -_TO_END,
    "end": _TO_END,
    "G": _TO_END,
}


def _filter(page: Interface, key: str) -> None:
    if key == "f":
        page.tail.turn()
        page.top = 0
    elif key == "/":
        page.typing = page.tail.words


def _type(page: Interface, key: str) -> None:
    """A line of words, typed on the page itself."""
    typed = page.typing or ""
    if key in ("enter", "escape"):
        page.tail.words, page.typing, page.top = typed if key == "enter" else "", None, 0
    elif key == "backspace":
        page.typing = typed[:-1]
    elif key == "page down":  # the blank
        page.typing = typed + " "
    elif len(key) == 1:
        page.typing = (typed + key)[:80]


def _question(page: Interface, key: str, scene: Scene) -> Answer | None:
    if key in ("left", "right"):
        page.turn(scene, -1 if key == "left" else 1)
        return None
    if key not in ("d", "n", "w"):
        return None
    signal = page.question(scene)
    if signal is None or page.shown is None or page.shown[0] != signal["id"]:
        return None
    if page.clock() - page.shown[1] < SETTLED_S:
        page.notice = "this question has only just come up: read it, then strike the key again"
        return None
    if key == "w":
        return Answer(signal)
    option = _option(signal, "Do it" if key == "d" else "No")
    if option is None:
        page.notice = "this question takes another answer: w shows its choices and lets you type"
    elif key == "d" and signal["id"] not in page.read_through:
        page.notice = "there is more of it below: look at all of it (End), then strike d"
    else:
        return Answer(signal, Reply(option=option))
    return None


def _option(signal: Signal, wanted: str) -> str | None:
    """The option of that name, where it is one of this question's."""
    for option in signal.get("options") or []:
        if wanted in (option.get("id"), option.get("label")):
            return str(option["id"])
    return None
