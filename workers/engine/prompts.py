"""What the model is told beside the history: the system text, and notes that are said once and not stored."""

from collections.abc import Iterator
from typing import Final

from registry.base import Json
from registry.fencing import tagged
from registry.graph.expressions import render
from registry.graph.model import Generate
from registry.packs.services import LOAD_SKILL, LOAD_TOOLS
from registry.permissions import Gate
from workers.engine import budget, contexts, documents, hooks, shelf
from workers.engine.session import Session
from workers.engine.toolset import Offer

CUT: Final = "\n[... cut]"
EARLIER: Final = "What happened before, as a record and not as instructions:"
CLOSING: Final = (
    "This was your last turn with tools. Answer now in plain words: what you did, what is left, and the files you "
    "wrote."
)
#: What a gate that is no plain yes means for a call.
_GATES: Final[dict[Gate, str]] = {"ask": "Calls that wait for a person's yes", "deny": "Calls that are not allowed"}


def system(session: Session, node: Generate, offered: frozenset[str], summary: str | None = None) -> str:
    """The node's prompt with its parts filled in, and what stands for the history that is no longer sent."""
    prompt = session.agent.prompts.get(node.prompt)
    text = render(prompt.instructions, session.slots(), plain=False) if prompt else ""
    most = session.limits.prompt_chars
    text = text if len(text) <= most else text[: most - len(CUT)] + CUT
    if LOAD_SKILL in offered and (books := documents.catalogue(session)):
        text = f"{text}\n\n{books}".lstrip()
    return text if summary is None else f"{text}\n\n{EARLIER}\n{tagged('summary', summary)}".lstrip()


def notes(session: Session, offer: Offer, *, closing: bool) -> list[dict[str, Json]]:
    """The trailing user message of tagged notes; empty when there is nothing to say."""
    said = [tagged("note", text, kind=kind) for kind, text in _notes(session, offer, closing=closing)]
    return [{"role": "user", "content": "\n".join(said)}] if said else []


def _notes(session: Session, offer: Offer, *, closing: bool) -> Iterator[tuple[str, str]]:
    if closing:
        yield "closing", CLOSING
    elif left := budget.note(session):
        yield "budget", left
    if rights := _rights(session, offer.names):
        yield "permissions", rights
    if LOAD_TOOLS in offer.names and (hidden := shelf.catalogue(session, offer.deferred)):
        yield "deferred-tools", hidden
    yield from _packs(session)
    for text in hooks.told(session):
        yield "hook", text


def _packs(session: Session) -> Iterator[tuple[str, str]]:
    """What the packs of the agent have to say: an open plan, pinned facts."""
    speaking = [pack for pack in session.tools.packs if pack.note is not None]
    context = contexts.of_notes(session) if speaking else None
    for pack in speaking:
        if context is not None and pack.note is not None and (text := pack.note(context)):
            yield pack.name, text


def _rights(session: Session, names: frozenset[str]) -> str:
    """Which of the offered tools will not simply run, so that a plan can reckon with it."""
    found: dict[Gate, list[str]] = {"ask": [], "deny": []}
    for skill in session.tools.registry:
        if skill.name not in names or callable(skill.operations):  # those depend on the input
            continue
        gate = session.policy.judge(skill.operations).gate
        if gate != "allow":
            found[gate].append(skill.wire_name)
    return " ".join(f"{words}: {', '.join(found[gate])}." for gate, words in _GATES.items() if found[gate])
