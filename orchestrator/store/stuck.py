"""The net below every move: waits that are over though no move said so.

Each move queues its run in its own transaction, so in healthy operation there are none.
"""

from sqlalchemy import Connection, case, select, update

from orchestrator.states import RUN_ENDED
from orchestrator.store.signals import WAITED_FOR
from orchestrator.store.tables import runs, signals
from orchestrator.store.wakes import queued


def find(connection: Connection, limit: int) -> list[str]:
    """Parents without an open child, and runs with an answer they have not used; locked, as far as nobody else is."""
    below = runs.alias("below")
    open_child = select(below.c.id).where(below.c.parent_id == runs.c.id, below.c.status.not_in(sorted(RUN_ENDED)))
    childless = (runs.c.status == "waiting") & (runs.c.waiting_on == "children") & ~open_child.exists()
    said = select(signals.c.id).where(
        signals.c.run_id == runs.c.id, signals.c.status != "open", signals.c.execution == "none", WAITED_FOR
    )
    asking = (runs.c.status == "needs_input") | ((runs.c.status == "waiting") & (runs.c.waiting_on == "gate"))
    stuck = select(runs.c.id).where(childless | (asking & said.exists())).order_by(runs.c.id).limit(limit)
    return list(connection.execute(stuck.with_for_update(key_share=True, skip_locked=True, of=runs)).scalars())


def wake(connection: Connection, limit: int) -> list[str]:
    """waiting or needs_input -> queued for them; returns their ids."""
    ids = find(connection, limit)
    by = case((runs.c.waiting_on == "children", "children"), else_="answer")
    connection.execute(update(runs).where(runs.c.id.in_(ids)).values(queued(None) | {"resumed_by": by}))
    return ids
