"""Which hooks of an agent an event reaches, and what their answers say (spec: engine 11). Nothing is called here."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from registry.agents import Hook
from registry.base import Json

#: What each event's handlers may bring about; an event that is not named here only listens.
HONOURED: Final[dict[str, frozenset[str]]] = {
    "SessionStart": frozenset({"context"}),
    "UserPromptSubmit": frozenset({"block", "context"}),
    "PreToolUse": frozenset({"block", "updateInput"}),
    "PostToolUse": frozenset({"updateOutput", "context"}),
    "PreModelCall": frozenset({"block"}),
    "PostModelCall": frozenset({"context"}),
    "SubagentStart": frozenset({"context"}),
    "PermissionRequest": frozenset({"block"}),
    "PreCompact": frozenset({"block"}),
}
#: Characters of a reason or a context.
MAX_TEXT: Final = 10_000
_TEXTS: Final = frozenset({"block", "context"})
#: Steps of a compiled matcher: more make it slow without saying more.
_MAX_PROGRAM: Final = 10_000
_NAME_MARKS: Final = frozenset("_.-,| ")
CUT: Final = " [... cut]"


class MatcherFault(ValueError):
    """A matcher cannot be read; the message says why."""


def matcher(text: str | None) -> Callable[[str], bool]:
    """What a matcher matches: all, a list of names, or a regular expression over the whole subject.

    Expressions are RE2's, so that no subject makes them slow. A name matches in its dotted and its wire form.

    Raises:
        MatcherFault: it is neither a list of names nor an expression RE2 reads.
    """
    if text is None or text.strip() in ("", "*"):
        return lambda subject: True
    if all(c.isalnum() or c in _NAME_MARKS for c in text):
        names = {name.strip() for name in text.replace("|", ",").split(",") if name.strip()}
        return lambda subject: subject in names or subject.replace(".", "__") in names
    return _expression(text)


def _expression(text: str) -> Callable[[str], bool]:
    import re2  # few agents have such a hook

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    try:
        pattern = re2.compile(text, options)
    except re2.error as error:
        raise MatcherFault(f"not an expression RE2 reads: {_words(error)}") from None
    if pattern.programsize > _MAX_PROGRAM:
        raise MatcherFault("the expression is too large once its repeats are written out")
    return lambda subject: pattern.fullmatch(subject) is not None


def _words(error: Exception) -> str:
    reason = error.args[0] if error.args else error
    return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)


@dataclass(frozen=True)
class Binding:
    """One hook of a definition, ready to be asked."""

    hook: Hook

    @cached_property
    def _matches(self) -> Callable[[str], bool]:
        return matcher(self.hook.matcher)

    def meets(self, subject: str, *, agent_id: str, mode: str | None) -> bool:
        """Whether it is bound to this.

        Raises:
            MatcherFault: its matcher cannot be read.
        """
        when = self.hook.when
        if when is not None and (when.agent not in (None, agent_id) or when.mode not in (None, mode)):
            return False
        return self._matches(subject)


def by_event(hooks: Iterable[Hook]) -> dict[str, tuple[Binding, ...]]:
    """The bindings of each event, in list order."""
    found: dict[str, tuple[Binding, ...]] = {}
    for hook in hooks:
        found[hook.event] = (*found.get(hook.event, ()), Binding(hook))
    return found


@dataclass
class Effects:
    """What the handlers of one event came to."""

    #: Why it is refused; the first block wins.
    block: str | None = None
    contexts: list[str] = field(default_factory=list)
    #: {updateInput?, updateOutput?}: the last one wins.
    updates: dict[str, Json] = field(default_factory=dict)


def take(effects: Effects, event: str, answer: Json) -> list[str]:
    """Adds a handler's answer to what came before it; returns what is ignored of it, in words."""
    if answer is None:
        return []
    if not isinstance(answer, dict):
        return [f"the answer is a {type(answer).__name__}, and has to be an object"]
    honoured = HONOURED.get(event, frozenset())
    ignored = [f"{key!r} has no effect on {event}" for key in answer if key not in honoured]
    given = {key: answer[key] for key in honoured & answer.keys() if answer[key] is not None}
    if given.get("block") is True:  # a refusal without a reason is still one
        given["block"] = "no reason given"
    ignored += [f"{key!r} has to be a text that is not blank" for key in _TEXTS & given.keys() if not _said(given[key])]
    if _said(given.get("block")):
        effects.block = cut(given["block"])
    if _said(given.get("context")):
        effects.contexts.append(cut(given["context"]))
    effects.updates |= {key: value for key, value in given.items() if key not in _TEXTS}
    return ignored


def cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - len(CUT)] + CUT


def _said(value: Json) -> bool:
    return isinstance(value, str) and bool(value.strip())
