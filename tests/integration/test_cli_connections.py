"""`officina connections`: secrets go in, are used, and come out nowhere."""

import json
import re
from pathlib import Path

import pytest

from tests.commands import Run

SHOP = {"kind": "http", "hosts": ["api.shop.example"], "secret": "hunter2hunter2"}
PAGE = (Path(__file__).parents[2] / "docs" / "network.md").read_text(encoding="utf-8")


def test_a_connection_is_set_listed_replaced_and_removed(officina: Run, tmp_path: Path) -> None:
    assert officina("connections").returncode == 1, "looking makes no database"
    (tmp_path / "shop.json").write_text(json.dumps(SHOP))
    assert officina("connections", "set", "shop", "--input", "@shop.json").stdout == "shop saved\n"
    assert officina("connections", "set", "shop", "--input", "-", given=json.dumps(SHOP)).stdout == "shop replaced\n"
    (listed,) = json.loads(officina("connections", "--json").stdout)
    assert (listed["name"], listed["kind"], listed["secrets"]) == ("shop", "http", ["secret"])
    assert listed["config"]["hosts"] == ["https://api.shop.example"]
    shown = officina("connections").stdout
    assert "shop" in shown and "hunter2" not in shown + json.dumps(listed)
    assert officina("connections", "remove", "shop").returncode == 0
    again = officina("connections", "remove", "shop")
    assert again.returncode == 1 and "unknown_connection" in again.stderr


@pytest.mark.parametrize(
    "given", ["{", "[]", "7", '{"kind": "http"}', '{"kind": "http", "hosts": ["x"], "x": 1}', "@no"]
)
def test_what_is_no_connection_is_wrong_use(officina: Run, given: str) -> None:
    ended = officina("connections", "set", "shop", "--input", given)
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr


def test_a_new_key_is_taken(officina: Run) -> None:
    key = officina("connections", "new-key").stdout.strip()
    words = ("connections", "set", "shop", "--input", json.dumps(SHOP))
    assert officina(*words, OFFICINA_SECRET_KEY=key).returncode == 0
    assert officina(*words, OFFICINA_SECRET_KEY="nonsense").returncode == 2


def test_the_page_says_what_the_commands_take(officina: Run) -> None:
    ((name, document),) = re.findall(r"officina connections set (\w+) --input '(.+)'", PAGE)
    whole = json.loads(document) | {"secret": "hunter2hunter2"}
    assert officina("connections", "set", name, "--input", json.dumps(whole)).returncode == 0
    (searching,) = re.findall(r"OFFICINA_SEARCH='(.+)'", PAGE)
    assert officina("doctor", OFFICINA_SEARCH=searching).returncode == 0
