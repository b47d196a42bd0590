"""What is said of a call that may have happened: the same words to the model, in the trace and on the desk."""

from typing import Final

from registry.base import Json
from registry.jsontext import compact

#: The outcome, and the code, of a once call that was started and whose end nobody saw.
UNKNOWN: Final = "unknown"
#: Why a decision about such a call is asked again.
AGAIN: Final = "It was started once before and may have happened: nobody knows how that ended"

#: What an open call is told when its run ends before anyone ran it.
UNRUN: Final = "skipped: the run ended before this call was run"


def words(name: str) -> str:
    """What the model reads as the result."""
    return (
        f"unknown: {name} was started and the worker died before its outcome was known; "
        "it may have happened. Do not repeat it without asking."
    )


def entry(call_id: str, name: str) -> dict[str, Json]:
    """Its place in `$output.results`."""
    return {"id": call_id, "name": name, "result": words(name), "isError": True, "code": UNKNOWN}


def told(name: str, call_id: str, how: str, result: Json) -> str:
    """The note its model reads once a person has spoken about it.

    Args:
        how: `result`, `retry`, `skip`.
        result: {ok, output} or {ok, error}: what came of it.
    """
    call = f"The outcome of {name} (call {call_id}) was unknown. A person"
    if how == "skip":
        return f"{call} looked at it and leaves it as it is; do not repeat it."
    came = result if isinstance(result, dict) else {}
    words = compact(came.get("output")) if came.get("ok") else f"failed: {came.get('error')}"
    verb = "had it run again" if how == "retry" else "found out that it happened"
    return f"{call} {verb}; its result: {words}"
