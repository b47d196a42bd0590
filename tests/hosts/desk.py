"""The producer and the person of host D, over the API: `python -m tests.hosts.desk`.

Each line on the standard input names a project file to submit; the answer is a line with the project's id. All the
while a person says yes to whatever is asked, and no to doing again what may have happened.
"""

import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from orchestrator.client import Client
from orchestrator.settings import get_settings
from registry.errors import OfficinaError, Unavailable

#: Seconds between two looks at the desk.
LOOK_S = 0.5
#: Seconds a studio may be away before a submit is given up.
PATIENCE_S = 120


def answer_all(person: Client) -> None:
    while True:
        with suppress(OfficinaError):  # closed in between, or the studio is away for a moment
            for signal in person.signals(limit=200):
                if signal["kind"] == "decision":
                    again = "may have happened" in signal.get("reason", "")
                    with suppress(OfficinaError):
                        person.answer(signal["id"], option="No" if again else "Do it")
        time.sleep(LOOK_S)


def submit(producer: Client, file: Path) -> str:
    """Submits a file; the key makes a second try harmless."""
    given_up = time.monotonic() + PATIENCE_S
    while True:
        try:
            return str(producer.submit(file, key=file.parent.name)["id"])
        except Unavailable:
            if time.monotonic() > given_up:
                raise
            time.sleep(1)


def main() -> None:
    settings = get_settings()
    assert settings.api_url is not None
    without_key = settings.model_copy(update={"api_key": None})
    threading.Thread(target=answer_all, args=(Client.of(without_key),), daemon=True).start()
    producer = Client.of(settings)
    for line in sys.stdin:
        print(submit(producer, Path(line.strip())), flush=True)


if __name__ == "__main__":
    main()
