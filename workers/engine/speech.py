"""What a run says while it says it: pieces of an answer, gathered into a few a second, without any secret in them."""

import time
from dataclasses import dataclass, field
from typing import Final, Protocol

from orchestrator.deltas import Delta, Kind
from registry.masking import mask_text
from workers.models.streaming import Hear, Piece

#: Seconds between two pieces that are sent, and characters one may have.
PACE_S: Final = 0.1
MOST_CHARS: Final = 8_000
#: Characters after which a text without a blank goes out all the same.
WORD_CHARS: Final = 200
_KINDS: Final[dict[Piece, Kind]] = {"text": "message.delta", "reasoning": "think.delta"}


class Listeners(Protocol):
    """Those who look on."""

    def listened(self, trace_id: str) -> bool:
        """Whether there is anybody."""
        ...

    def say(self, trace_id: str, delta: Delta) -> bool:
        """Tells them a piece; False: there is nobody any more."""
        ...


class Nobody:
    """Where nobody can look on."""

    def listened(self, trace_id: str) -> bool:
        """Never."""
        return False

    def say(self, trace_id: str, delta: Delta) -> bool:
        """Tells nobody."""
        return False


@dataclass(frozen=True)
class Speaker:
    """Whose words they are."""

    trace_id: str
    run_id: str
    task_id: str | None = None
    agent_id: str | None = None


@dataclass
class _Words:
    waiting: str = ""
    sent: int = 0
    due: float = 0.0


@dataclass
class Speech:
    """One answer while it comes; used by the thread of its call alone."""

    listeners: Listeners
    speaker: Speaker
    _words: dict[Piece, _Words] = field(default_factory=dict)
    _heard: bool = True

    def hear(self, piece: Piece, text: str) -> None:
        """Takes a piece in, and tells what has come together when it is time."""
        if piece == "again":
            self._words.clear()
            return
        words = self._words.setdefault(piece, _Words())
        words.waiting += text
        if self._heard and time.monotonic() >= words.due:
            words.due = time.monotonic() + PACE_S
            self._tell(piece, words)

    def end(self) -> None:
        """Tells what is left of it."""
        for piece, words in self._words.items():
            if self._heard and words.waiting:
                self._send(piece, words, words.waiting)

    def _tell(self, piece: Piece, words: _Words) -> None:
        # Whole words only: what has to be masked would not be known by half of it.
        cut = max(words.waiting.rfind(blank) for blank in " \n\t") + 1
        if cut == 0 and len(words.waiting) > WORD_CHARS:
            cut = len(words.waiting)
        if cut:
            self._send(piece, words, words.waiting[:cut])

    def _send(self, piece: Piece, words: _Words, text: str) -> None:
        words.waiting = words.waiting[len(text) :]
        shown = mask_text(text)[:MOST_CHARS]
        who = self.speaker
        delta = Delta(_KINDS[piece], who.run_id, words.sent, shown, who.task_id, who.agent_id)
        words.sent += len(shown)
        self._heard = self.listeners.say(who.trace_id, delta)


def hearing(listeners: Listeners, speaker: Speaker) -> tuple[Hear | None, Speech]:
    """What hears an answer, or None while nobody looks on; and the speech to end after it."""
    speech = Speech(listeners, speaker)
    return (speech.hear if listeners.listened(speaker.trace_id) else None), speech
