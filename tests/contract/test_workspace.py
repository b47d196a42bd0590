"""What every workspace promises: nothing outside is read or changed, writes are whole, limits hold (spec: skills 5)."""

import hashlib
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.workspaces import handles
from orchestrator.workspaces.jail import JailedWorkspace
from registry.errors import SkillError
from registry.skills.context import Workspace

MIB = 1024 * 1024
SECRET = b"not for the workspace"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "project"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder beside the workspace whose name begins like it, with a file in it."""
    folder = tmp_path / "project-of-another"
    folder.mkdir()
    (folder / "secret.txt").write_bytes(SECRET)
    return folder


@pytest.fixture
def workspace(root: Path) -> JailedWorkspace:
    return JailedWorkspace(root)


def put(workspace: Workspace, path: str, content: bytes = b"x", **options: object) -> object:
    return workspace.write(path, content, max_bytes=MIB, **options)  # type: ignore[arg-type]


def get(workspace: Workspace, path: str) -> bytes:
    return workspace.read(path, max_bytes=MIB)


def refusal(action: Callable[..., object], *given: object, **options: object) -> str:
    """The code of the refusal; a test that gets none fails."""
    with pytest.raises(SkillError) as caught:
        action(*given, **options)
    return caught.value.code


def names(workspace: Workspace, path: str = ".") -> list[str]:
    return [entry.path for entry in workspace.entries(path, recursive=True)]


def eventually(condition: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.005)


def test_what_was_written_is_read_back(workspace: JailedWorkspace) -> None:
    stored = workspace.write("notes/day one.md", "Müsli".encode(), max_bytes=MIB)

    assert get(workspace, "notes/day one.md") == "Müsli".encode()
    assert (stored.path, stored.bytes, stored.created, stored.previous_sha256) == ("notes/day one.md", 6, True, None)
    assert stored.sha256 == hashlib.sha256("Müsli".encode()).hexdigest()


def test_an_overwrite_tells_what_it_replaced(workspace: JailedWorkspace) -> None:
    first = workspace.write("a.md", b"one", max_bytes=MIB)
    second = workspace.write("a.md", b"two", max_bytes=MIB)

    assert not second.created
    assert second.previous_sha256 == first.sha256


def test_a_composed_and_a_decomposed_name_are_one_file(workspace: JailedWorkspace) -> None:
    put(workspace, "re\u0301sume\u0301.md", b"one")
    put(workspace, "r\u00e9sum\u00e9.md", b"two")

    assert names(workspace) == ["r\u00e9sum\u00e9.md"]
    assert get(workspace, "re\u0301sume\u0301.md") == b"two"


def test_append_adds_and_makes_what_is_missing(workspace: JailedWorkspace) -> None:
    put(workspace, "log.txt", b"one\n", mode="append")
    put(workspace, "log.txt", b"two\n", mode="append")

    assert get(workspace, "log.txt") == b"one\ntwo\n"


def test_an_append_beyond_the_limit_changes_nothing(workspace: JailedWorkspace) -> None:
    workspace.write("log.txt", b"12345", max_bytes=8)

    assert refusal(lambda: workspace.write("log.txt", b"6789", mode="append", max_bytes=8)) == "too_large"
    assert get(workspace, "log.txt") == b"12345"


def test_create_refuses_a_file_that_is_there(workspace: JailedWorkspace) -> None:
    put(workspace, "a.md", b"first", mode="create")

    assert refusal(put, workspace, "a.md", b"second", mode="create") == "conflict"
    assert get(workspace, "a.md") == b"first"


def test_a_write_refuses_a_file_that_was_changed_since(workspace: JailedWorkspace) -> None:
    seen = workspace.write("a.md", b"seen", max_bytes=MIB).sha256
    put(workspace, "a.md", b"changed by another")

    assert refusal(put, workspace, "a.md", b"mine", expected_sha256=seen) == "conflict"
    assert refusal(put, workspace, "never-there.md", b"mine", expected_sha256=seen) == "conflict"
    assert get(workspace, "a.md") == b"changed by another"


def test_an_overwrite_that_was_done_before_a_crash_passes_when_run_again(workspace: JailedWorkspace) -> None:
    seen = workspace.write("a.md", b"old", max_bytes=MIB).sha256
    put(workspace, "a.md", b"new", expected_sha256=seen)

    put(workspace, "a.md", b"new", expected_sha256=seen)

    assert get(workspace, "a.md") == b"new"


def test_no_file_gets_an_exec_bit(workspace: JailedWorkspace, root: Path) -> None:
    put(workspace, "run.sh", b"#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    put(workspace, "run.sh", b"#!/bin/sh\necho\n")

    assert (root / "run.sh").stat().st_mode & 0o111 == 0


def test_a_folder_is_no_file_and_a_file_no_folder(workspace: JailedWorkspace) -> None:
    put(workspace, "folder/file")

    assert refusal(get, workspace, "folder") == "invalid_input"
    assert refusal(put, workspace, "folder") == "conflict"
    assert refusal(put, workspace, "folder/file/below") == "conflict"
    assert refusal(get, workspace, "folder/file/below") == "not_found"
    assert refusal(lambda: workspace.entries("folder/file", recursive=False)) == "invalid_input"


def test_what_is_not_there_is_not_found(workspace: JailedWorkspace) -> None:
    assert refusal(get, workspace, "a.md") == "not_found"
    assert refusal(get, workspace, "no/such/folder/a.md") == "not_found"
    assert refusal(lambda: workspace.entries("no/such", recursive=True)) == "not_found"
    assert not workspace.exists("no/such/a.md")


def test_a_file_beyond_the_limit_is_not_read(workspace: JailedWorkspace) -> None:
    put(workspace, "a.bin", b"12345")

    assert workspace.read("a.bin", max_bytes=5) == b"12345"
    assert refusal(lambda: workspace.read("a.bin", max_bytes=4)) == "too_large"


ESCAPES = [
    "..",
    "../project-of-another/secret.txt",
    "a/../../project-of-another/secret.txt",
    "a/../b",
    "/etc/passwd",
    "~/x",
    "~root/x",
    "C:/x",
    "c:x",
    "a\\b",
    "..\\x",
    ".officina/usage",
    ".OFFICINA/x",
    "a/.Officina/x",
    ".officina-tmp-1",
    ".of\ufb01cina/x",
]


@pytest.mark.parametrize("path", ESCAPES)
def test_no_spelling_leads_out(workspace: JailedWorkspace, outside: Path, path: str) -> None:
    assert refusal(get, workspace, path) == "path_escape"
    assert refusal(put, workspace, path) == "path_escape"
    assert refusal(lambda: workspace.entries(path, recursive=True)) == "path_escape"
    assert refusal(lambda: workspace.exists(path)) == "path_escape"
    assert refusal(lambda: workspace.lock(path).__enter__()) == "path_escape"


@pytest.mark.parametrize(
    "path", ["", "a/", "a\0b", "a\nb", "a\u202eb", "a.", "b ", "x" * 201, "/".join("abcdefghijklm")]
)
def test_bad_names_are_invalid(workspace: JailedWorkspace, path: str) -> None:
    assert refusal(get, workspace, path) == "invalid_input"
    assert refusal(put, workspace, path) == "invalid_input"


def test_links_to_files_are_neither_read_nor_written(workspace: JailedWorkspace, root: Path, outside: Path) -> None:
    (root / "there").symlink_to(outside / "secret.txt")
    (root / "not yet").symlink_to(outside / "new.txt")
    (root / "inside").symlink_to("there")

    for name in ("there", "not yet", "inside"):
        assert refusal(get, workspace, name) == "path_escape"
        assert refusal(put, workspace, name) == "path_escape"
        assert refusal(put, workspace, name, mode="append") == "path_escape"
    assert (outside / "secret.txt").read_bytes() == SECRET
    assert not (outside / "new.txt").exists()


def test_links_to_folders_are_not_entered(workspace: JailedWorkspace, root: Path, outside: Path) -> None:
    (root / "elsewhere").symlink_to(outside)

    assert refusal(get, workspace, "elsewhere/secret.txt") == "path_escape"
    assert refusal(put, workspace, "elsewhere/new.txt") == "path_escape"
    assert refusal(put, workspace, "elsewhere/deep/new.txt") == "path_escape"
    assert refusal(lambda: workspace.entries("elsewhere", recursive=True)) == "path_escape"
    assert [(e.path, e.type) for e in workspace.entries(".", recursive=True)] == [("elsewhere", "link")]
    assert sorted(p.name for p in outside.iterdir()) == ["secret.txt"]


def test_a_link_in_place_of_our_own_folder_is_not_followed(
    workspace: JailedWorkspace, root: Path, outside: Path
) -> None:
    (root / ".officina").symlink_to(outside)

    assert refusal(put, workspace, "a.md") == "path_escape"
    assert refusal(lambda: workspace.write_output("run", "call", "text")) == "path_escape"
    assert refusal(get, workspace, ".officina/outputs/secret.txt") == "path_escape"
    assert sorted(p.name for p in outside.iterdir()) == ["secret.txt"]


def test_hard_links_are_refused(workspace: JailedWorkspace, root: Path, outside: Path) -> None:
    os.link(outside / "secret.txt", root / "same.txt")

    assert refusal(get, workspace, "same.txt") == "path_escape"
    assert refusal(put, workspace, "same.txt") == "path_escape"
    assert refusal(put, workspace, "same.txt", mode="append") == "path_escape"
    assert workspace.entries(".", recursive=False)[0].type == "link"
    assert (outside / "secret.txt").read_bytes() == SECRET


@pytest.mark.timeout(20)
def test_pipes_and_sockets_are_refused_and_never_waited_for(workspace: JailedWorkspace, root: Path) -> None:
    os.mkfifo(root / "pipe")
    listener = socket.socket(socket.AF_UNIX)
    here = Path.cwd()
    os.chdir(root)  # the address of a socket is short
    try:
        listener.bind("socket")
    finally:
        os.chdir(here)
        listener.close()

    for name in ("pipe", "socket"):
        assert refusal(get, workspace, name) == "unsupported_type"
        assert refusal(put, workspace, name) == "unsupported_type"
    assert names(workspace) == []


@pytest.fixture
def swapping(root: Path, outside: Path) -> Iterator[None]:
    """Meanwhile, another task swaps the folder `f` for a link to the outside and back, as fast as it can."""
    (root / "f").mkdir(parents=True)
    (root / "f" / "secret.txt").write_bytes(b"mine")
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            (root / "f").rename(root / "aside")
            try:
                (root / "f").symlink_to(outside)
                (root / "f").unlink()
                (root / "aside").rename(root / "f")
            except OSError:  # a write made the folder anew in between
                shutil.rmtree(root / "f")
                (root / "aside").rename(root / "f")

    thread = threading.Thread(target=swap)
    thread.start()
    yield
    assert thread.is_alive(), "the swapping came to an end too early"
    stop.set()
    thread.join()


def test_a_folder_swapped_for_a_link_never_leads_out(workspace: JailedWorkspace, outside: Path, swapping: None) -> None:
    seen: set[bytes | str] = set()
    deadline = time.monotonic() + 2
    while time.monotonic() < deadline:
        try:
            seen.add(get(workspace, "f/secret.txt"))
            put(workspace, "f/new.txt", b"mine")
            assert all(e.size <= len(b"mine") for e in workspace.entries("f", recursive=True))
        except SkillError as error:
            seen.add(error.code)

    assert b"mine" in seen, "the good path was never seen: the race did not run"
    assert "path_escape" in seen, "the link was never seen: the race did not run"
    assert SECRET not in seen
    assert seen <= {b"mine", "path_escape", "not_found"}
    assert sorted(p.name for p in outside.iterdir()) == ["secret.txt"]


@pytest.mark.parametrize("kind", ["link", "hard link", "pipe"])
@pytest.mark.timeout(20)
def test_a_file_swapped_between_the_look_and_the_opening_is_not_read(
    workspace: JailedWorkspace, root: Path, outside: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(workspace, "a.md", b"mine")
    looked = handles.judge_file

    def judge_and_swap(status: os.stat_result, path: str) -> None:
        looked(status, path)
        monkeypatch.undo()
        (root / "a.md").unlink()
        if kind == "link":
            (root / "a.md").symlink_to(outside / "secret.txt")
        elif kind == "hard link":
            os.link(outside / "secret.txt", root / "a.md")
        else:
            os.mkfifo(root / "a.md")

    monkeypatch.setattr(handles, "judge_file", judge_and_swap)

    assert refusal(get, workspace, "a.md") == ("unsupported_type" if kind == "pipe" else "path_escape")


def test_readers_see_the_old_content_or_the_new(workspace: JailedWorkspace) -> None:
    old, new = b"o" * MIB, b"n" * MIB
    put(workspace, "a.bin", old)
    done = threading.Event()

    def write() -> None:
        for turn in range(100):
            put(workspace, "a.bin", old if turn % 2 else new)
        done.set()

    thread = threading.Thread(target=write)
    thread.start()
    seen = set()
    while not done.is_set():
        seen.add(get(workspace, "a.bin"))
    thread.join()

    assert seen <= {old, new}


Start = Callable[[str], subprocess.Popen[str]]


@pytest.fixture
def start(root: Path) -> Iterator[Start]:
    """Starts a process of its own that runs a code on `workspace`, the workspace at `root`."""
    head = "import sys\nfrom pathlib import Path\nfrom orchestrator.workspaces.jail import JailedWorkspace\n"
    head += "workspace = JailedWorkspace(Path(sys.argv[1]))\n"
    started: list[subprocess.Popen[str]] = []

    def run(code: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", head + code, str(root)]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.communicate()


def said(process: subprocess.Popen[str]) -> str:
    """The next line of a process, as soon as it says one."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


HANGS_BEFORE_RENAME = """
import time
from orchestrator.workspaces import handles
def hang(*_):
    print("staged", flush=True)
    time.sleep(600)
handles.rename = hang
workspace.write("a.md", b"half a thought", max_bytes=100)
"""


def test_a_writer_killed_in_the_middle_leaves_the_old_content(
    workspace: JailedWorkspace, root: Path, start: Start
) -> None:
    put(workspace, "a.md", b"old")
    writer = start(HANGS_BEFORE_RENAME)
    assert said(writer) == "staged"
    assert any(p.name.startswith(handles.TEMPORARY) for p in root.iterdir()), "the new content was not staged"

    writer.kill()
    writer.wait()

    assert get(workspace, "a.md") == b"old"
    assert names(workspace) == ["a.md"]
    put(workspace, "a.md", b"new")  # the dead writer holds no lock
    assert get(workspace, "a.md") == b"new"


WRITES_FOR_EVER = """
print("ready", flush=True)
while True:
    for letter in (b"a", b"b"):
        workspace.write("big.bin", letter * (1 << 22), max_bytes=1 << 22)
"""


def test_a_writer_killed_anywhere_leaves_a_whole_file(workspace: JailedWorkspace, root: Path, start: Start) -> None:
    size = 1 << 22
    for pause in (0.01, 0.02, 0.03, 0.05):
        writer = start(WRITES_FOR_EVER)
        said(writer)
        eventually((root / "big.bin").exists)
        time.sleep(pause)
        writer.kill()
        writer.wait()

        assert set(workspace.read("big.bin", max_bytes=size)) in ({ord("a")}, {ord("b")})
        assert workspace.entries(".", recursive=False)[0].size == size


def test_what_dead_writers_staged_is_swept_in_time(root: Path) -> None:
    root.mkdir()
    old, fresh = root / f"{handles.TEMPORARY}old", root / f"{handles.TEMPORARY}fresh"
    for path in (old, fresh):
        path.write_bytes(b"left behind")
    os.utime(old, (time.time() - 7200, time.time() - 7200))

    put(JailedWorkspace(root), "a.md")

    assert not old.exists()
    assert fresh.exists()


APPENDS = """
for _ in range(50):
    workspace.write("log.txt", b"line\\n", mode="append", max_bytes=1 << 20)
"""


def test_two_processes_and_two_threads_lose_no_append(workspace: JailedWorkspace, start: Start) -> None:
    writers = [start(APPENDS) for _ in range(2)]

    def append() -> None:
        for _ in range(50):
            put(workspace, "log.txt", b"line\n", mode="append")

    threads = [threading.Thread(target=append) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [writer.wait(60) for writer in writers] == [0, 0]
    assert get(workspace, "log.txt") == b"line\n" * 200


HOLDS = """
import time
with workspace.lock("a.md"):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_path_held_by_another_process_is_a_conflict_until_it_dies(workspace: JailedWorkspace, start: Start) -> None:
    holder = start(HOLDS)
    assert said(holder) == "held"

    def take() -> None:
        with workspace.lock("a.md", seconds=0.1):
            pass

    assert refusal(take) == "conflict"
    put(workspace, "another.md")

    holder.kill()
    holder.wait()
    take()


def test_a_path_held_by_another_thread_is_waited_for(workspace: JailedWorkspace) -> None:
    order: list[str] = []

    def write() -> None:
        put(workspace, "a.md", b"late")
        order.append("written")

    thread = threading.Thread(target=write)

    with workspace.lock("a.md"):
        thread.start()
        put(workspace, "a.md", b"early")  # the holder itself is let through
        order.append("held")
        assert thread.is_alive()
    thread.join()

    assert order == ["held", "written"]
    assert get(workspace, "a.md") == b"late"


def test_one_creator_wins(workspace: JailedWorkspace) -> None:
    outcomes: list[str] = []

    def create(content: bytes) -> None:
        try:
            put(workspace, "a.md", content, mode="create")
            outcomes.append("created")
        except SkillError as error:
            outcomes.append(error.code)

    threads = [threading.Thread(target=create, args=(bytes([65 + n]),)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(outcomes) == ["conflict"] * 7 + ["created"]


def test_the_number_of_files_is_limited(root: Path) -> None:
    workspace = JailedWorkspace(root, max_files=3)
    for n in range(3):
        put(workspace, f"d{n}/a.md")

    assert refusal(put, workspace, "one/too/many.md") == "quota"
    assert not (root / "one").exists(), "the refused write left folders behind"
    put(workspace, "d0/a.md", b"replacing is no new file")


def test_the_bytes_together_are_limited(root: Path) -> None:
    workspace = JailedWorkspace(root, max_bytes=100)
    put(workspace, "a.bin", b"x" * 60)

    assert refusal(put, workspace, "b.bin", b"x" * 41) == "quota"
    assert refusal(put, workspace, "a.bin", b"x" * 41, mode="append") == "quota"
    put(workspace, "b.bin", b"x" * 40)
    put(workspace, "a.bin", b"x" * 10)
    put(workspace, "c.bin", b"x" * 50)
    assert refusal(put, workspace, "d.bin") == "quota"


def test_the_limit_holds_for_two_workspaces_on_one_folder(root: Path) -> None:
    one, other = JailedWorkspace(root, max_files=10), JailedWorkspace(root, max_files=10)
    outcomes: list[str] = []

    def fill(workspace: JailedWorkspace, name: str) -> None:
        for n in range(10):
            try:
                put(workspace, f"{name}{n}.md")
                outcomes.append("written")
            except SkillError as error:
                outcomes.append(error.code)

    threads = [threading.Thread(target=fill, args=pair) for pair in ((one, "a"), (other, "b"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(outcomes) == ["quota"] * 10 + ["written"] * 10
    assert len(names(one)) == 10


def test_what_lay_there_before_counts(root: Path) -> None:
    root.mkdir()
    (root / "input.csv").write_bytes(b"x" * 90)

    assert refusal(put, JailedWorkspace(root, max_bytes=100), "a.bin", b"x" * 11) == "quota"


def test_what_a_person_deletes_makes_room(root: Path) -> None:
    workspace = JailedWorkspace(root, max_files=2)
    put(workspace, "a.md")
    put(workspace, "b.md")
    (root / "a.md").unlink()

    put(workspace, "c.md")
    assert refusal(put, workspace, "d.md") == "quota"


def test_a_torn_ledger_is_counted_anew(root: Path) -> None:
    workspace = JailedWorkspace(root, max_files=2)
    put(workspace, "a.md")
    (root / ".officina" / "usage").write_bytes(b"0000")

    put(workspace, "b.md")
    assert refusal(put, workspace, "c.md") == "quota"


def test_kept_outputs_can_be_read_and_not_written(workspace: JailedWorkspace) -> None:
    path = workspace.write_output("0198-run", "call_1", "a long text")

    assert path == ".officina/outputs/0198-run/call_1.txt"
    assert get(workspace, path) == b"a long text"
    assert refusal(put, workspace, path) == "path_escape"
    assert refusal(lambda: workspace.entries(".officina/outputs", recursive=True)) == "path_escape"
    assert refusal(get, workspace, ".officina/outputs/../usage") == "path_escape"


@pytest.mark.parametrize("call_id", ["", "../../up", "a/b", "x" * 500, "\ud800", ".hidden", "null\0"])
def test_a_call_id_of_a_model_leads_nowhere(workspace: JailedWorkspace, root: Path, call_id: str) -> None:
    path = workspace.write_output("run", call_id, "text")

    assert get(workspace, path) == b"text"
    assert [p.name for p in (root / ".officina" / "outputs").iterdir()] == ["run"]


def test_listings_show_what_can_be_named_and_nothing_of_ours(workspace: JailedWorkspace, root: Path) -> None:
    put(workspace, "b/a.md", b"12")
    put(workspace, "a.md", b"1")
    workspace.write_output("run", "call", "text")
    (root / f"{handles.TEMPORARY}1").touch()
    (root / "trailing dot.").touch()
    (root / "line\nbreak").touch()
    os.close(os.open(os.fsencode(root) + b"/not-utf8-\xff", os.O_CREAT | os.O_WRONLY))

    found = workspace.entries(".", recursive=True)

    assert [(e.path, e.type, e.size) for e in found] == [("a.md", "file", 1), ("b", "dir", 0), ("b/a.md", "file", 2)]
    assert abs(found[0].modified_at / 1000 - time.time()) < 60
    assert [e.path for e in workspace.entries("b", recursive=False)] == ["b/a.md"]


SEGMENT = st.text(st.sampled_from("ab.~\\/: \u0301\u202e\u00e9.officina-COFI\0"), min_size=0, max_size=12)


@given(path=st.lists(SEGMENT, min_size=1, max_size=4).map("/".join))
def test_any_path_is_written_inside_or_refused(tmp_path_factory: pytest.TempPathFactory, path: str) -> None:
    parent = tmp_path_factory.mktemp("jail")
    workspace = JailedWorkspace(parent / "inside")
    try:
        stored = workspace.write(path, b"x", max_bytes=10)
    except SkillError as error:
        assert error.code in ("path_escape", "invalid_input")
        assert names(workspace) == []
    else:
        assert stored.path == workspace.normalise(path)
        assert (parent / "inside" / stored.path).read_bytes() == b"x"
        assert stored.path in names(workspace)
    assert [p.name for p in parent.iterdir()] == ["inside"]
