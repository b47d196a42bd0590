"""Draws the pictures of this folder: `make pictures`."""

import json
import re
from pathlib import Path

from registry.agents import AgentDefinition
from registry.base import Json
from registry.graph.drawing.svg import draw
from registry.graph.validation import parse_agent
from registry.presets import SHIPPED

HERE = Path(__file__).parent
_DEFAULT = {"id": "default-loop", "name": "the default loop", "instructions": "Work."}


def pictures() -> dict[str, str]:
    """Name of the file in `images` -> the picture."""
    text = (HERE / "graphs.md").read_text(encoding="utf-8")
    first = re.search(r"^```json\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert first is not None
    assistant = json.loads((SHIPPED / "assistant.json").read_text(encoding="utf-8"))
    return {
        "default-loop.svg": draw(_agent(_DEFAULT)),
        "columnist.svg": draw(_agent(json.loads(first.group(1)))),
        "assistant.svg": draw(_agent({"id": "assistant", **assistant})),
    }


def _agent(definition: Json) -> AgentDefinition:
    agent, findings = parse_agent(definition)
    if agent is None:
        raise SystemExit("\n".join(map(str, findings)))
    return agent


if __name__ == "__main__":
    for name, picture in pictures().items():
        (HERE / "images" / name).write_text(picture, encoding="ascii")
