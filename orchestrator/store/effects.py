"""Moves of calls that may have happened: a once call that was started and has no outcome (design, promise 3).

The engine settles what it comes back to. Here is what is settled from outside: the calls of a run that was ended while
its worker was in the middle of them.
"""

from collections.abc import Sequence

from sqlalchemy import Connection, select, update

from orchestrator.records import Event
from orchestrator.store.tables import calls, runs, signals
from orchestrator.unknown import UNKNOWN, entry


def give_up(connection: Connection, run_ids: Sequence[str]) -> list[Event]:
    """started -> unknown for calls of runs that have been ended, and for the grants they used; gives the lines."""
    open_calls = select(calls.c.run_id, calls.c.id, calls.c.name, runs.c.task_id, runs.c.agent_id, calls.c.node_id)
    open_calls = open_calls.join(runs, runs.c.id == calls.c.run_id)
    started = (calls.c.run_id.in_(run_ids), calls.c.status == "started")
    lines = []
    for row in connection.execute(open_calls.where(*started).order_by(calls.c.run_id, calls.c.id)).all():
        result = entry(row.id, row.name)
        mine = (calls.c.run_id == row.run_id, calls.c.id == row.id, calls.c.status == "started")
        settled = update(calls).where(*mine).values(status="done", outcome=UNKNOWN, result=result)
        if connection.execute(settled).rowcount:
            told = {"toolCallId": row.id, "name": row.name, "outcome": UNKNOWN, "isError": True, "code": UNKNOWN}
            told |= {"output": result["result"], "durationMs": 0}
            lines.append(Event("tool.result", told, row.task_id, row.run_id, row.agent_id, row.node_id))
    used = (signals.c.run_id.in_(run_ids), signals.c.execution == "started", ~signals.c.carry_on)
    connection.execute(update(signals).where(*used).values(execution=UNKNOWN))
    return lines
