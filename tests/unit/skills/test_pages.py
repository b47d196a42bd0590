"""docs/skills: a page a skill, made from the code, and the counts the catalogue keeps (spec: skills 1)."""

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from registry.base import Json
from registry.skills import catalogue

FOLDER = Path(__file__).parents[3] / "docs" / "skills"
MADE = runpy.run_path(str(FOLDER.parent / "skill_pages.py"))
PAGES: dict[str, str] = MADE["pages"]()
EXAMPLES: dict[str, Json] = MADE["EXAMPLES"]
SKILLS = catalogue.build()
WORLD_ACTING = {
    *("email.send", "telegram.send", "whatsapp.send", "http.request", "http.json"),
    *("code.execute", "code.scaffold_react_node"),
}


@pytest.mark.parametrize("name", sorted(PAGES))
def test_a_page_says_what_the_code_does(name: str) -> None:
    path = FOLDER / name
    assert path.exists() and path.read_text(encoding="utf-8") == PAGES[name], "run `make skill-pages`"


def test_the_page_of_the_packs_says_what_the_code_does() -> None:
    page = FOLDER.parent / "packs.md"
    assert page.read_text(encoding="utf-8") == MADE["packs_page"](), "run `make skill-pages`"


def test_there_is_no_page_of_what_is_gone() -> None:
    assert {path.name for path in FOLDER.glob("*.md")} == set(PAGES)


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_an_example_is_a_good_input(name: str) -> None:
    skill = SKILLS.find(name)
    if skill is None:
        pytest.skip(f"{name} is not in the catalogue")
    skill.input.check(EXAMPLES[name])


def test_the_world_acting_are_the_seven() -> None:
    assert {skill.name for skill in SKILLS if skill.world_acting} <= WORLD_ACTING


@pytest.mark.parametrize("skill", SKILLS, ids=lambda skill: skill.name)
def test_what_is_not_catalogued_is_not_documented(skill: Any) -> None:
    assert skill.catalogued == (skill.name not in ("docs.write_pdf", "http.json"))
    assert skill.documented == (skill.catalogued and not skill.name.startswith("studio."))
    assert skill.description and skill.title
    assert skill.output is not None, "a skill of the catalogue has a model of its output"


def test_the_catalogue_and_its_schemas_load_nothing_heavy() -> None:
    program = (
        "import sys; from registry.skills import catalogue; "
        "[skill.definition() for skill in catalogue.build()]; print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    heavy = {
        *("lark", "mpmath", "markdown_it", "jsonschema", "yaml", "re2", "lxml", "docx", "reportlab", "sqlalchemy"),
        *("httpx2", "httpcore2", "trafilatura", "pypdf", "idna", "openai", "trimesh", "numpy", "PIL", "cryptography"),
    }
    assert not heavy & set(done.stdout.split())
