"""A plugin on real workers: written as the page says, installed by hand, used by an agent, gone when it changes."""

import json
import re
from pathlib import Path
from typing import Any

from orchestrator import plugins
from orchestrator.settings import Settings
from tests.commands import Run
from tests.plugins import TAKEN
from tests.projects import Watched, start, task

PAGE = Path(__file__).parents[2] / "docs/plugins.md"


def of_the_page(folder: Path) -> Path:
    """The plugin a reader of the page has written: each file it shows, by the name above it."""
    shown = re.findall(r"`(wordcount/[\w.]+)`:\n\n```\w+\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert {name for name, _ in shown} == {"wordcount/manifest.json", "wordcount/wordcount.py"}
    for name, text in shown:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder / "wordcount"


def test_the_plugin_of_the_page_is_reviewed_installed_listed_and_removed(officina: Run, tmp_path: Path) -> None:
    source = of_the_page(tmp_path)
    found = json.loads(officina("plugins", "review", str(source), "--json").stdout)
    assert found["findings"] == [] and found["capabilities"] == ["files:read"]
    assert "asks for: files:read" in officina("plugins", "review", str(source)).stdout
    refused = officina("plugins", "install", str(source), "--grant", "llm")
    assert refused.returncode == 2 and "nothing that wordcount asks for" in refused.stderr
    words = ("plugins", "install", str(source), "--grant", "files:read", "--expect", found["digest"])
    assert "OFFICINA_PLUGINS__RUN" in officina(*words).stderr
    (listed,) = json.loads(officina("plugins", "list", "--json").stdout)
    assert (listed["status"], listed["granted"]) == ("enabled", ["files:read"])
    assert "disabled" in officina("plugins", "disable", "wordcount").stdout
    assert "enabled" in officina("plugins", "enable", "wordcount").stdout
    assert officina("plugins", "remove", "wordcount").returncode == 0
    assert officina("plugins", "remove", "wordcount").returncode == 1


def test_an_agent_on_a_worker_uses_it_and_one_that_changed_is_left_out(
    tmp_path: Path, live_settings: Settings, worker_process: Any
) -> None:
    plugins.install(live_settings, of_the_page(tmp_path), ["files:read"], taken=TAKEN)
    worker_process(live_settings, STAND_IN="true", PLUGINS__RUN="true").ready()
    counter = {"name": "Counter", "instructions": "Count.", "plugins": ["wordcount"], "packs": {"files": True}}
    write = {"calls": [{"name": "write_file", "args": {"path": "a.txt", "content": "one two three"}}]}
    turns = [write, {"calls": [{"name": "wordcount.count", "args": {"path": "a.txt"}}]}, {"say": "done"}]

    def run(name: str, **agent: Any) -> Watched:
        mine = {"agents": {"counter": counter | {"permissions": {"fs.write": "allow"}} | agent}}
        plan = [task("a", agent="counter")]
        return Watched(
            live_settings, start(tmp_path / name, live_settings, plan, {"tasks": {"a": turns}}, **mine).project_id
        )

    good = run("good")
    assert good.ended() == "completed"
    assert [one["output"] for one in good.kinds("tool.result")][-1] == {"words": 3, "longest": "three"}

    place = plugins.folder(live_settings) / str(plugins.one(live_settings, "wordcount")["digest"])
    (place / "wordcount.py").write_text("def count(given, officina):\n    return {'words': 666, 'longest': ''}\n")
    changed = run("changed")
    changed.ended()
    results = changed.kinds("tool.result")
    assert "666" not in json.dumps(results) and results[-1]["isError"] is True
    assert plugins.one(live_settings, "wordcount")["status"] == "disabled"


def test_graph_run_and_skills_invoke_know_the_plugins_of_who_runs_them(officina: Run, tmp_path: Path) -> None:
    on = {"OFFICINA_PLUGINS__RUN": "true"}
    words = ("plugins", "install", str(of_the_page(tmp_path)), "--grant", "files:read")
    assert officina(*words).returncode == 0
    agent = {"id": "counter", "name": "Counter", "instructions": "Count.", "plugins": ["wordcount"]}
    agent |= {"packs": {"files": True}, "permissions": {"fs.write": "allow"}, "budget": {"maxSteps": 10}}
    write = {"calls": [{"id": "1", "name": "write_file", "args": {"path": "a.txt", "content": "one two three"}}]}
    count = {"calls": [{"id": "2", "name": "wordcount.count", "args": {"path": "a.txt"}}]}
    (tmp_path / "agent.json").write_text(json.dumps(agent))
    (tmp_path / "script.json").write_text(json.dumps({"input": "Go.", "model": [write, count, {"text": "done"}]}))
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "b.txt").write_text("one two")

    report = json.loads(officina("graph", "run", "agent.json", "--script", "script.json", "--json", **on).stdout)
    called = ("skills", "invoke", "wordcount.count", "--input", '{"path": "b.txt"}', "--workspace", "work")
    ended, off = officina(*called, **on), officina(*called)
    listed = [one["name"] for one in json.loads(officina("skills", "--json").stdout)]

    results = [line["data"] for line in report["events"] if line["kind"] == "tool.result"]
    assert [(one["name"], one["outcome"]) for one in results] == [("write_file", "ok"), ("wordcount.count", "ok")]
    assert results[1]["output"]["words"] == 3
    assert json.loads(ended.stdout)["output"]["words"] == 2, ended
    assert (off.returncode, json.loads(off.stdout)["code"]) == (1, "not_allowed")
    assert "wordcount.count" in listed
