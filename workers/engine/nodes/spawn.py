"""`control:spawn`: one child run for each call, by whatever agent it names."""

from orchestrator.records import ChildRecord, Park
from registry.base import Json
from registry.errors import RunFailure
from registry.graph.model import Spawn
from registry.ids import new_id
from registry.jsontext import digest
from workers.engine import fanout, targets
from workers.engine.control import PROMISED, promised_id
from workers.engine.outcome import Done, Outcome, Parked
from workers.engine.session import Session
from workers.engine.targets import Target

LIMITS = ("maxSteps", "maxTokens", "deadlineMs", "maxCostUsd")


def spawn(session: Session, node: Spawn) -> Outcome:
    """Makes the children, or takes what they brought."""
    if not session.children:
        calls = _calls(session, node)
        if not calls:
            return _finish(session, node, [])
        fanout.check_depth(session)
        sequential = fanout.concurrency(session, node.concurrency)
        queued = fanout.is_path(node.calls, "spawns")
        ids = [promised_id(session, call) if queued else new_id() for call in calls]
        if queued:  # what is left was promised for calls that the graph took out of the queue
            session.memo.pop(PROMISED, None)
        children = [_child(session, i, n, call) for n, (i, call) in enumerate(zip(ids, calls, strict=True))]
        _announce(session, children, calls)
        return fanout.park(session, children, sequential=sequential, timeout_ms=None)
    if fanout.open_children(session):
        return Parked(Park("waiting", "children"))
    return _finish(session, node, [_result(child) for child in session.children])


def _calls(session: Session, node: Spawn) -> list[dict[str, Json]]:
    """The calls, all of them checked before any child starts."""
    value = fanout.listed(session, node.calls)
    if not isinstance(value, list):
        raise RunFailure(
            "spawn_calls_shape", f"calls give {type(value).__name__}; a list of {{agentId, input}} is needed"
        )
    for index, call in enumerate(value):
        if not isinstance(call, dict) or not isinstance(call.get("agentId"), str) or not call["agentId"]:
            raise RunFailure("spawn_calls_shape", f"calls[{index}] needs an agentId")
        if extra := set(call) - {"agentId", "input", "budget"}:
            raise RunFailure("spawn_calls_shape", f"calls[{index}] has the unknown key {sorted(extra)[0]!r}")
        _check_budget(index, call.get("budget"))
    if len(value) > session.limits.spawn_calls:
        raise RunFailure("spawn_call_limit", f"{len(value)} calls; {session.limits.spawn_calls} may be")
    return value


def _check_budget(index: int, budget: Json) -> None:
    if budget is None:
        return
    limits = budget.items() if isinstance(budget, dict) else ()
    good = [k in LIMITS and isinstance(v, int) and not isinstance(v, bool) and v >= 1 for k, v in limits]
    if not good or not all(good):
        words = f"calls[{index}].budget needs at least one of {', '.join(LIMITS)}, each a whole number from 1"
        raise RunFailure("spawn_calls_shape", words)


def _child(session: Session, id_: str, position: int, call: dict[str, Json]) -> ChildRecord:
    """The child of a call; one that cannot start is written as failed, so that its result has its place."""
    found = targets.find(call["agentId"], session.services.targets(session.record))
    if found is None or (found.level == "delegate" and found.delegate_of != session.agent.id):
        return _failed(id_, position, call, "spawn_target_missing", f"no agent is meant by {call['agentId']!r}")
    definition = _with_budget(session, found, call.get("budget"))
    faults = session.services.check_definition(definition, session.record)
    if faults:
        return _failed(id_, position, call, "agent_invalid", "; ".join(faults)[:2000])
    return ChildRecord(
        id=id_,
        kind="spawn",
        position=position,
        agent_id=found.id,
        agent_name=found.name,
        definition_digest=digest(definition),
        definition=definition,
        input=call.get("input"),
    )


def _failed(id_: str, position: int, call: dict[str, Json], code: str, message: str) -> ChildRecord:
    return ChildRecord(
        id=id_,
        kind="spawn",
        position=position,
        agent_id=call["agentId"],
        agent_name=call["agentId"],
        definition_digest="",
        status="failed",
        result={"output": None, "error": {"code": code, "message": message}},
    )


def _with_budget(session: Session, target: Target, given: Json) -> dict[str, Json]:
    """The call's limits, else the child's own, else the parent's; a child's policy is always error."""
    limits = given or target.definition.get("budget")
    if not limits and session.agent.budget is not None:
        limits = session.agent.budget.to_json()
    if not limits:
        return target.definition
    return target.definition | {"budget": {k: v for k, v in limits.items() if k in LIMITS} | {"policy": "error"}}


def _announce(session: Session, children: list[ChildRecord], calls: list[dict[str, Json]]) -> None:
    for child, call in zip(children, calls, strict=True):
        facts: dict[str, Json] = {"agentId": child.agent_id, "spawnId": child.id, "index": child.position}
        if child.result is None:
            named = facts | {"agentName": child.agent_name, "childRunId": child.id}
            session.emit("agent.spawned", **named, input=call.get("input"))
        else:
            session.emit("agent.failed", **facts, **child.result["error"])


def _result(child: ChildRecord) -> dict[str, Json]:
    brought = child.result or _gone(child)
    return {"agentId": child.agent_id, "spawnId": child.id, **brought}


def _gone(child: ChildRecord) -> dict[str, Json]:
    return {"output": None, "error": {"code": "cancelled", "message": f"the child run was {child.status}"}}


def _finish(session: Session, node: Spawn, results: list[dict[str, Json]]) -> Done:
    fanout.close(session)
    session.output, session.output_ref = {"results": results}, None
    if results:
        fanout.tell(session, "Spawn results", results)
    if fanout.is_path(node.calls, "spawns"):
        session.remove("spawns")
    return Done(durable=bool(results))
