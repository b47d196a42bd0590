"""`officina generators`: kept, shown, run with what is typed, removed."""

import json
from pathlib import Path

from tests.commands import Run

FILE = """
name: Note
inputs:
  - {key: topic, label: Topic, type: text, required: true}
  - {key: count, label: How many, type: number, default: 2}
steps:
  - {key: look, title: "Look at {{topic}}", role: researcher, instruction: "List {{count}} facts on {{topic}}."}
  - {key: write, title: Write, role: writer, instruction: Write it., dependsOn: [look]}
"""


def test_a_generator_is_saved_shown_run_and_removed(officina: Run, tmp_path: Path) -> None:
    (tmp_path / "note.yaml").write_text(FILE)
    (tmp_path / "topic.txt").write_text("bees")
    kept = officina("generators", "save", str(tmp_path / "note.yaml")).stdout.strip()
    listed = json.loads(officina("generators", "list", "--json").stdout)
    assert [one["id"] for one in listed if not one["builtIn"]] == [kept] and len(listed) == 6
    assert "--input count=..." in officina("generators", "show", kept).stdout
    topic = f"topic=@{tmp_path / 'topic.txt'}"
    made = json.loads(officina("generators", "run", kept, "-i", topic, "-i", "count=5", "--rehearse", "--json").stdout)
    shown = json.loads(officina("show", made["id"], "--json").stdout)
    assert [task["title"] for task in shown["tasks"]] == ["Look at bees", "Write"]
    for words, code in (((), 2), (("-i", "topic"), 2), (("-i", "topic=a", "-i", "count=many"), 2)):
        refused = officina("generators", "run", kept, *words)
        assert refused.returncode == code and ("topic" in refused.stderr or "count" in refused.stderr)
    assert officina("generators", "remove", kept).returncode == 0
    assert officina("generators", "show", kept).returncode == 1
