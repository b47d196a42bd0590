"""Model turns from a script file, for one agent run in process (spec: engine 22)."""

import threading

from registry.base import Json, Model
from registry.errors import Fault, WrongUse
from workers.models import tokens
from workers.models.model import ModelFault, Reply, Request, ToolCall

NAME = "script"


class Call(Model):
    """One tool call of a turn; arguments of any kind, so that bad ones can be tried."""

    name: str
    args: Json = None
    id: str | None = None


class Turn(Model):
    """What the model says and calls once; at least one of both."""

    text: str | None = None
    calls: list[Call] | None = None


class ScriptedModel:
    """A `ModelClient` that uses up one list of turns in order, whichever run asks."""

    def __init__(self, turns: list[Json]) -> None:
        """Reads the turns.

        Raises:
            WrongUse: with a fault for each field that is not as it should be, paths as `model[2].calls[0].name`.
        """
        self._turns = read_turns(turns)
        self._used = 0
        self._lock = threading.Lock()

    def generate(self, request: Request) -> Reply:
        """The next turn.

        Raises:
            ModelFault: `model_script_exhausted` when none is left.
        """
        turn = self._next()
        text = turn.text or ""
        calls = [
            ToolCall(call.id, call.name, {} if "args" not in call.model_fields_set else call.args)
            for call in turn.calls or []
        ]
        return Reply(
            text=text,
            calls=calls,
            finish_reason="tool-calls" if calls else "stop",
            usage=tokens.estimated(request, text, calls),
            model=NAME,
            cost_micro=0,
        )

    def worst_micro(self, request: Request) -> int | None:
        """Nothing: no money is spent here."""
        return 0

    def context_tokens(self, request: Request) -> int | None:
        """Unknown: nothing is ever too long here."""
        return None

    def _next(self) -> Turn:
        with self._lock:
            if self._used >= len(self._turns):
                raise ModelFault(
                    f"the script has {len(self._turns)} model turns and a run asks for one more",
                    code="model_script_exhausted",
                )
            self._used += 1
            return self._turns[self._used - 1]


def read_turns(turns: Json) -> list[Turn]:
    """The turns of a script file.

    Raises:
        WrongUse: see `ScriptedModel`.
    """
    from pydantic import TypeAdapter, ValidationError

    try:
        found = TypeAdapter(list[Turn]).validate_python(turns)
    except ValidationError as error:
        faults = [
            _fault(problem["loc"], problem["type"], problem["msg"]) for problem in error.errors(include_url=False)
        ]
        raise WrongUse("the script's model turns are not as they should be", faults=faults) from None
    empty = [index for index, turn in enumerate(found) if turn.text is None and turn.calls is None]
    if empty:
        faults = [_fault((index,), "missing", "a turn needs `text`, `calls`, or both") for index in empty]
        raise WrongUse("a model turn of the script says nothing", faults=faults)
    return found


def _fault(location: tuple[int | str, ...], code: str, message: str) -> Fault:
    path = "model" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in location)
    return Fault(path, code, message)
