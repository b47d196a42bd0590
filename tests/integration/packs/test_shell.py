"""The pack `shell` behind each wall of this machine: what a command finds, and each way a call fails."""

import os
import secrets
import socket
import threading
import time
from pathlib import Path

import pytest

from registry.base import Json
from registry.packs import PACKS
from registry.packs.shell import ShellSpec
from registry.skills.context import Caller, SkillContext
from registry.skills.registry import SkillRegistry
from tests.integration.packs.conftest import REGISTRY, Desk
from tests.integration.sandbox.boxes import processes_with
from workers.sandbox.jobs import Allowed, JobKeeper
from workers.sandbox.process import NoSandbox


def test_a_command_works_in_the_workspace_and_what_it_did_stays(desk: Desk) -> None:
    desk.ok("write_file", path="in.txt", content="b\na\n")
    done = desk.shell("sort in.txt | tee out.txt; mkdir -p d && mv in.txt d/; echo oops >&2; exit 3")
    assert (done["exitCode"], done["stdout"], done["stderr"]) == (3, "a\nb\n", "oops\n")
    assert done["durationMs"] > 0 and set(done) == {"exitCode", "stdout", "stderr", "durationMs"}
    assert desk.ok("read_file", path="out.txt")["content"] == "1: a\n2: b"
    desk.ok("edit_file", path="d/in.txt", old_string="a", new_string="c")
    assert desk.shell("cat d/in.txt; echo d >> d/in.txt; rm out.txt")["stdout"] == "b\nc\n"
    assert desk.ok("list_dir", depth=2)["entries"][-1] == {"name": "d/in.txt", "type": "file", "size": 6}


def test_a_second_task_changes_what_the_first_one_made(desk: Desk) -> None:
    desk.shell("echo one > a; mkdir d; echo x > d/b")
    other = desk.of_task("t2")
    assert other.shell("echo two >> a && rm d/b && rmdir d && cat a")["stdout"] == "one\ntwo\n"


def test_git_keeps_a_history_there(desk: Desk) -> None:
    if not Path("/usr/bin/git").exists():
        pytest.skip("there is no git here")
    mine = "git -c user.name=A -c user.email=a@example.com"
    made = desk.shell(f"git init -q . && echo one > a && git add a && {mine} commit -qm one && git log --format=%s")
    assert (made["exitCode"], made["stdout"]) == (0, "one\n"), made["stderr"]
    desk.ok("edit_file", path="a", old_string="one", new_string="two")
    assert desk.of_task("t2").shell("git diff --stat; git checkout -q a; cat a")["stdout"].endswith("one\n")


def test_the_environment_is_scrubbed(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFFICINA_MODEL_API_KEY", "canary-in-the-environment")
    names = {line.partition("=")[0] for line in desk.shell("env")["stdout"].splitlines()}
    git = {"GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0", "GIT_CONFIG_VALUE_0"}
    assert names <= {"PATH", "HOME", "TMPDIR", "LANG", "PWD", "OLDPWD", "SHLVL", "_"} | git
    assert "canary" not in desk.shell("env; cat /proc/self/environ /proc/*/environ 2>/dev/null")["stdout"]


def test_nothing_outside_the_workspace_is_read_or_written(desk: Desk) -> None:
    outside = desk.root.parent / "outside"
    outside.write_text("a secret")
    outside.chmod(0o666)
    done = desk.shell(f"cat {outside}; echo x > {outside}; cat ../outside; ln {outside} l; ln -s {outside} s; cat s")
    assert "a secret" not in done["stdout"]
    assert outside.read_text() == "a secret"
    assert desk.call("read_file", path="s").code == "path_escape"


SECRETS = [
    ".env",
    ".env.local",
    "app/.env",
    ".ssh/id_rsa",
    ".aws/credentials",
    "id_ed25519",
    "keys/server.pem",
    "B.PEM",
]


def hides(desk: Desk) -> bool:
    """Whether the wall can hide something inside of what it shows; see docs/sandbox.md."""
    return desk.box.link.name != "landlock" or os.geteuid() == 0


def test_secrets_of_the_workspace_are_hidden_where_the_wall_can(desk: Desk) -> None:
    if not hides(desk):
        pytest.skip("Landlock as an ordinary user shows a folder whole")
    for path in SECRETS:
        (desk.root / path).parent.mkdir(parents=True, exist_ok=True)
        (desk.root / path).write_text("a secret")
    (desk.root / "app" / "seen").write_text("seen")
    done = desk.shell(f"cat app/seen {' '.join(SECRETS)}; grep -r secret . ; find . -type f -exec cat {{}} +")
    assert "seen" in done["stdout"]
    assert "a secret" not in done["stdout"] + done["stderr"]
    moved = desk.shell("mv app elsewhere; cp elsewhere/.env copy; cat copy elsewhere/.env; exit 0")
    assert "a secret" not in moved["stdout"]


def test_names_that_the_agent_blocks_are_hidden_too(desk: Desk) -> None:
    if not hides(desk):
        pytest.skip("Landlock as an ordinary user shows a folder whole")
    (desk.root / "payroll").mkdir()
    (desk.root / "payroll" / "march.csv").write_text("a secret")
    desk.context.specs = {type(s): s for s in (PACKS["files"].settings({"blocklist": ["payroll/"]}),)}
    assert "a secret" not in desk.shell("cat payroll/*; exit 0")["stdout"]


def test_our_own_folder_is_hidden_where_the_wall_can(desk: Desk) -> None:
    if not hides(desk):
        pytest.skip("Landlock as an ordinary user shows a folder whole")
    assert desk.context.workspace is not None
    desk.context.workspace.write_output("run1", "call1", "a secret")
    looks = (
        "ls .officina/*; cat .officina/outputs/run1/*; ln -s .officina o; cat o/outputs/run1/*; chmod 777 .officina ."
    )
    moves = "rm -rf .officina; mv .officina p; mkdir -p .officina; echo x > .officina/mcp.json"
    done = desk.shell(f"{looks}; {moves}; exit 0")
    assert "a secret" not in done["stdout"]
    assert not (desk.root / ".officina" / "mcp.json").exists()
    assert (desk.root / ".officina" / "outputs" / "run1" / "call1.txt").read_text() == "a secret"


def test_too_many_secrets_to_hide_and_nothing_runs(desk: Desk) -> None:
    (desk.root / "many").mkdir()
    for n in range(257):
        (desk.root / "many" / f"{n}.pem").touch()
    assert desk.call("shell", command="touch ran").code == "quota"
    assert not (desk.root / "ran").exists()


def test_a_swapped_folder_gives_nothing_away(desk: Desk) -> None:
    """A worker of root hands files over to the shell's user: never what a link leads to."""
    outside = desk.root.parent / "outside"
    outside.mkdir()
    (outside / "f").write_text("x")
    before = (outside / "f").stat().st_uid
    (desk.root / "link").symlink_to(outside)
    (desk.root / "file").symlink_to(outside / "f")
    os.link(outside / "f", desk.root / "hard")
    desk.shell("true")
    assert ((outside / "f").stat().st_uid, outside.stat().st_uid) == (before, before)


# the network


def server() -> tuple[socket.socket, list[bytes]]:
    listening, heard = socket.create_server(("127.0.0.1", 0)), list[bytes]()

    def answer() -> None:
        try:
            while True:
                one, _ = listening.accept()
                heard.append(one.recv(100))
                one.close()
        except OSError:
            return

    threading.Thread(target=answer, daemon=True).start()
    return listening, heard


KNOCK = "python3 -c \"import socket; s = socket.create_connection(('127.0.0.1', {}), 2); s.sendall(b'hello')\""


@pytest.mark.parametrize(
    ("wanted", "given", "reached"),
    [(False, False, False), (True, False, False), (False, True, False), (True, True, True)],
)
def test_the_network_is_there_when_both_the_agent_and_the_deployment_say_so(
    desk: Desk, wanted: bool, given: bool, reached: bool
) -> None:
    listening, heard = server()
    keeper = JobKeeper(lambda: desk.box, Allowed(network=given))
    asking = Desk(desk.root, keeper, desk.box, network=wanted)
    done = asking.shell(KNOCK.format(listening.getsockname()[1]))
    listening.close()
    assert (done["exitCode"] == 0, heard == [b"hello"]) == (reached, reached), done["stderr"]


@pytest.mark.parametrize("kind", ["named", "abstract"])
def test_with_the_network_a_local_socket_of_another_program_stays_out_of_reach(desk: Desk, kind: str) -> None:
    place = f"\0{secrets.token_hex(8)}" if kind == "abstract" else str(desk.root / "s")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(place)
        listening.listen()
        if kind == "named":
            Path(place).chmod(0o777)
        keeper = JobKeeper(lambda: desk.box, Allowed(network=True))
        asking = Desk(desk.root, keeper, desk.box, network=True)
        seen = "s" if kind == "named" else place.replace("\0", "\\0")
        knock = f"python3 -c \"import socket; socket.socket(socket.AF_UNIX).connect('{seen}')\""
        done = asking.shell(knock)
        assert done["exitCode"] != 0 and "protocol" in done["stderr"], done


# how a call fails


def test_a_command_that_takes_too_long_is_ended_with_all_it_started(desk: Desk) -> None:
    mark, seen = secrets.token_hex(8), list[int]()
    asleep = f"sh -c 'sleep 300; true' {mark}"
    desk.context.cancelled = lambda: bool(seen.append(len(processes_with(mark))))
    result = desk.call("shell", command=f"echo so far; setsid {asleep} & {asleep}", timeout_ms=1500)
    assert max(seen) >= 2
    assert (result.ok, result.code, result.retryable) == (False, "timeout", False)
    assert "1500 ms" in str(result.error) and "so far" in str(result.error)
    assert processes_with(mark) == []


def test_the_agent_s_settings_bound_the_time(desk: Desk) -> None:
    desk.context.specs = {ShellSpec: ShellSpec(timeout_ms=300)}
    began = time.monotonic()
    assert desk.call("shell", command="sleep 60", timeout_ms=600_000).code == "timeout"
    assert time.monotonic() - began < 10


def test_a_cancelled_run_s_command_ends(desk: Desk) -> None:
    began = time.monotonic()
    desk.context.cancelled = lambda: time.monotonic() - began > 0.5
    assert desk.call("shell", command="sleep 60").code == "cancelled"
    assert time.monotonic() - began < 10


def test_without_a_sandbox_nothing_runs(desk: Desk) -> None:
    keeper = JobKeeper(lambda: NoSandbox("there is none here"))
    bare = Desk(desk.root, keeper, desk.box)
    for arguments in ({}, {"run_in_background": True}):
        result = bare.call("shell", command="touch ran", **arguments)
        assert (result.code, result.error) == ("sandbox_unavailable", "there is none here")
    assert not (desk.root / "ran").exists()
    assert not list((desk.root / ".officina").glob("jobs/*"))


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"command": ""},
        {"command": " \n"},
        {"command": "a\0b"},
        {"command": "x" * 65_537},
        {"command": "é" * 40_000},
        {"command": "true", "timeout_ms": 0},
        {"command": "true", "timeout_ms": 600_001},
        {"command": "true", "timeoutMs": 100},
        {"command": "true", "block_until_ms": -1},
        {"command": "true", "cwd": "/"},
        {"command": ["true"]},
    ],
)
def test_an_input_that_does_not_fit_is_refused(arguments: dict[str, Json]) -> None:
    context = SkillContext(caller=Caller(kind="run"))
    assert REGISTRY.invoke("shell", arguments, context).code == "invalid_input"


def test_without_a_workspace_nothing_runs() -> None:
    context = SkillContext(caller=Caller(kind="run"))
    assert REGISTRY.invoke("shell", {"command": "true"}, context).code == "sandbox_unavailable"


@pytest.mark.parametrize("signal", ["KILL", "TERM", "SEGV"])
def test_a_command_ended_by_a_signal_says_so_as_a_shell_does(desk: Desk, signal: str) -> None:
    number = {"KILL": 9, "TERM": 15, "SEGV": 11}[signal]
    assert desk.shell(f"kill -{signal} $$")["exitCode"] == 128 + number


def test_the_beginning_and_the_end_of_much_output_are_kept(desk: Desk) -> None:
    done = desk.shell("echo first; yes x | head -c 1000000; echo last")
    assert done["stdout"].startswith("first\nx\n") and done["stdout"].endswith("x\nlast\n")
    assert "bytes left out" in done["stdout"]
    assert 250_000 < len(done["stdout"]) < 260_000


def test_bytes_that_are_no_text_do_no_harm(desk: Desk) -> None:
    assert desk.shell("printf 'a\\377\\0b'")["stdout"] == "a\ufffd\0b"


def test_one_that_takes_too_much_memory_is_ended(root: Path, box: object) -> None:
    from workers.sandbox.box import Box
    from workers.sandbox.limits import MIB

    assert isinstance(box, Box)
    small = Desk(root, JobKeeper(lambda: box, Allowed(memory=128 * MIB)), box)
    done = small.shell('python3 -c "x = [bytes(1 << 20) for _ in range(400)]; print(len(x))"')
    assert done["exitCode"] != 0 and "400" not in done["stdout"]


# what a command asks for

SHELL = PACKS["shell"]
(TOOL,) = SHELL.tools


def asks(command: str, **spec: Json) -> list[str]:
    found = SHELL.fitted(TOOL, spec)
    return found.operations_of(found.input.check({"command": command}))


def test_a_command_is_a_process_and_runs_once() -> None:
    assert (asks("ls"), TOOL.effect, TOOL.world_acting) == (["process"], "once", False)
    assert asks("ls", network=True) == ["network", "process"]


@pytest.mark.parametrize(
    "command",
    ["git status", "git status -s", "git status ./src a.txt", "npm test", "ls", "make build-all", "make build-x"],
)
def test_an_allowed_command_asks_nobody(command: str) -> None:
    allowed = ["git status", "npm test", "ls", "make build-*"]
    assert asks(command, allowlist=allowed) == []
    assert asks(command, allowlist=allowed, network=True) == ["network"]


@pytest.mark.parametrize(
    "command",
    [
        *("git", "git push", "gitstatus", "git statusx", "npm run test", "make", "Git status"),
        *("git status; rm x", "git status && x", "git status | sh", "git status & x", "git status\nrm x"),
        *("git status $(x)", "git status `x`", "git status > f", "git status < f", "git status *", "git status ~"),
        *("git status 'a b'", 'git status "a"', "git status \\x", "git status #x", "git status {a,b}", "git status ?"),
        *("./git status", "/tmp/git status", "bin/ls", "A=b git status", "PATH=. ls", "git status !x", "\tls", "ls\r"),
        *("env ls", "ls \u2028rm x", "ＬＳ", " "),
    ],
)
def test_any_other_command_asks(command: str) -> None:
    if command.strip():
        assert asks(command, allowlist=["git status", "npm test", "ls", "make build-*"]) == ["process"]


BLOCKLIST = ["rm -rf", "sudo", "curl *"]


@pytest.mark.parametrize(
    "command",
    [
        *("rm -rf /", "rm   -rf x", "/bin/rm -rf x", "'rm' -rf x", "r\\m -rf x", 'r"m" -rf x', "x; rm -rf y"),
        *("echo $(rm -rf y)", "a &&rm -rf y", "sudo", "env sudo ls", "true\nsudo ls", "curl example.org", "`sudo ls`"),
    ],
)
def test_a_blocked_command_is_denied_before_anybody_is_asked(desk: Desk, command: str) -> None:
    tools = SkillRegistry([SHELL.fitted(TOOL, {"blocklist": BLOCKLIST})])
    result = tools.invoke("shell", {"command": command}, desk.context)
    assert (result.ok, result.code, result.pending) == (False, "denied", None)
    assert not (desk.root / ".officina" / "locks").exists()


@pytest.mark.parametrize("command", ["rm -r x", "rm x -rf", "ls pseudo", "curl", "echo rmx -rf"])
def test_what_is_not_on_the_block_list_is_not_denied(command: str) -> None:
    assert asks(command, blocklist=BLOCKLIST) == ["process"]


def test_both_lists_and_the_block_list_wins(desk: Desk) -> None:
    tools = SkillRegistry([SHELL.fitted(TOOL, {"allowlist": ["ls"], "blocklist": ["ls -a"]})])
    assert tools.invoke("shell", {"command": "ls -a"}, desk.context).code == "denied"


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        ({"timeoutMs": 0}, "timeoutMs"),
        ({"timeoutMs": 600_001}, "timeoutMs"),
        ({"allowlist": [" "]}, "allowlist"),
        ({"blocklist": "sudo"}, "blocklist"),
        ({"network": "yes"}, "network"),
        ({"sandbox": False}, "sandbox"),
    ],
)
def test_settings_that_do_not_fit_are_refused(spec: dict[str, Json], names: str) -> None:
    assert names in str(SHELL.spec_fault(spec))
