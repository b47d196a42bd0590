"""A process that owns a stack until it is told to end: `python -m tests.stack_owner HOME KIND`.

Its two workers are sleeping programs, so that the tests see the stack and nothing else.
"""

import sys
from pathlib import Path

from orchestrator.local import EmbeddedStack
from orchestrator.settings import Settings
from orchestrator.stack.stopping import Stopped, StopSignals

WORKERS = {
    "plain": ["sleep", "1000"],
    "parent": ["/bin/sh", "-c", "sleep 1000 & wait"],
    "deaf": ["/bin/sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"],
}


def main() -> None:
    settings = Settings(home=Path(sys.argv[1]), _env_file=None)  # type: ignore[call-arg]
    stack = EmbeddedStack(
        settings,
        workers=2,
        worker_command=lambda _name: WORKERS[sys.argv[2]],
        flower=False,
        say=lambda text: print(text, flush=True),
    )
    with StopSignals(stack.hurry) as signals:
        try:
            with stack:
                print("up", flush=True)
                signals.wait()
        except Stopped:
            print("stopped", flush=True)


if __name__ == "__main__":
    main()
