"""The script of the documentation does what the page says."""

import re
from pathlib import Path

import yaml

from workers.models.model import Request, Situation, ToolResult
from workers.models.standin import StandIn

PAGE = Path(__file__).parents[3] / "docs" / "models.md"
TASK = {"key": "prices", "title": "Prices"}
RESULTS = [
    ToolResult("sum", "math.evaluate", True, {"value": 64.47}, "64.47"),
    ToolResult("w", "docs.write_markdown", True, {"path": "docs/prices.md"}, ""),
]


def say(**where):
    block = re.search(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    situation = Situation(script=yaml.safe_load(block[1]), **{"task": TASK, "input": {"text": "T"}, **where})
    return StandIn().generate(Request(tier="standard", situation=situation))


def test_the_turns_of_the_task_follow_each_other():
    first, second, third = (say(turn=turn, results=RESULTS[:turn]) for turn in range(3))
    assert [call.name for call in first.calls] == ["math.evaluate"]
    assert second.calls[0].arguments["markdown"] == "Three boxes and the postage come to **64.47 USD**.\n"
    assert (third.text, third.calls) == ("Written to docs/prices.md: 64.47 USD.", [])


def test_children_and_items_have_their_turns():
    assert say(kind="spawn", agent_id="checker").text == "Checked: T"
    assert say(kind="item", item={"name": "pear"}, index=1).text == "Item 1 is pear."
