"""What the services that carry messages answer: asked once, read in bounds, refusals told in our codes."""

from typing import Any, Final, NoReturn

from registry.base import Json
from registry.errors import Detail, SkillError
from registry.jsontext import JsonFault, compact, parse
from registry.skills.context import SkillContext
from registry.skills.network import Incoming, NetworkFault, Outgoing

#: Bytes of an answer that are read; theirs have a few hundred.
MAX_ANSWER: Final = 64 * 1024
#: Seconds of a `retryAfter` that are believed.
MAX_WAIT: Final = 24 * 3600
_UNKNOWN: Final = "it may have been sent, or not; do not send it again without asking"


def body(message: dict[str, Json]) -> bytes:
    return compact(message).encode()


def ask(request: Outgoing, context: SkillContext) -> Incoming:
    """One request that sends a message; nothing is tried again.

    Raises:
        SkillError: what kept it from leaving; `unknown_delivery` when it broke after a byte of it had left.
    """
    if context.net is None:
        raise SkillError("network_error", "no network is wired to this call; nothing was sent")
    try:
        return context.net.send(request, cancelled=context.cancelled)
    except NetworkFault as fault:
        if not fault.sent:
            raise
        words = f"no answer came after the message had left ({fault.code}): {_UNKNOWN}"
        raise SkillError("unknown_delivery", words) from None


def document(answer: Incoming) -> dict[str, Any]:
    """The JSON object of an answer; an error page that is none is an empty one.

    Raises:
        SkillError: `unknown_delivery`: it was taken, and nobody can read as what.
    """
    try:
        said = parse(answer.body)
    except JsonFault:
        said = None
    if isinstance(said, dict):
        return said
    if answer.ok:
        raise SkillError("unknown_delivery", f"the answer to the message cannot be read: {_UNKNOWN}")
    return {}


def words(text: Json) -> str:
    """Their words for people, cut and on one line."""
    if not isinstance(text, str):
        return ""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:300]


def limited(what: str, wait: Json, answer: Incoming) -> NoReturn:
    """Their limit; `wait` are the seconds they ask for, else the answer's header says."""
    if not isinstance(wait, int) or isinstance(wait, bool):
        header = (answer.header("retry-after") or "").strip()
        wait = int(header) if header.isascii() and header.isdigit() and len(header) < 8 else None
    details = [] if wait is None else [Detail("retryAfter", str(max(1, min(MAX_WAIT, wait))))]
    when = f"; wait {details[0].message} s" if details else ""
    raise SkillError("rate_limited", f"{what}: nothing was sent{when}", retryable=True, details=details)


def failed(who: str, status: Json, said: str) -> NoReturn:
    """Any other refusal. A server that stumbled may have sent it all the same."""
    after = _UNKNOWN if isinstance(status, int) and status >= 500 else "nothing was sent"
    raise SkillError("remote_error", f"{who} answered with a failure ({said}): {after}")


__all__ = ["MAX_ANSWER", "ask", "body", "document", "failed", "limited", "words"]
