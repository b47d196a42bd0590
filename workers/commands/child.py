"""The worker process itself: Celery's own command line on our app. Started by `officina worker` and `officina up`."""

import os
import sys


def main() -> None:
    if any(word.endswith("threads") for word in sys.argv):
        from workers import standby

        standby.open_server()  # ahead of every other import
    from celery.signals import worker_process_init

    from workers.app import app

    if sys.platform == "linux":
        worker_process_init.connect(_end_with_worker, weak=False)
    app.worker_main(sys.argv[1:])


def _end_with_worker(**_: object) -> None:
    """In a process of the prefork pool: a busy one would otherwise finish its step after its worker was killed."""
    from orchestrator.stack.tether import die_with_parent

    die_with_parent(os.getppid())


if __name__ == "__main__":
    main()
