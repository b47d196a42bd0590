"""Decisions about calls that are made for a project from outside of its runs (spec: skills 15)."""

from functools import partial

import pytest

from orchestrator import outside
from orchestrator.settings import Settings
from orchestrator.store import tables as t
from registry.errors import SkillError
from registry.ids import new_id
from registry.skills.registry import Pending
from tests.contract.store.world import World, together

#: Elsewhere every write is alone anyway.
pytestmark = pytest.mark.parametrize("database_url", ["postgres"], indirect=True)


def pending(digest: str) -> Pending:
    return Pending("email.send", {"to": ["a@example.com"]}, digest, "world", "it acts outside")


def test_who_asks_for_one_call_at_one_moment_gets_one_decision(world: World, store_settings: Settings) -> None:
    where = outside.place(store_settings, world.plan().id, "local")

    asked = together(*[partial(outside.ask, store_settings, where, new_id(), pending("d" * 64)) for _ in range(6)])

    assert len(set(asked)) == 1, asked
    assert len(world.all(t.signals.select())) == 1


def test_who_asks_at_one_moment_counts_no_free_place_twice(world: World, store_settings: Settings) -> None:
    limits = store_settings.limits.model_copy(update={"open_decisions_per_project": 2})
    bounded = store_settings.model_copy(update={"limits": limits})
    where = outside.place(bounded, world.plan().id, "local")

    asked = together(*[partial(outside.ask, bounded, where, new_id(), pending(f"{n}" * 64)) for n in range(6)])

    assert [one.code for one in asked if isinstance(one, SkillError)] == ["quota"] * 4, asked
    assert len(world.all(t.signals.select())) == 2
