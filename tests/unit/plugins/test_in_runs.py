"""Plugins in runs: their tools in the run set, their hooks, their agents (spec: skills 17, engine 10, 11)."""

from pathlib import Path
from typing import Any

import pytest

from orchestrator import plugins
from orchestrator.known import load_presets, registries
from orchestrator.records import RunRecord
from orchestrator.settings import Settings
from registry.skills.contract import SchemaContract
from registry.skills.skill import Skill
from tests.plugins import GREET, Workshop, skill, written
from tests.unit.engine.stages import Played, call, play
from workers.engine.services import no_servers
from workers.inprocess.stage import Stage
from workers.runtime import Checker, _known_now, _targets

AGENT: dict[str, Any] = {"id": "a", "name": "A", "instructions": "Greet.", "plugins": ["hello"]}
GUARD = """
def guard(payload, officina):
    if payload["event"] == "PreToolUse" and "Bob" in str(payload):
        return {"block": "not Bob"}
    try:
        officina.ask("anything")
    except officina.Error as error:
        return {"updateInput": {"name": error.code}}
"""


@pytest.fixture
def workshop(settings: Settings) -> Workshop:
    return Workshop(settings)


def played(
    workshop: Workshop, turns: list[Any], definition: dict[str, Any] | None = None, mcp: Any = no_servers, **script: Any
) -> Played:
    def prepare(stage: Stage) -> None:
        stage.services.mcp = mcp
        stage.services.plugins = workshop.tools
        stage.services.check = lambda _run: []

    return play({**AGENT, **(definition or {})}, turns, prepare=prepare, **script)


def test_an_agent_that_names_a_plugin_has_its_tools(workshop: Workshop, tmp_path: Path) -> None:
    workshop.install(written(tmp_path / "p"))
    run = played(workshop, [[call("hello__greet", name="Ada")], "done"])

    assert (run.status, run.said) == ("completed", ['{"words":"Hello Ada"}'])
    assert "hello__greet" in {tool.name for tool in run.requests[0].tools}
    without = played(workshop, [[call("hello__greet", name="Ada")], "done"], {"plugins": []})
    assert "unknown_skill" in str(without.events("tool.result"))


def served(name: str) -> Skill:
    """A tool of an MCP server: its wire name is the plugin's, its name is not."""
    contract = SchemaContract({"type": "object"})
    return Skill(name, name, "Served.", contract, lambda _given, _context: "the server's", server="hello")


@pytest.mark.parametrize("source", ["stub", "server"])
def test_a_tool_of_a_taken_name_is_left_out_with_a_warning(workshop: Workshop, tmp_path: Path, source: str) -> None:
    workshop.install(written(tmp_path / "p"))
    turns = [[call("hello__greet", name="Ada")], "done"]
    if source == "stub":
        run = played(workshop, turns, tools={"hello.greet": {"returns": "the stub's"}})
    else:
        run = played(workshop, turns, {"mcpServers": ["hello"]}, mcp=lambda _ids, _out: [served("hello__greet")])

    assert run.status == "completed" and f"the {source}'s" in run.said[0]
    (told,) = run.events("plugin.skipped")
    assert (told["plugin"], told["tool"]) == ("hello", "hello.greet") and "taken" in told["reason"]


def test_one_that_is_gone_or_disabled_is_left_out_and_the_trace_says_why(workshop: Workshop, tmp_path: Path) -> None:
    workshop.install(written(tmp_path / "p"))
    plugins.disable(workshop.settings, "hello")
    run = played(workshop, ["done"], {"plugins": ["hello", "gone"]})
    assert [(one["plugin"], one["reason"]) for one in run.events("plugin.skipped")] == [
        ("hello", "it is disabled: its owner disabled it"),
        ("gone", "it is not installed"),
    ]


def test_a_plugins_hook_is_asked_behind_the_wall_and_has_none_of_its_grant(workshop: Workshop, tmp_path: Path) -> None:
    workshop.install(written(tmp_path / "p", GREET + GUARD, hooks=["guard"], capabilities=["llm"]), "llm")
    hooks = [{"event": "PreToolUse", "handler": {"plugin": "hello.guard"}}]
    permissions = {"hooks": hooks, "mode": "bypass"}
    run = played(
        workshop, [[call("hello__greet", name="Bob")], [call("hello__greet", name="Ada")], "done"], permissions
    )

    assert "not Bob" in run.said[0]
    assert run.said[1] == '{"words":"Hello not_allowed"}'


@pytest.mark.parametrize("name", ["hello.gone", "gone.guard", "hello"])
def test_a_hook_that_no_plugin_gives_is_said_and_has_no_effect(workshop: Workshop, tmp_path: Path, name: str) -> None:
    workshop.install(written(tmp_path / "p"))
    hooks = [{"event": "PreToolUse", "handler": {"plugin": name}}]
    run = played(workshop, [[call("hello__greet", name="Ada")], "done"], {"hooks": hooks})
    assert run.said == ['{"words":"Hello Ada"}']
    assert "no installed package" in str(run.events("hook.failed"))


def test_its_agents_can_be_spawned_and_nothing_else(workshop: Workshop, tmp_path: Path) -> None:
    helper = {"id": "hello-helper", "name": "Helper", "instructions": "Help.", "plugins": ["hello"]}
    workshop.install(written(tmp_path / "p", agents=[helper]))
    settings = workshop.settings
    presets = load_presets(settings, registries(settings, stand_in=True))
    run = _run("local")
    found = {one.id: one.level for one in _targets(settings, workshop.database, run, presets)}
    assert found["hello-helper"] == "plugin" and found["explorer"] == "top"
    assert "hello-helper" not in {one.id for one in _targets(settings, workshop.database, _run("bob"), presets)}
    plugins.disable(settings, "hello")
    assert "hello-helper" not in {one.id for one in _targets(settings, workshop.database, run, presets)}


def test_a_definition_is_judged_by_the_plugins_of_its_owner_at_this_moment(workshop: Workshop, tmp_path: Path) -> None:
    workshop.install(written(tmp_path / "p", skills=[skill()]))
    settings = workshop.settings
    checker = Checker(registries(settings, stand_in=True), lambda known, run: _known_now(settings, known, run))

    assert checker.definition(AGENT, _run("local")) == []
    assert "plugin_unknown" in checker.definition(AGENT, _run("bob"))[0]
    plugins.disable(settings, "hello")
    assert "plugin_unknown" in checker.definition(AGENT, _run("local"))[0]
    plugins.enable(settings, "hello")
    assert checker.definition(AGENT, _run("local")) == []


def _run(owner: str) -> RunRecord:
    class Run:
        owner_id, project_id, workspace = owner, "p", None

    return Run()  # type: ignore[return-value]
