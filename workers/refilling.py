"""What may follow claimed wake-ups is sent by a thread of its own: a run begins without waiting for its neighbours.

Claims come in bursts, and each makes room in the queue for another run of its project or of its owner's others. What
was claimed while one look was under way is seen to by the next, together. A process that dies with some of it owes
nothing: the clock finds runs that wait for a wake-up.
"""

import logging
import threading
from collections.abc import Callable, Sequence

log = logging.getLogger(__name__)

#: Projects of one look: they are locked together.
TOGETHER = 16


class Refiller:
    """One per process.

    Args:
        refill: marks and sends what may follow in these projects.
    """

    def __init__(self, refill: Callable[[Sequence[str]], object]) -> None:
        self._refill = refill
        self._wanted: dict[str, None] = {}
        self._word = threading.Condition()
        self._thread: threading.Thread | None = None

    def ask(self, project_ids: Sequence[str]) -> None:
        """Has these projects looked at soon."""
        with self._word:
            self._wanted.update(dict.fromkeys(project_ids))
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="refiller", daemon=True)
                self._thread.start()
            self._word.notify()

    def _work(self) -> None:
        while True:
            with self._word:
                self._word.wait_for(lambda: self._wanted)
                some = list(self._wanted)[:TOGETHER]
                for project_id in some:
                    del self._wanted[project_id]
            try:
                self._refill(sorted(some))
            except Exception as error:  # the claims stand, and their runs wait for nobody
                log.warning("what follows in %d projects is left to the clock: %s", len(some), error)
