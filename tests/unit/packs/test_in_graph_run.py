"""The packs `files` and `shell` in `officina graph run`: an empty workspace of the command's own (spec: engine 22)."""

import tempfile
from pathlib import Path
from typing import Any

import pytest

from registry.errors import SkillError
from tests.unit.engine.stages import Played, call, play
from workers.sandbox.process import find_sandbox

PACKS: dict[str, Any] = {"core": True, "files": True, "shell": True, "process_poll": True, "process_kill": True}
ALLOW = {"fs.write": "allow", "process": "allow"}


def agent(permissions: dict[str, str], **shell: Any) -> dict[str, Any]:
    packs = PACKS | {"shell": {"spec": shell}}
    return {"id": "a", "instructions": "Work.", "packs": packs, "permissions": permissions}


def outputs(played: Played) -> list[Any]:
    return [r.get("output") for r in played.events("tool.result")]


def needs_a_sandbox() -> None:
    try:
        find_sandbox().execute(["sh", "-c", "true"], stdin=b"", files={}, timeout_s=20, cancelled=lambda: False)
    except SkillError as error:
        pytest.skip(error.message)


def test_files_are_written_and_read_in_a_workspace_that_goes_with_the_command() -> None:
    before = set(Path(tempfile.gettempdir()).glob("officina-graph-run-*"))
    turns = [
        [call("list_dir")],
        [call("write_file", path="a.txt", content="one\n")],
        [call("edit_file", path="a.txt", old_string="one", new_string="two")],
        [call("read_file", path="a.txt")],
        "done",
    ]
    for _ in range(2):
        played = play(agent(ALLOW), turns)
        assert played.status == "completed"
        said = outputs(played)
        assert (said[0]["entries"], said[3]["content"]) == ([], "1: two")
        assert [event["path"] for event in played.events("file.written")] == ["a.txt", "a.txt"]
    assert set(Path(tempfile.gettempdir()).glob("officina-graph-run-*")) <= before


def test_a_command_sees_the_files_and_its_job_ends_with_the_run() -> None:
    needs_a_sandbox()
    turns = [
        [call("write_file", path="a.txt", content="one\n")],
        [call("shell", command="cat a.txt; exit 3")],
        [call("shell", command="sleep 300", run_in_background=True)],
        "done",
    ]
    played = play(agent(ALLOW), turns)
    assert played.status == "completed"
    said = outputs(played)
    assert (said[1]["exitCode"], said[1]["stdout"], said[2]["status"]) == (3, "one\n", "running")


def test_a_command_asks_unless_its_agent_s_settings_let_it_through() -> None:
    needs_a_sandbox()
    played = play(agent({}, allowlist=["ls"]), [[call("shell", command="ls")], "done"])
    assert (played.status, outputs(played)[0]["exitCode"]) == ("completed", 0)
    asked = play(agent({}, allowlist=["ls"]), [[call("shell", command="ls; ls")], "done"])
    assert asked.status == "needs_input"
    (signal,) = asked.report["interrupts"]
    assert (signal["kind"], signal["action"]["input"]["command"]) == ("decision", "ls; ls")
    yes = play(agent({}, allowlist=["ls"]), [[call("shell", command="ls; ls")], "done"], answers=[{"approved": True}])
    assert (yes.status, outputs(yes)[-1]["exitCode"]) == ("completed", 0)


def test_a_blocked_command_and_a_denied_one_end_as_denied_and_ask_nobody() -> None:
    blocked = play(agent(ALLOW, blocklist=["sudo"]), [[call("shell", command="sudo ls")], "done"])
    denied = play(agent({"process": "deny"}), [[call("shell", command="ls")], "done"])
    network = play(agent(ALLOW | {"network": "deny"}, network=True), [[call("shell", command="ls")], "done"])
    for played in (blocked, denied, network):
        assert (played.status, played.report["interrupts"]) == ("completed", [])
        assert [r["outcome"] for r in played.events("tool.result")] == ["denied"]


def test_the_mode_plan_writes_and_runs_nothing() -> None:
    turns = [
        [call("write_file", path="a", content="x"), call("shell", command="ls"), call("glob", pattern="*")],
        "done",
    ]
    played = play(agent(ALLOW), turns, mode="plan")
    assert [r["outcome"] for r in played.events("tool.result")] == ["denied", "denied", "ok"]


@pytest.mark.parametrize("spec", [{"timeoutMs": 0}, {"allowlist": [""]}, {"cwd": "/"}])
def test_settings_that_do_not_fit_stop_the_run(spec: dict[str, Any]) -> None:
    played = play(agent(ALLOW, **spec), [[call("shell", command="ls")], "done"])
    assert (played.status, played.code) == ("failed", "agent_invalid")


def test_schedules_and_webhooks_are_kept_in_memory_and_start_nothing() -> None:
    """They are rows of a store that goes with the command: nobody fires them, and no key is made for the secret."""
    turns = [
        [call("schedule_set", name="Weekly", cron="0 7 * * 1", detail="Report."), call("webhook_set", name="Door")],
        [call("schedule_list"), call("webhook_list")],
        [call("schedule_set", name="Bob's", cron="0 7 * * 1", agentId="bob")],
        "done",
    ]
    agents = {"bob": {"id": "bob", "name": "Bob", "instructions": "Work."}}
    played = play(
        {"id": "a", "instructions": "Work.", "packs": {"scheduler": True, "webhook": True}}, turns, agents=agents
    )
    made, door, listed, doors, bobs = outputs(played)
    assert played.status == "completed"
    assert made["schedule"]["agentId"] == "a" and [one["id"] for one in listed] == [made["schedule"]["id"]]
    assert [one["id"] for one in doors] == [door["id"]] and "secret" not in door
    assert bobs["schedule"]["agentId"] == "bob"
