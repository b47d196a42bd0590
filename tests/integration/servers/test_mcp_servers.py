"""MCP servers under an agent's feet: honest ones, hostile ones, and those that die (spec: engine 18)."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from registry import mcp
from registry.packs.names import taken
from registry.skills.context import Caller, SkillContext
from registry.skills.registry import SkillRegistry, SkillResult
from tests.support import alive, eventually
from workers.mcp.servers import McpServers, Timing
from workers.net.guard import Guard

SERVER = str(Path(__file__).parents[2] / "mcp_server.py")


class Bench:
    """Servers of a configuration, and what became of them."""

    def __init__(self, folder: Path, timing: Timing, guard: Guard) -> None:
        self.file = folder / ".officina" / "mcp.json"
        self.file.parent.mkdir(exist_ok=True)
        self.entries: dict[str, Any] = {}
        self.left_out: list[tuple[str, str | None, str]] = []
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.servers = McpServers(lambda: mcp.load([self.file]), guard, taken([]), timing)

    def put(self, id_: str, nature: str = "plain", *more: str, **fields: Any) -> "Bench":
        program = {"command": sys.executable, "args": ["-I", "-S", SERVER, nature, *more]}
        self.entries[id_] = (program if "url" not in fields else {}) | fields
        self.file.write_text(json.dumps({"mcpServers": self.entries}))
        return self

    def skills(self, *ids: str) -> SkillRegistry:
        found = self.servers.skills(ids or list(self.entries), lambda *about: self.left_out.append(about))
        return SkillRegistry(found)

    def call(self, name: str, **given: Any) -> SkillResult:
        context = SkillContext(Caller("run"), emit=lambda kind, data: self.events.append((kind, data)))
        return self.skills(name.partition("__")[0]).invoke(name, given, context)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def make(guard: Guard | None = None, **timing: float) -> Bench:
        made.append(Bench(tmp_path, Timing(**{"start": 60.0, **timing}), guard or Guard()))
        return made[-1]

    yield make
    for one in made:
        one.servers.close()


def running(nature: str) -> list[int]:
    """Our processes of a nature: the server and its keeper."""
    # As a word of its own: the browser of other tests runs with --mute-audio.
    return [p.pid for p in psutil.Process().children(recursive=True) if nature in command_of(p)]


def command_of(process: psutil.Process) -> list[str]:
    """The words of its command; none of one that has ended."""
    try:
        return list(process.cmdline())
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return []


def test_a_servers_tools_come_with_their_own_schemas_and_effects(bench: Any) -> None:
    found = {skill.name: skill for skill in bench().put("box").skills()}

    assert {"box__list_resources", "box__read_resource", "box__echo", "box__send"} <= set(found)
    echo = found["box__echo"]
    assert echo.input.schema == {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    assert echo.operations == {"mcp"} and echo.open_world and echo.server == "box"
    assert [found[f"box__{name}"].effect for name in ("echo", "put", "send")] == ["pure", "idempotent", "once"]
    assert [found[f"box__{name}"].deferred for name in ("echo", "list_resources", "read_resource")] == [
        True,
        False,
        False,
    ]
    assert found["box__read_resource"].effect == "pure" and found["box__read_resource"].operations == {"mcp"}


def test_calls_are_checked_carried_out_and_answered(bench: Any) -> None:
    box = bench().put("box")

    assert box.call("box__echo", text="hi").output == "echo: hi"
    assert box.call("box__structured").output == {"a": 1}
    assert box.call("box__picture").output == "[image/png, 3 bytes, not shown]"
    assert box.call("box__echo", text=3).code == "invalid_input"
    assert box.call("box__echo").code == "invalid_input"
    failed = box.call("box__fail")
    assert (failed.code, failed.error) == ("tool_failed", "it did not work")
    first = box.call("box__list_resources").output
    assert first == {"resources": [{"uri": "note://one", "name": "a note"}], "cursor": "two"}
    assert box.call("box__list_resources", cursor="two").output["resources"][0]["uri"] == "note://two"
    assert box.call("box__read_resource", uri="note://x").output["contents"][0]["text"] == "read note://x"


def test_one_process_serves_all_and_sees_nothing_of_the_workers_environment(
    bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OFFICINA_SECRET_KEY", "do-not-tell-anybody")
    monkeypatch.setenv("MY_TOKEN", "token-of-the-owner")
    box = bench().put(
        "box", env={"TOKEN": "${MY_TOKEN}", "PLAIN": "1"}, toolPrefix="pre", allowTools=["environment", "pid"]
    )

    names = {skill.name for skill in box.skills()}
    assert names == {"pre__list_resources", "pre__read_resource", "pre__environment", "pre__pid"}
    registry = box.skills("box")
    pids = [registry.invoke("pre__pid", {}, SkillContext(Caller("run"))).output for _ in range(3)]
    assert len(set(pids)) == 1
    seen = json.loads(str(registry.invoke("pre__environment", {}, SkillContext(Caller("run"))).output))
    assert seen["cwd"] == str(tmp_path) and seen["env"]["PLAIN"] == "1"
    assert "OFFICINA_SECRET_KEY" not in seen["env"] and "token-of-the-owner" not in json.dumps(seen)  # it is masked
    assert seen["env"]["TOKEN"] and "MY_TOKEN" not in seen["env"]


def test_a_server_that_does_not_start_is_left_out_and_the_others_stay(bench: Any, tmp_path: Path) -> None:
    box = bench(start=20).put("good").put("gone", command=str(tmp_path / "no-such-program"), args=[])
    box.put("off", enabled=False).put("needs", env={"A": "${SURELY_NOT_SET}"})
    box.put("dies", command="sh", args=["-c", "echo no licence >&2; exit 3"])

    found = {skill.server for skill in box.skills("good", "gone", "off", "needs", "dies", "unknown")}

    assert found == {"good"}
    reasons = {server: reason for server, tool, reason in box.left_out if tool is None}
    assert "no such program" in reasons["gone"] and "SURELY_NOT_SET" in reasons["needs"]
    assert "no licence" in reasons["dies"] and "switched off" in reasons["off"] and reasons["unknown"]


@pytest.mark.long
def test_a_server_that_never_answers_is_given_up_and_ended(bench: Any) -> None:
    box = bench(start=1.0).put("mute", "mute")
    begun = time.monotonic()
    assert len(box.skills()) == 0 and "not ready within 1 s" in box.left_out[0][2]
    assert time.monotonic() - begun < 15
    eventually(lambda: not running("mute"), 15)
    # It is not waited for again at once.
    begun = time.monotonic()
    box.skills()
    assert time.monotonic() - begun < 0.9


def test_a_call_that_crashes_its_server_fails_and_the_next_one_has_a_new_server(bench: Any) -> None:
    box = bench().put("box")
    before = box.call("box__pid").output

    crashed = box.call("box__crash")

    assert crashed.code == "tool_failed" and "down" in str(crashed.error)
    assert box.events == [("mcp.failed", {"server": "box", "reason": "it ended before it answered"})]
    after = box.call("box__pid")
    assert after.ok and after.output != before


def test_a_server_that_is_killed_between_calls_is_started_again(bench: Any) -> None:
    box = bench().put("box")
    psutil.Process(int(str(box.call("box__pid").output))).kill()
    assert eventually(lambda: box.call("box__echo", text="x").ok or None, 20)


def test_a_slow_answer_is_a_time_out_and_a_cancel_is_heard(bench: Any) -> None:
    box = bench(call=1.0).put("box").put("other", toolPrefix="other")
    assert box.call("box__slow").code == "timeout"

    stop = threading.Event()
    context = SkillContext(Caller("run"), cancelled=stop.is_set)
    registry = bench(call=60.0).put("box").skills()
    threading.Timer(0.5, stop.set).start()
    begun = time.monotonic()
    assert registry.invoke("box__slow", {}, context).code == "cancelled"
    assert time.monotonic() - begun < 10


def test_garbage_on_standard_output_is_passed_over(bench: Any) -> None:
    box = bench().put("box", "garbage")
    assert box.call("box__echo", text="hi").output == "echo: hi"


@pytest.mark.parametrize("nature", ["endless-line", "shouting", pytest.param("flood", marks=pytest.mark.long), "hog"])
def test_a_server_that_breaks_the_bounds_is_ended(bench: Any, nature: str) -> None:
    box = bench(start=60.0).put("bad", nature).put("good")
    before = psutil.Process().memory_info().rss

    box.skills("bad")
    box.call("bad__echo", text="x")

    eventually(lambda: not running(nature), 60)
    assert psutil.Process().memory_info().rss - before < 400 * 1024 * 1024
    assert box.call("good__echo", text="still here").ok


def test_an_answer_of_any_size_is_bounded(bench: Any) -> None:
    box = bench().put("box")
    assert len(str(box.call("box__big").output)) == 200_000
    assert box.call("box__huge").code in ("tool_failed", "too_large")
    assert box.call("box__echo", text="hi").ok


def test_a_list_without_end_is_cut(bench: Any) -> None:
    assert len(bench().put("box", "endless-list").skills()) == 512 + 2


def test_names_that_clash_or_cannot_be_used_are_left_out_with_a_reason(bench: Any) -> None:
    box = bench().put("box", "names")

    names = {skill.name for skill in box.skills()}

    assert names == {"box__list_resources", "box__read_resource", "box__twice", "box__good"}
    reasons = [reason for _, tool, reason in box.left_out if tool is not None]
    assert len(reasons) == 7 and sum("taken" in reason for reason in reasons) == 2
    assert all(len(str(tool)) <= 80 for _, tool, _ in box.left_out)


def test_no_server_takes_the_name_of_a_skill_or_of_another_server(bench: Any) -> None:
    from registry.skills import catalogue

    box = bench().put("web", toolPrefix="web").put("a", toolPrefix="same").put("b", toolPrefix="same")
    box.servers._taken = taken(catalogue.build()) | {"web__echo"}

    found = list(box.skills("web", "a", "b"))

    assert "web__echo" not in {skill.name for skill in found}
    assert {skill.server for skill in found if skill.name.startswith("same__")} == {"a"}
    assert ("b", "same__echo", "the name is taken") in box.left_out


def test_schemas_that_reach_out_or_hold_the_worker_are_refused_and_nothing_is_fetched(bench: Any) -> None:
    box = bench().put("box", "schemas")

    registry = box.skills()

    assert {s.name for s in registry} >= {"box__evil", "box__draft7"}
    assert {tool for _, tool, _ in box.left_out} == {"remote", "file", "loops", "huge", "wrong"}
    begun = time.monotonic()
    assert registry.invoke("box__evil", {"t": "a" * 5000 + "!"}, SkillContext(Caller("run"))).code == "invalid_input"
    assert time.monotonic() - begun < 5
    assert registry.find("box__draft7").input.schema["$schema"].endswith("draft-07/schema#")


def test_what_a_server_says_of_its_tools_is_cut_and_cleaned(bench: Any) -> None:
    speak = bench().put("box", "words").skills().find("box__speak")
    assert len(speak.description) <= 1000 and speak.description.isprintable() and "\n" not in speak.description


def test_a_server_nobody_uses_is_stopped_and_comes_back_when_it_is_wanted(bench: Any) -> None:
    box = bench(idle=1.0).put("box", "plain")
    assert box.call("box__echo", text="x").ok and running("plain")
    eventually(lambda: not running("plain"), 20)
    assert box.call("box__echo", text="x").ok


def test_what_a_server_started_ends_with_it(bench: Any, tmp_path: Path) -> None:
    box = bench().put("box", "orphan", str(tmp_path))
    box.skills()
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert all(psutil.pid_exists(pid) for pid in pids)
    box.servers.close()
    eventually(lambda: not any(map(psutil.pid_exists, pids)), 15)


def test_a_new_configuration_is_taken_up(bench: Any) -> None:
    box = bench().put("box")
    first = box.call("box__pid").output
    box.put("box", env={"NEW": "1"})
    second = box.call("box__pid").output
    assert first != second
    eventually(lambda: not psutil.pid_exists(int(str(first))), 15)


def test_many_threads_share_a_server(bench: Any) -> None:
    registry = bench().put("box").skills()
    said: list[Any] = []

    def ask(number: int) -> None:
        said.append(registry.invoke("box__echo", {"text": str(number)}, SkillContext(Caller("run"))).output)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(said) == sorted(f"echo: {number}" for number in range(16))


def test_a_forked_process_has_servers_of_its_own(bench: Any, tmp_path: Path) -> None:
    box = bench().put("box")
    mine = box.call("box__pid").output
    child = os.fork()
    if child == 0:
        try:
            (tmp_path / "said").write_text(str(box.call("box__pid").output))
            box.servers.close()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert (tmp_path / "said").read_text() not in ("", str(mine))
    assert box.call("box__pid").output == mine


@pytest.mark.slow
def test_nothing_is_left_of_a_server_whose_worker_was_killed(tmp_path: Path) -> None:
    """SIGKILL leaves a worker no time: the keeper reads the end of its life line."""
    file = tmp_path / ".officina" / "mcp.json"
    file.parent.mkdir()
    entry = {"command": sys.executable, "args": ["-I", "-S", SERVER, "orphan", str(tmp_path)]}
    file.write_text(json.dumps({"mcpServers": {"box": entry}}))
    program = (
        "import pathlib, sys, time\n"
        "from registry import mcp\n"
        "from workers.mcp.servers import McpServers, Timing\n"
        "from workers.net.guard import Guard\n"
        f"file = pathlib.Path({str(file)!r})\n"
        "servers = McpServers(lambda: mcp.load([file]), Guard(), frozenset(), Timing(60.0))\n"
        "assert servers.skills(['box'], print)\n"
        "print('ready', flush=True)\n"
        "time.sleep(600)\n"
    )
    worker = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    try:
        assert worker.stdout is not None and worker.stdout.readline() == "ready\n"
        pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
        assert all(map(alive, pids))
    finally:
        worker.kill()
        worker.wait()
    eventually(lambda: not any(map(alive, pids)), 20)
