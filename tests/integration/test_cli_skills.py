"""`officina skills` and `officina doctor` (spec: skills 3.1)."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from orchestrator.settings import Settings
from orchestrator.signals import answer
from tests.commands import Ended, Run
from tests.projects import Watched, start, task
from tests.rows import Project
from tests.support import eventually
from tests.traps import serving


def test_skills_are_listed_shown_and_called(officina: Run) -> None:
    found = {skill["name"]: skill for skill in json.loads(officina("skills", "--json").stdout)}
    assert found["math.evaluate"]["wireName"] == "math__evaluate"
    assert found["math.evaluate"]["wired"] is True
    assert [found[name]["wired"] for name in ("web.search", "email.send", "llm.generate")] == [False] * 3
    assert "math.evaluate" in officina("skills").stdout
    assert "expression" in officina("skills", "show", "math__evaluate").stdout


def test_documents_are_listed_and_shown_with_what_was_left_out(officina: Run, tmp_path: Path) -> None:
    root = tmp_path / "own"
    for name, text in {"good": "---\nname: house-style\ndescription: How we sound\n---\nShort.\n", "bad": "x"}.items():
        (root / name).mkdir(parents=True)
        (root / name / "SKILL.md").write_text(text)
    own = {"OFFICINA_SKILLS_ROOT": str(root)}

    found = json.loads(officina("skills", "documents", "--json", **own).stdout)
    names = [one["name"] for one in found["documents"]]
    assert {"house-style", "workspace-ops"} <= set(names) and [f["code"] for f in found["faults"]] == ["front_matter"]
    listed = officina("skills", "documents", **own)
    assert "house-style" in listed.stdout and "left out" in listed.stderr
    assert "Short." in officina("skills", "show", "house-style", **own).stdout
    assert json.loads(officina("skills", "show", "house-style", "--json", **own).stdout)["instructions"] == "Short.\n"
    assert "bad/SKILL.md" in officina("doctor", **own).stdout


@pytest.mark.slow
def test_servers_are_started_and_listed_and_the_doctor_says_which_fail(officina: Run, tmp_path: Path) -> None:
    server = str(Path(__file__).parents[1] / "mcp_server.py")
    entries = {"box": {"command": sys.executable, "args": ["-I", "-S", server]}, "gone": {"command": "no-such-program"}}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": entries}))
    mine = {"OFFICINA_MCP_FILE": str(tmp_path / "mcp.json")}

    ended = officina("mcp", "list", "--json", **mine)
    box, gone = json.loads(ended.stdout)["servers"]
    assert ended.returncode == 1 and box["state"] == "ready" and "box__echo" in {tool["name"] for tool in box["tools"]}
    assert gone["state"] == "failed" and "no such program" in gone["reason"]
    assert "box__echo" in officina("mcp", "list", **mine).stdout
    told = officina("doctor", **mine).stdout
    assert "1 of 2 servers are ready" in told and "no such program" in told
    assert officina("mcp", "list", OFFICINA_MCP_FILE=str(tmp_path / "none.json")).returncode == 0


def invoked(ended: Ended) -> dict[str, Any]:
    (line,) = ended.stdout.splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


def test_a_call_prints_one_line_and_exits_by_its_outcome(officina: Run, tmp_path: Path) -> None:
    given = '{"expression": "1/3 + 1/6"}'
    (tmp_path / "in.json").write_text(given)
    for words, stdin in ((given, ""), ("-", given), ("@in.json", "")):
        ended = officina("skills", "invoke", "math.evaluate", "--input", words, given=stdin)
        assert ended.returncode == 0, ended.stderr
        assert invoked(ended)["ok"] is True
    failed = officina("skills", "invoke", "math.evaluate", "--input", '{"expression": "1/0"}')
    assert (failed.returncode, invoked(failed)["code"]) == (1, "domain_error")
    unknown = officina("skills", "invoke", "no.such", "--input", "{}")
    assert (unknown.returncode, invoked(unknown)["code"]) == (1, "unknown_skill")


@pytest.mark.parametrize(
    "given",
    ["", "{", "[]", "1", '{"a": NaN}', '{"a": 1, "a": 2}', "[" * 200 + "]" * 200, "@missing.json", '{"a": 1e999}'],
)
def test_an_input_that_is_no_json_object_is_wrong_use(officina: Run, given: str) -> None:
    ended = officina("skills", "invoke", "math.evaluate", "--input", given)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("--input: invalid_json: ")


def test_a_call_works_in_the_folder_it_is_given(officina: Run, tmp_path: Path) -> None:
    given = json.dumps({"path": "a/b.txt", "content": "hello"})
    ended = officina("skills", "invoke", "files.write", "--input", given, "--workspace", str(tmp_path / "work"))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert (tmp_path / "work" / "a" / "b.txt").read_text() == "hello"


def test_as_an_agent_nobody_stands_behind_a_call(officina: Run) -> None:
    given = json.dumps({"code": "print(1)"})
    ended = officina("skills", "invoke", "code.execute", "--input", given, "--as", "agent")
    assert (ended.returncode, invoked(ended)["code"]) == (1, "approval_required")


def test_doctor_tells_settings_and_parts_and_no_secret(officina: Run, tmp_path: Path) -> None:
    secrets = {
        "OFFICINA_MODEL_API_KEY": "sk-hunter2",
        "OFFICINA_BROKER_URL": "redis://:hunter2@127.0.0.1:1/0",
        "OFFICINA_DATABASE_URL": "postgresql+psycopg://u:hunter2@127.0.0.1:1/x?password=hunter2",
    }
    ended = officina("doctor", **secrets)
    assert ended.returncode == 1
    assert "hunter2" not in ended.stdout + ended.stderr
    assert "OFFICINA_MODEL_API_KEY" in ended.stdout and "(set, not shown)" in ended.stdout
    for part in ("database", "broker", "redis"):
        assert re.search(rf"✗ broken  {part} ", ended.stdout), part


def test_doctor_of_a_fresh_machine_finds_nothing_broken(officina: Run) -> None:
    ended = officina("doctor", "--json")
    findings = {one["part"]: one for one in json.loads(ended.stdout)["findings"]}
    assert findings["database"]["verdict"] == "absent"
    assert [one for one in findings.values() if one["verdict"] == "broken"] == []
    assert ended.returncode == 0


def test_doctor_finds_a_working_installation_well(
    officina: Run, settings: Settings, redis_url: str, redis: Any
) -> None:
    settings.workspaces.mkdir()
    ended = officina("doctor", OFFICINA_BROKER_URL=redis_url)
    for part in ("database", "broker", "redis", "workspaces", "skills"):
        assert re.search(rf"✓ ok +{part} ", ended.stdout), ended.stdout
    assert list(settings.workspaces.iterdir()) == []


def test_doctor_names_a_workspace_root_it_cannot_write(officina: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ended = officina("doctor", OFFICINA_WORKSPACE_ROOT=str(tmp_path / "file"))
    assert ended.returncode == 1
    assert re.search(r"✗ broken  workspaces ", ended.stdout)


def test_a_person_runs_code_in_the_sandbox(officina: Run) -> None:
    ended = officina("skills", "invoke", "code.execute", "--input", json.dumps({"code": "print(6 * 7)"}))
    result = invoked(ended)
    if result.get("code") == "sandbox_unavailable":
        pytest.skip(result["error"])
    assert (ended.returncode, result["output"]["stdout"]) == (0, "42\n")


def test_doctor_deep_finds_the_rows_that_break_a_rule(officina: Run, project: Project) -> None:
    ended = officina("doctor", "--deep", "--json")
    found = json.loads(ended.stdout)
    assert ended.returncode == 1 and found["rules"] > 30
    assert "lease_over" in {row["rule"] for row in found["broken"]}  # rows made by hand, and nobody carries them

    ended = officina("doctor", "--deep")
    assert ended.returncode == 1
    assert "lease_over: it does not hold that no run is running under a lease" in ended.stdout
    assert project.run_ids["monthly"] in ended.stdout
    assert ended.stdout.splitlines()[-1] == f"{len(found['broken'])} rows break a rule"


def test_doctor_deep_says_that_a_sound_database_is_one(officina: Run, settings: Settings) -> None:
    ended = officina("doctor", "--deep")
    assert ended.returncode == 0
    assert re.fullmatch(r"\d+ rules, and every row keeps them\n", ended.stdout)


def test_a_call_for_a_project_works_in_its_folder_and_stands_in_its_trace(
    officina: Run, settings: Settings, project: Project
) -> None:
    given = json.dumps({"path": "notes/a.txt", "content": "hello"})
    ended = officina("skills", "invoke", "files.write", "--input", given, "--project", project.id)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    watched = Watched(settings, project.id)
    assert (settings.workspaces / "seattle-weather-2012-2015" / "notes" / "a.txt").read_text() == "hello"
    assert watched.kinds("tool.call")[-1]["name"] == "files.write"
    assert watched.kinds("file.written")[-1]["path"] == "notes/a.txt"
    assert watched.kinds("tool.result")[-1]["outcome"] == "ok"
    assert "notes/a.txt" in [file["path"] for file in watched.shown["files"]]
    unknown = officina("skills", "invoke", "files.list", "--input", "{}", "--project", "0194c5d2")
    assert unknown.returncode == 1 and "unknown_project" in unknown.stderr


def test_an_agents_call_asks_the_desk_of_its_project_once(officina: Run, settings: Settings, project: Project) -> None:
    given = json.dumps({"url": "https://example.com/", "headers": {"Authorization": "Bearer hunter2hunter2"}})
    words = ("skills", "invoke", "http.request", "--input", given, "--project", project.id, "--as", "agent")
    first, again = officina(*words), officina(*words)
    assert (first.returncode, invoked(first)["code"]) == (1, "approval_required")
    assert invoked(first)["signalId"] == invoked(again)["signalId"]
    (signal,) = [s for s in Watched(settings, project.id).signals if s.id == invoked(first)["signalId"]]
    assert signal.action["input"]["headers"]["Authorization"] == "Bearer hunter2hunter2", "what runs is what was asked"
    shown = officina("signals", "--json").stdout + str(Watched(settings, project.id).trace)
    assert signal.id in shown and "hunter2" not in shown


def test_a_yes_runs_a_call_that_no_run_made(
    officina: Run, live_settings: Settings, worker_process: Any, tmp_path: Path
) -> None:
    with serving() as site:
        site.page("/order", '{"placed": true}', kind="application/json")
        there = {
            "OFFICINA_DATABASE_URL": live_settings.database_url,
            "OFFICINA_BROKER_URL": live_settings.broker_url,
            "OFFICINA_NET_ALLOW": f"127.0.0.1:{site.port}",
        }
        worker_process(live_settings, NET_ALLOW=there["OFFICINA_NET_ALLOW"], LIMITS__CLOCK_TICK_S="0.2").ready()
        made = start(tmp_path / "p", live_settings, [task("a")], {"tasks": {"a": [{"say": "done"}]}})
        project = Watched(live_settings, made.project_id)
        assert project.ended() == "completed"
        given = json.dumps({"method": "POST", "url": site.url("/order"), "json": {"n": 1}})
        words = ("--input", given, "--project", made.project_id, "--as", "agent")
        asked = invoked(officina("skills", "invoke", "http.json", *words, **there))
        assert asked["code"] == "approval_required" and site.requests == []

        answer(live_settings, asked["signalId"], option="Do it", by="the test")

        (executed,) = eventually(lambda: project.kinds("signal.executed"), 15)
        assert (executed["ok"], executed["output"]["data"]) == (True, {"placed": True})
        assert [json.loads(one.body) for one in site.requests] == [{"n": 1}]
        person = invoked(officina("skills", "invoke", "http.json", "--input", given, **there))
        assert person["output"]["data"] == {"placed": True}


def test_each_kind_of_guarded_call_is_wired_from_outside(officina: Run) -> None:
    with serving() as site:
        site.page("/", "<html><body><p>Hello there.</p></body></html>")
        given, allow = json.dumps({"url": site.url()}), f"127.0.0.1:{site.port}"
        for name in ("web.fetch", "http.request"):
            blocked = officina("skills", "invoke", name, "--input", given)
            assert (blocked.returncode, invoked(blocked)["code"]) == (1, "network_blocked")
            ended = officina("skills", "invoke", name, "--input", given, OFFICINA_NET_ALLOW=allow)
            assert ended.returncode == 0 and "Hello there." in ended.stdout
    found = invoked(officina("skills", "invoke", "web.search", "--input", '{"query": "x"}'))["output"]
    assert (found["wired"], found["provider"]) == (False, "none")


def test_a_signal_is_raised_from_outside(officina: Run, settings: Settings) -> None:
    ended = officina("skills", "invoke", "signal.raise", "--input", '{"title": "Look here"}')
    assert ended.returncode == 0 and invoked(ended)["output"]["wired"] is True
    assert "Look here" in officina("signals").stdout


def test_what_is_set_up_is_said_to_be(officina: Run) -> None:
    telegram = '{"kind": "telegram", "chatId": 7, "token": "123456:hunter2hunter2"}'
    assert officina("connections", "set", "default", "--input", telegram).returncode == 0
    there = {
        "OFFICINA_SEARCH": '[{"kind": "searxng", "url": "http://127.0.0.1:8888"}]',
        "OFFICINA_STAND_IN": "true",
    }
    found = {skill["name"]: skill["wired"] for skill in json.loads(officina("skills", "--json", **there).stdout)}
    wired = ("web.search", "web.research", "llm.generate", "telegram.send", "web.fetch")
    assert [found[name] for name in wired] == [True] * 5
    assert found["email.send"] is False
    assert "no: a call says" in officina("skills", "show", "email.send").stdout
