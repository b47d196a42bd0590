"""What went wrong with a model call, in plain words, and whether it may pass.

Errors of the SDK do not pickle and can carry the request with its key; nothing of them leaves this module but words.
"""

import re
from typing import TYPE_CHECKING

from registry.base import Json
from registry.jsontext import compact
from workers.models.headers import wait_of
from workers.models.model import ModelFault
from workers.models.scrub import scrub

if TYPE_CHECKING:
    import openai

#: Characters of the other side's words that a message quotes.
MAX_QUOTE = 300
#: Characters from which a key is taken out wherever it stands; "x" as a key would garble every word.
MIN_KEY = 6
#: Answers that may be different a moment later; 5xx are too.
PASSING = frozenset({408, 409, 425, 429})
#: What the API calls too many requests.
TOO_MANY = 429
#: A 429 that no waiting heals.
OUT_OF_MONEY = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})
ADVICE = {
    400: "the request was refused",
    401: "the key is not accepted; check OFFICINA_MODEL_API_KEY, or the key of the model's own settings",
    402: "the account has no credit left",
    403: "the key may not use this model; check its rights with the provider",
    404: "no such model or address; check the model's name and the base URL in OFFICINA_MODELS__... settings",
    413: "the conversation is too long for this model",
    422: "the request was refused",
    429: "too many requests",
}
CODES = {
    "context_length_exceeded": "the conversation is too long for this model",
    "content_filter": "the provider's content policy refuses this conversation",
    "content_policy_violation": "the provider's content policy refuses this conversation",
    **dict.fromkeys(OUT_OF_MONEY, "the account has no credit left; check its billing with the provider"),
}
_KEY = re.compile(r"\b(?:sk|pk|rk|key)-[\w*.-]{4,}|Bearer\s+\S+", re.IGNORECASE)


def classify(error: "openai.OpenAIError", model: str, address: str, key: str | None) -> ModelFault:
    """The fault an SDK error stands for.

    Args:
        address: Host and port called, without credentials.
        key: The key sent, so that it can be taken out of whatever the other side says.
    """
    import openai

    if isinstance(error, openai.APITimeoutError):
        return ModelFault(f"model {model!r} at {address} did not answer in time", passing=True, late=True)
    if isinstance(error, openai.APIConnectionError):
        cause = masked(str(error.__cause__ or error), key)
        return ModelFault(f"model {model!r} at {address} cannot be reached: {cause}", passing=True)
    if isinstance(error, openai.APIStatusError):
        return _status(error, model, address, key)
    return ModelFault(f"model {model!r} at {address}: {masked(str(error), key)}")


def broken_off(error: Exception, model: str, address: str, key: str | None) -> ModelFault:
    """The fault of an answer that stopped in the middle."""
    import httpx2

    if isinstance(error, httpx2.TimeoutException):
        return ModelFault(f"model {model!r} at {address} did not end its answer in time", passing=True, late=True)
    cause = masked(str(error) or type(error).__name__, key)
    return ModelFault(f"model {model!r} at {address} broke off its answer: {cause}", passing=True)


def masked(text: str, key: str | None) -> str:
    """Foreign words fit for a message: short, clean, without anything that looks like a key."""
    plain = text.replace(key, "***") if key and len(key) >= MIN_KEY else text
    return str(scrub(_KEY.sub("***", plain)))[:MAX_QUOTE]


def _status(error: "openai.APIStatusError", model: str, address: str, key: str | None) -> ModelFault:
    status, code = error.status_code, str(error.code or error.type or "")
    passing = (status in PASSING or status >= 500) and code not in OUT_OF_MONEY
    advice = (
        CODES.get(code) or ADVICE.get(status) or ("the server failed" if status >= 500 else "the request was refused")
    )
    said = masked(words(error.body), key)
    message = f"model {model!r} at {address} answered {status}: {advice}" + (f" ({said})" if said else "")
    wait = wait_of(error.response.headers, refused=status == TOO_MANY) if passing else None
    return ModelFault(message, passing=passing, retry_after=wait, status=status)


def words(body: Json) -> str:
    """What an error body says; its shape differs from server to server."""
    if isinstance(body, dict):
        body = body.get("message") or body.get("detail") or body.get("error") or ""
    if isinstance(body, str):
        return "" if "<html" in body[:500].lower() else body.strip()
    return compact(body) if body else ""


def joined(faults: list[ModelFault]) -> ModelFault:
    """One fault for all models tried: it may pass when one of them may, as soon as the first of those."""
    if len(faults) == 1:
        return faults[0]
    waits = [fault.retry_after for fault in faults if fault.passing]
    known = [wait for wait in waits if wait is not None]
    return ModelFault(
        "; then ".join(fault.message for fault in faults),
        passing=bool(waits),
        retry_after=min(known) if waits and len(known) == len(waits) else None,
        status=faults[-1].status,
        late=faults[-1].late,
        held=all(fault.held for fault in faults),
    )
