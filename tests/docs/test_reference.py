"""docs/reference: made from the code, and complete: every command, setting, node, kind of event and code is in it."""

import ast
import runpy
from pathlib import Path
from typing import Any, get_args

import pytest

from orchestrator.settings import variables
from registry.graph import findings, model

FOLDER = Path(__file__).parents[2] / "docs" / "reference"
MADE = runpy.run_path(str(FOLDER.parent / "reference_pages.py"))
PAGES: dict[str, str] = MADE["pages"]()
EVENTS: dict[str, dict[str, str]] = MADE["events"]()


@pytest.mark.parametrize("name", sorted(PAGES))
def test_a_page_says_what_the_code_does(name: str) -> None:
    path = FOLDER / name
    assert path.exists() and path.read_text(encoding="utf-8") == PAGES[name], "run `make skill-pages`"


def test_every_variable_is_a_setting_of_the_page() -> None:
    tiers = ("FAST", "STANDARD", "DEEP")
    shown = {name.replace(f"__{tier}", "__TIER") for name in variables() for tier in tiers if f"__{tier}" in name}
    plain = {name for name in variables() if not any(f"__{tier}" in name for tier in tiers)}
    groups = {"OFFICINA_MODELS__TIER", *(name for name in plain if any(n.startswith(f"{name}__") for n in plain))}

    missing = [name for name in (plain | shown) - groups if f"| `{name}` |" not in PAGES["settings.md"]]

    assert missing == []


def test_every_setting_has_its_meaning() -> None:
    rows = [line for line in PAGES["settings.md"].splitlines() if line.startswith("| `OFFICINA_")]
    assert [row for row in rows if row.rstrip("| ").count("|") < 4] == [], "a text below the field is missing"


def test_every_node_has_its_fields() -> None:
    for node in get_args(get_args(model.Node)[0]):
        part = PAGES["nodes.md"].split(f"## {node.model_fields['type'].default}\n")[1].split("\n## ")[0]
        for name, field in node.model_fields.items():
            assert name in ("type", "label") or f"| `{field.alias or name}` |" in part


def test_every_kind_of_event_that_is_written_is_in_the_list_and_no_other() -> None:
    assert MADE["found_kinds"]() == set(EVENTS), "docs/reference/events.yaml"


def test_what_is_written_with_a_kind_is_in_the_list() -> None:
    for call in MADE["_nodes"]():
        if isinstance(call, ast.Call) and call.args and MADE["_called"](call) in ("emit", "Event"):
            kind = getattr(call.args[0], "value", None)
            if kind in EVENTS:
                assert fields_of(call) <= {name.rstrip("?") for name in EVENTS[kind]["data"].split()}, kind


def fields_of(call: ast.Call) -> set[str]:
    """Fields of the data that stand in the call itself."""
    beside = ("task_id", "run_id", "agent_id", "node_id", "at", "seq")
    named = {one.arg for one in call.keywords if one.arg and one.arg not in beside}
    given: list[Any] = [one.keys for one in call.args[1:2] if isinstance(one, ast.Dict)]
    return named | {key.value for keys in given for key in keys if isinstance(key, ast.Constant)}


def test_every_code_that_is_raised_is_in_the_list_and_no_other() -> None:
    known = set(MADE["codes"]())
    raised = set(MADE["found_codes"]()) | set(findings.CODES)
    assert raised == known, "docs/reference/codes.yaml"
