"""The partitions of docs/growth.md: the statements of the page work, and nothing minds them afterwards."""

import re
from pathlib import Path

import pytest
from sqlalchemy import text

from orchestrator import pruning
from orchestrator.settings import Settings
from orchestrator.store import events
from tests.contract.store.test_pruning import OLD, ended
from tests.contract.store.world import World

PAGE = Path(__file__).parents[3] / "docs" / "growth.md"


@pytest.fixture(params=["postgres"])
def database_url(request: pytest.FixtureRequest) -> str:
    """Only PostgreSQL has partitions."""
    return str(request.getfixturevalue(f"{request.param}_url"))


def test_a_trace_is_written_read_and_pruned_in_partitions(world: World, store_settings: Settings) -> None:
    before = ended(world, days=OLD)
    blocks = re.findall(r"^```sql\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    assert len(blocks) == 2
    bound = before.id[:4]
    for statement in "".join(blocks).replace("'019c'", f"'{int(bound, 16) + 1:04x}'").split(";"):
        if statement.strip():
            world.database.write(lambda c, statement=statement: c.execute(text(statement)))

    after = ended(world, days=OLD)
    with world.database.read() as c:
        parts = c.execute(text("SELECT count(*) FROM pg_inherits WHERE inhparent = 'events'::regclass")).scalar_one()
        assert len(events.after(c, before.id, 0)) == len(events.after(c, after.id, 0)) > 0
    assert parts == 2
    assert pruning.prune(store_settings, pruning.Policy(history=30), by="ann") == {"history": 2}
