"""What the model is told beside the history: the system text, and notes that are said once and not stored."""

from registry.graph.expressions import render
from registry.graph.model import Generate
from workers.engine import budget
from workers.engine.session import Session

CUT = "\n[... cut]"


def system(session: Session, node: Generate) -> str:
    """The node's prompt with its parts filled in."""
    prompt = session.agent.prompts.get(node.prompt)
    text = render(prompt.instructions, session.slots(), plain=False) if prompt else ""
    most = session.limits.prompt_chars
    return text if len(text) <= most else text[: most - len(CUT)] + CUT


def notes(session: Session, *, closing: bool) -> list[dict[str, str]]:
    """The trailing user message of tagged notes; empty when there is nothing to say."""
    said = []
    if closing:
        said.append(
            '<note kind="closing">This was your last turn with tools. Answer now in plain words: what you did, '
            "what is left, and the files you wrote.</note>"
        )
    elif left := budget.note(session):
        said.append(f'<note kind="budget">{left}</note>')
    return [{"role": "user", "content": "\n".join(said)}] if said else []
