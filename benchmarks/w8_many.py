"""W8: 500 runs at once, each with four model calls of a second, in two worker processes."""

import threading

from benchmarks import projects
from benchmarks.measure import Bar, Figure, interleaved
from benchmarks.stack import WORKERS, Crew, Stack

RUNS, CALLS, CALL_MS = 500, 4, 1_000
MOST_MB = 400
LOOK_S = 0.25


def measure(stack: Stack, rounds: int, *, quick: bool) -> list[Figure]:
    """Seconds until all have ended, beside the time of their calls; the most memory all workers held meanwhile."""
    count = RUNS // 5 if quick else RUNS
    model = stack.model([{"text": projects.ANSWER, "calls": [projects.CALL]}], CALL_MS)
    settings = stack.modelled("many", model, worker_slots=count // WORKERS)
    crew, memory = stack.crew(settings), list[float]()
    agent = projects.stepper(2 * CALLS)

    def officina() -> float:
        each = count // 10
        files = [projects.write(stack.folder_of("w8"), agent, tasks=each) for _ in range(10)]
        with _Peak(crew) as peak:
            taken = stack.wake(files, settings)
        memory.append(peak.mb)
        return taken

    officina()  # connections and threads
    memory.clear()
    taken = interleaved("W8", "s", rounds, {"officina": officina})
    ideal = [CALLS * CALL_MS / 1000] * rounds
    what = f"{count} runs at once, {CALLS} model calls of {CALL_MS / 1000:g} s each"
    return [
        Figure("W8", what, "s", taken["officina"], "the calls alone", ideal, Bar(1.3)),
        Figure("W8", "memory of all workers meanwhile, at most", "MB", memory, bar=Bar(MOST_MB, "value")),
    ]


class _Peak:
    """The most memory a crew holds in a block."""

    def __init__(self, crew: Crew) -> None:
        self.mb = 0.0
        self._crew, self._over = crew, threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> "_Peak":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(LOOK_S):
            self.mb = max(self.mb, self._crew.memory_mb)
