"""The worker process itself: Celery's own command line on our app. Started by `officina worker` and `officina up`."""

import sys


def main() -> None:
    from workers.app import app

    app.worker_main(sys.argv[1:])


if __name__ == "__main__":
    main()
