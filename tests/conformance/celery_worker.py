"""A real Celery worker whose outside is a case: `CASE_ID` says which, `CASE_OUTSIDE` where it is kept."""

import os
from pathlib import Path

from orchestrator.settings import Settings
from tests.conformance.casebook import cases
from tests.conformance.outside import Outside, begin_as_scripted
from workers import runtime
from workers.commands import child
from workers.engine.services import Services


def surround() -> None:
    """Puts the case around everything this process carries."""
    outside = Outside(Path(os.environ["CASE_OUTSIDE"]), cases("runtime")[os.environ["CASE_ID"]])
    begin_as_scripted(outside)
    original = runtime.services

    def services(settings: Settings) -> Services:
        made = original(settings)
        outside.surround(made)
        return made

    runtime.services = services


surround()  # not in a main(): a suspect's process is made of this module, too

if __name__ == "__main__":
    child.main()
