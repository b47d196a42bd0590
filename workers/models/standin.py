"""The stand-in: plays the model from a project's script, or by rule, and says so (spec: project 2).

It keeps nothing between calls. What it answers follows from the script and from where the run stands: the turn is the
number of calls made before, and templates see the real results of this run. A run that is taken over by another worker,
or forked, therefore goes on as if nothing had happened.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any

from registry.base import Json
from registry.jsontext import compact
from workers.models import rule, tokens
from workers.models.model import ModelFault, Reply, Request, Situation, ToolCall

NAME = "stand-in"
#: Seconds between looks whether a pausing call should stop, and the longest pause of a turn.
LOOK_S, MAX_PAUSE_S = 0.05, 60.0


class StandIn:
    """A `ModelClient` without a model."""

    def generate(self, request: Request) -> Reply:
        """The next turn of the script, or of the rule where the script says nothing about this run.

        Raises:
            ModelFault: `model_script_exhausted` when the script ends before the run does or says `otherwise: fail`;
                `model_failed` when a template cannot be filled; passing when the run was stopped during a pause.
        """
        begun = time.monotonic()
        script = _script(request.situation)
        _pause(script.get("delayMs"), request.cancelled)
        text, calls = _said(script, request)
        return Reply(
            text=text,
            calls=calls,
            finish_reason="tool-calls" if calls else "stop",
            usage=tokens.estimated(request, text, calls),
            model=NAME,
            cost_micro=0,
            duration_ms=int((time.monotonic() - begun) * 1000),
            stand_in=True,
        )

    def worst_micro(self, request: Request) -> int | None:
        """Nothing: no money is spent here."""
        return 0

    def context_tokens(self, request: Request) -> int | None:
        """Unknown: nothing is ever too long here."""
        return None


def _script(situation: Situation) -> Mapping[str, Json]:
    return situation.script if isinstance(situation.script, Mapping) else {}


def _pause(milliseconds: Json, cancelled: Callable[[], bool]) -> None:
    wanted = milliseconds if isinstance(milliseconds, (int, float)) and milliseconds > 0 else 0
    until = time.monotonic() + min(wanted / 1000, MAX_PAUSE_S)
    while (left := until - time.monotonic()) > 0:
        if cancelled():
            raise ModelFault("the stand-in was stopped during its pause", passing=True)
        time.sleep(min(left, LOOK_S))


def _said(script: Mapping[str, Json], request: Request) -> tuple[str, list[ToolCall]]:
    situation = request.situation
    where, turns = _turns(script, situation)
    if turns is None:
        return _by_rule(script, request, where)
    if situation.turn >= len(turns):
        if situation.closing:
            return f"{rule.LABEL}Out of turns: the script of {where} has no closing words.", []
        raise ModelFault(
            f"the stand-in script of {where} has {_count(turns)} and the run asks for turn {situation.turn + 1}; "
            "end it with a turn without calls",
            code="model_script_exhausted",
        )
    return _played(turns[situation.turn], request, f"{where}, turn {situation.turn + 1}")


def _turns(script: Mapping[str, Json], situation: Situation) -> tuple[str, list[Json] | None]:
    """Whose turns these are, in words, and the turns; None: the script has none for this run."""
    key = str((situation.task or {}).get("key") or "")
    agent = situation.agent_name or situation.agent_id
    if situation.skill is not None:
        return f"skill {situation.skill!r}", _listed(script, "skills", situation.skill)
    if situation.kind == "item":
        return f"the items of task {key!r}", _listed(script, "items", key)
    if situation.kind == "root" and situation.task is not None:
        return f"task {key!r}", _listed(script, "tasks", key)
    return f"agent {agent!r}", _listed(script, "agents", situation.agent_id, situation.agent_name)


def _listed(script: Mapping[str, Json], section: str, *names: str) -> list[Json] | None:
    found = script.get(section)
    turns = [found[name] for name in names if name in found] if isinstance(found, Mapping) else []
    return turns[0] if turns and isinstance(turns[0], list) else None


def _by_rule(script: Mapping[str, Json], request: Request, where: str) -> tuple[str, list[ToolCall]]:
    if script.get("otherwise") == "fail":
        raise ModelFault(
            f"the stand-in script has no turns for {where} and says `otherwise: fail`", code="model_script_exhausted"
        )
    if request.situation.skill is not None and request.output is not None:
        raise ModelFault(f"the stand-in script has no answer for {where}", code="model_unresolved")
    said = rule.answer(request)
    return said.text, said.calls


def _played(turn: Json, request: Request, where: str) -> tuple[str, list[ToolCall]]:
    """One turn with its templates filled; in a closing call only its words count."""
    from registry.templates import TemplateFault, fill

    turn = turn if isinstance(turn, Mapping) else {"say": turn}
    parts = {key: turn[key] for key in ("say", "output") if turn.get(key) is not None}
    calls = [] if request.situation.closing else turn.get("calls") or []
    try:
        filled = fill({**parts, "calls": [call.get("args") or {} for call in calls]}, _names(request.situation))
    except TemplateFault as error:
        raise ModelFault(f"the stand-in script, {where}: the template at {error}") from None
    made = [ToolCall(call.get("id"), call["name"], args) for call, args in zip(calls, filled["calls"], strict=True)]
    return _text(filled, structured=request.output is not None), made


def _text(filled: dict[str, Json], *, structured: bool) -> str:
    """The words of a turn: its `output` where a structured answer is wanted or nothing else is said."""
    if "output" in filled and (structured or "say" not in filled):
        return compact(filled["output"])
    said = filled.get("say", "")
    return said if isinstance(said, str) else compact(said)


def _names(situation: Situation) -> dict[str, Any]:
    """What templates may speak of; `item` and `index` are there in item runs only."""
    results: list[dict[str, Json]] = [
        {"id": result.id, "name": result.name, "ok": result.ok, "output": result.output, "text": result.text}
        for result in situation.results
    ]
    given = situation.input if isinstance(situation.input, Mapping) else {}
    item = {"item": situation.item, "index": situation.index} if situation.kind == "item" else {}
    return {
        "input": situation.input,
        "results": results,
        "byId": {result["id"]: result for result in results},
        "deps": given.get("dependencies") or {},
        **item,
    }


def _count(turns: list[Json]) -> str:
    return "1 turn" if len(turns) == 1 else f"{len(turns)} turns"
