"""Calls that were asked for over HTTP: claimed, made under the rights they were asked with, settled once."""

import logging
from typing import Any

from sqlalchemy import Connection, Row

from orchestrator import crashpoints, events, outside
from orchestrator.knowledge import ADD
from orchestrator.store import requests
from registry.errors import SkillError
from registry.skills.registry import Checked
from workers import adding, calling
from workers.actions import Cancelled
from workers.runtime import Runtime

log = logging.getLogger(__name__)


def perform(runtime: Runtime, request_id: str) -> str:
    """Makes a call that nobody has claimed; returns a word for the monitor."""
    if runtime.stopping:
        return "stopping"
    row = runtime.database.write(lambda c: requests.claim(c, request_id, runtime.lease_ms))
    if row is None:
        return "nothing to do"
    crashpoints.reached("claimed")
    with runtime.acting(row.id):
        return "done" if _perform(runtime, row) else "taken over"


def _perform(runtime: Runtime, row: Row[Any]) -> bool:
    # The worker serves every owner; this call is made as one of them.
    settings = runtime.settings.model_copy(update={"owner": row.owner_id})
    where = outside.place(settings, row.project_id, row.owner_id) if row.project_id else None

    def begin(call: Checked) -> None:
        if call.skill.effect_of(call.input) != "once":
            return
        if not runtime.database.write(lambda c: requests.begin(c, row)):
            raise SkillError("cancelled", "this call was taken over by another worker")
        crashpoints.reached("begun")

    if row.skill == ADD:
        made = calling.Made(adding.add(settings, row.input, row.content or b""), [], [])
    else:
        call = calling.Call(
            row.skill,
            row.input,
            id=row.id,
            as_agent=row.approved is None,
            approved=row.approved,
            project=where,
            trace_parent=row.trace_parent or (where.trace_parent if where else None),
        )
        cancelled = Cancelled(runtime, where.id) if where else lambda: False
        made = calling.make(settings, runtime.services.catalogue, call, begin=begin, cancelled=cancelled)
    crashpoints.reached("settling")

    def settle(connection: Connection) -> bool:
        mine = requests.settle(connection, row, made.result.to_json())
        if mine and where is not None and made.lines:
            outside.add(connection, where.id, made.lines, made.files)
        return mine

    settled = runtime.database.write(settle)
    if where is not None:
        events.publish(runtime.settings, where.id, 0)
    return settled
