"""What goes into the sandbox and what comes out of it."""

import hashlib
import secrets
from concurrent.futures import ThreadPoolExecutor

import pytest

from registry.errors import SkillError
from tests.integration.sandbox.boxes import run, said
from workers.sandbox.box import Box


def test_only_regular_files_come_out(box: Box) -> None:
    make = """
import os, socket
os.chdir("out")
os.makedirs("sub/folder")
open("good.txt", "w").write("good")
open("sub/folder/good.txt", "w").write("also good")
os.symlink("/etc/passwd", "link-to-file")
os.symlink("/etc", "link-to-folder")
os.symlink("good.txt", "link-inside")
os.mkfifo("fifo")
open("one", "w").write("x")
os.link("one", "two")
os.mkdir("closed", 0)
open("secret", "w").close()
os.symlink("/proc/self/environ", "sub/environ")
open(b"bad-\\xff", "w").close()
try:
    socket.socket(socket.AF_UNIX).bind("socket")
except OSError:
    pass
"""
    done = run(box, make, collect=True)
    assert done.exit_code == 0, done
    kept = dict(done.files)
    assert kept.pop("good.txt") == b"good"
    assert kept.pop("sub/folder/good.txt") == b"also good"
    assert kept.pop("secret") == b""
    kept.pop("bad-\ufffd", None)
    assert kept == {}
    assert any("link-to-file" in warning for warning in done.warnings)


def test_an_out_folder_that_is_a_link_gives_nothing(box: Box) -> None:
    done = run(box, "import os; os.rmdir('out'); os.symlink('/etc', 'out')", collect=True)
    assert (done.exit_code, done.files) == (0, [])


def test_twenty_files_of_ten_mebibytes_come_out(box: Box) -> None:
    make = """
for number in range(30):
    open(f"out/{number:02}", "w").write(str(number))
open("out/00", "wb").write(bytes(10 * 2**20))
open("out/01", "wb").write(bytes(10 * 2**20 + 1))
"""
    done = run(box, make, collect=True)
    assert [path for path, _content in done.files] == ["00", *(f"{number:02}" for number in range(2, 21))]
    assert len(done.files[0][1]) == 10 * 2**20
    assert any("larger than" in warning for warning in done.warnings)
    assert any("more than 20 files" in warning for warning in done.warnings)


def test_input_files_are_copies_that_cannot_be_written(box: Box) -> None:
    content = secrets.token_bytes(3 * 2**20)
    check = """
import hashlib
print(hashlib.sha256(open("in/data/deep/a.bin", "rb").read()).hexdigest(), open("in/b.txt").read())
open("in/b.txt", "w")
"""
    done = run(box, check, files={"data/deep/a.bin": content, "b.txt": b"small"})
    assert done.stdout.decode() == f"{hashlib.sha256(content).hexdigest()} small\n"
    assert done.exit_code == 1 and b"PermissionError" in done.stderr


def test_standard_input_arrives_whole_and_need_not_be_read(box: Box) -> None:
    text = secrets.token_bytes(300_000)
    assert said(run(box, "import sys; print(len(sys.stdin.buffer.read()))", stdin=text)) == "300000\n"
    assert said(run(box, "print('unread')", stdin=text)) == "unread\n"


def test_the_end_of_a_program_is_told_exactly(box: Box) -> None:
    assert run(box, "raise SystemExit(41)").exit_code == 41
    crashed = run(box, "import ctypes; ctypes.string_at(0)")
    assert (crashed.exit_code, crashed.signal) == (None, "SIGSEGV")


def test_executions_beside_each_other_do_not_meet(box: Box) -> None:
    with ThreadPoolExecutor(4) as pool:
        code = "import sys, time; open('out/x', 'w').write(sys.argv[1]); time.sleep(0.2); print(open('out/x').read())"
        told = list(pool.map(lambda number: said(run(box, code, number)), range(8)))
    assert told == [f"{number}\n" for number in range(8)]


def test_a_program_that_is_not_there_ran_nothing(box: Box) -> None:
    with pytest.raises(SkillError) as caught:
        box.execute(["/no/such/program"], stdin=b"", files={}, timeout_s=5, cancelled=lambda: False)
    assert caught.value.code == "sandbox_unavailable"
    with pytest.raises(SkillError) as caught:
        box.execute(["perl"], stdin=b"", files={}, timeout_s=5, cancelled=lambda: False)
    assert caught.value.code == "unsupported_type"


@pytest.mark.parametrize("path", ["../outside", "/etc/outside", "a/../../outside"])
def test_an_input_file_lands_nowhere_else(box: Box, path: str) -> None:
    with pytest.raises(SkillError) as caught:
        run(box, "pass", files={path: b"x"})
    assert caught.value.code == "path_escape"


def test_javascript_and_the_shell_run_too(box: Box) -> None:
    script = b"import { readFileSync } from 'node:fs'; console.log(readFileSync('in/a', 'utf8'), process.argv[2]);"
    shell = box.execute(
        ["sh", "-c", 'cat in/a; echo " $1" > /dev/stderr; exit 3', "sh", "word"],
        stdin=b"",
        files={"a": b"text"},
        timeout_s=10,
        cancelled=lambda: False,
    )
    assert (shell.exit_code, shell.stdout) == (3, b"text")
    if box.link.name != "landlock":
        assert shell.stderr == b" word\n"
    try:
        node = box.execute(
            ["node", "in/a.mjs", "word"],
            stdin=b"",
            files={"a": b"text", "a.mjs": script},
            timeout_s=20,
            cancelled=lambda: False,
        )
    except SkillError as error:
        assert error.code == "unsupported_type"
        return
    assert (node.exit_code, node.stdout) == (0, b"text word\n"), node


def test_more_input_than_fits_is_refused_before_anything_runs(box: Box) -> None:
    with pytest.raises(SkillError) as caught:
        run(box, "pass", files={f"{number}": bytes(10 * 2**20) for number in range(5)})
    assert caught.value.code == "too_large"
