"""docs/graphs.md: its definitions are good, its expressions give what it says, its pictures are of this release."""

import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from registry.graph import expressions
from registry.graph.expressions import ExpressionError, Slots
from registry.graph.paths import ROOTS
from registry.graph.validation import Registries, check_registries, parse_agent
from registry.skills import catalogue

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "graphs.md").read_text(encoding="utf-8")
BLOCKS = [json.loads(text) for text in re.findall(r"^```json\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)]
SLOTS = next(block for block in BLOCKS if block.keys() <= set(ROOTS))
DEFINITIONS = [block for block in BLOCKS if block is not SLOTS]
ROWS = PAGE.split("| expression | gives |")[1].split("\n\n")[0]
EXPRESSIONS = re.findall(r"^\| `(.+)` \| (?:`(.+)`|error `(.+)`) \|$", ROWS, re.MULTILINE)


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda block: block.get("id", block.get("name")))
def test_every_definition_of_the_page_is_taken(definition: dict[str, Any]) -> None:
    agent, findings = parse_agent({"id": "preset", **definition})
    assert agent is not None, [str(finding) for finding in findings]
    skills = frozenset(skill.name for skill in catalogue.build())
    assert not [f for f in findings if f.code != "map_items_dynamic"]  # what a list holds is known at run time
    assert not check_registries(agent, Registries(skills=skills, documents=frozenset()))


@pytest.mark.parametrize(("expression", "value", "error"), EXPRESSIONS)
def test_every_expression_of_the_page_gives_what_it_says(expression: str, value: str, error: str) -> None:
    compiled = expressions.compile(expression.replace("\\|", "|"))
    if error:
        with pytest.raises(ExpressionError) as raised:
            compiled.evaluate(Slots(**SLOTS))
        assert raised.value.code == error
    else:
        assert compiled.evaluate(Slots(**SLOTS)) == json.loads(value)


def test_the_page_has_what_the_tests_above_look_for() -> None:
    assert len(DEFINITIONS) == 3
    assert len(EXPRESSIONS) == 10


def test_every_node_type_is_in_the_table() -> None:
    from registry.graph.drawing.look import LOOKS

    assert all(f"| `{type_}` |" in PAGE for type_ in LOOKS if type_ != "item")


def test_the_pictures_are_those_this_release_draws() -> None:
    made = runpy.run_path(str(DOCS / "draw.py"))["pictures"]()
    for name, picture in made.items():
        kept = (DOCS / "images" / name).read_text(encoding="ascii")
        assert kept == picture, f"docs/images/{name} is of another release: make pictures"
        assert f"images/{name}" in PAGE
