"""What an owner may have so many of: those who make one at the same moment are counted, too."""

from functools import partial
from typing import Any

import pytest
from sqlalchemy import Table, func, select

from orchestrator import keys, saved, timetable, webhooks
from orchestrator.ports import memory, schedules, signals
from orchestrator.ports import webhooks as hooks
from orchestrator.settings import Settings
from orchestrator.store import hooked, kept, requests, tables
from orchestrator.timetable import NewSchedule
from registry.generators import Generator
from registry.ids import new_id
from registry.skills import catalogue
from registry.skills.context import Caller
from registry.skills.ports import Note
from tests.contract.store.world import World, together

SKILLS = catalogue.build()
#: Elsewhere every write is alone anyway.
pytestmark = pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
#: How many there may be here, and how many try.
MOST, TRY = 2, 5
STEP = {"key": "a", "title": "A", "role": "writer", "instruction": "w"}
LATER = {"kind": "prompt", "text": "Look."}


class Hands:
    """What makes one more of each, by what it is called."""

    def __init__(self, settings: Settings, world: World) -> None:
        self.settings, self.database = settings, world.database
        self.caller = Caller("person", settings.owner)

    def agent(self, n: int) -> None:
        saved.create_agent(self.settings, SKILLS, {"name": f"A{n}", "instructions": "w"}, person=True)

    def generator(self, n: int) -> None:
        saved.create_generator(self.settings, SKILLS, Generator.model_validate({"name": f"G{n}", "steps": [STEP]}))

    def key(self, n: int) -> None:
        keys.add(self.settings, f"K{n}")

    def schedule(self, n: int) -> None:
        given = {"title": f"S{n}", "everyMinutes": 60, "action": LATER}
        timetable.create(self.settings, SKILLS, NewSchedule.model_validate(given))

    def hook(self, n: int) -> None:
        webhooks.add(self.settings, f"H{n}", "assistant")

    def signal(self, n: int) -> None:
        about: dict[str, Any] = {"body": "", "options": [], "priority": "normal", "expires_in_hours": 1}
        signals.DeskSignals(self.settings, self.database).raise_signal(
            self.caller, kind="notice", title=f"N{n}", **about
        )

    def call(self, n: int) -> None:
        row = {"id": new_id(), "owner_id": self.settings.owner, "skill": "files.read", "input": {"path": f"{n}"}}
        self.database.write(lambda c: requests.put(c, row, MOST))

    def memory(self, n: int) -> None:
        memory.StoredMemories(self.database, most=MOST).store(self.caller, Note(f"Memory {n}."))


TABLES: dict[str, Table] = {
    "agent": tables.agents,
    "generator": kept.generators,
    "key": kept.api_keys,
    "schedule": kept.schedules,
    "hook": hooked.webhooks,
    "signal": tables.signals,
    "call": requests.requests,
    "memory": kept.memories,
}


def test_no_quota_is_passed_by_asking_at_one_moment(
    world: World, store_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place, name in (
        *((saved, "MAX_SAVED"), (keys, "MAX_KEYS"), (schedules, "MAX_ACTIVE")),
        *((hooks, "MAX_HOOKS"), (signals, "OPEN_PER_AGENT")),
    ):
        monkeypatch.setattr(place, name, MOST)
    hands = Hands(store_settings, world)

    for what in TABLES:
        together(*[partial(getattr(hands, what), n) for n in range(TRY)])

    with world.database.read() as connection:
        made = {what: connection.scalar(select(func.count()).select_from(table)) for what, table in TABLES.items()}
    assert made == dict.fromkeys(TABLES, MOST)
