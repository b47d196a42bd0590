"""How long a client waits for a studio that asks it to come again later (429), and what it may then ask once more."""

import logging
import random
from collections.abc import Mapping
from typing import Final

import httpx2

from registry.errors import Refused
from registry.waits import retry_after

log = logging.getLogger(__name__)

#: Seconds that one call waits for its turn, all in all.
PATIENCE_S: Final = 120.0
#: Seconds to wait where a 429 does not say how long.
UNSAID_S: Final = 2.0
#: Seconds from which on a wait is worth a word to whoever sits there.
WORTH_SAYING_S: Final = 5.0
_REPEATABLE: Final = frozenset({"GET", "HEAD", "PUT", "DELETE"})


class Busy(Refused):
    """The studio asks to wait; nothing was done."""

    code = "rate_limited"

    def __init__(self, message: str, *, code: str | None = None, wait_s: float, at_the_door: bool) -> None:
        """
        Args:
            at_the_door: the studio itself counted the request and did not look at it; else somebody between us did,
                or it is full.
        """
        super().__init__(message, code=code)
        self.wait_s = wait_s
        self.at_the_door = at_the_door

    @classmethod
    def of(cls, answer: httpx2.Response, words: str, code: str | None) -> "Busy":
        """The refusal of an answer 429; `code` is the studio's own, None when it was somebody between us."""
        asked = retry_after(answer.headers)
        at_the_door = code == "rate_limited" and asked is not None
        return cls(words, code=code, wait_s=UNSAID_S if asked is None else asked, at_the_door=at_the_door)

    def may_repeat(self, method: str, headers: Mapping[str, str] | None) -> bool:
        """Whether the request may be sent again without doing anything twice."""
        return self.at_the_door or method in _REPEATABLE or "idempotency-key" in (headers or {})

    def pause(self) -> float:
        """Seconds to wait: what was asked for, and a little more, so that not all who wait come in one moment."""
        if self.wait_s >= WORTH_SAYING_S:
            log.warning("the studio asks to wait %g s: %s", self.wait_s, self.message)
        return self.wait_s + random.uniform(0, min(1.0, 0.1 + self.wait_s / 4))
