"""Draws the pictures of this folder: `make pictures`."""

import json
import re
import runpy
from pathlib import Path

import yaml

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


def more() -> dict[str, str]:
    """The pictures of the tutorial and of docs/concepts.md."""
    page = (HERE / "tutorial" / "first-graph.md").read_text(encoding="utf-8")
    editor = re.search(r"^`editor.yaml`:\n\n```yaml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert editor is not None
    drawn: dict[str, str] = runpy.run_path(str(HERE / "diagrams.py"))["diagrams"]()
    return {"editor.svg": draw(_agent(yaml.safe_load(editor[1]))), **drawn}


def _agent(definition: Json) -> AgentDefinition:
    agent, findings = parse_agent(definition)
    if agent is None:
        raise SystemExit("\n".join(map(str, findings)))
    return agent


if __name__ == "__main__":
    for name, picture in {**pictures(), **more()}.items():
        (HERE / "images" / name).write_text(picture, encoding="ascii")
