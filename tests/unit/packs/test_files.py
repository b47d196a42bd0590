"""The pack `files`, each tool called through the one invoke: what it gives, and each way it fails (spec: engine 15)."""

import os
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.workspaces.jail import JailedWorkspace
from registry.base import Json
from registry.packs import PACKS, edits
from registry.packs.files import FilesSpec
from registry.skills.context import Caller, SkillContext
from registry.skills.registry import SkillRegistry, SkillResult

PACK = PACKS["files"]
REGISTRY = SkillRegistry(PACK.tools)


class Agent:
    """Calls the pack's tools on a workspace, and keeps the events they emit."""

    def __init__(self, folder: Path, **spec: Json) -> None:
        self.root = folder
        self.events: list[tuple[str, dict[str, Json]]] = []
        self.context = SkillContext(
            caller=Caller(kind="run"),
            workspace=JailedWorkspace(folder),
            specs={FilesSpec: PACK.settings(spec)},
            emit=lambda kind, data: self.events.append((kind, data)),
        )

    def call(self, name: str, **arguments: Json) -> SkillResult:
        return REGISTRY.invoke(name, arguments, self.context)

    def ok(self, name: str, **arguments: Json) -> dict[str, Any]:
        result = self.call(name, **arguments)
        assert result.ok, (result.code, result.error)
        output: dict[str, Any] = result.output
        return output

    def refused(self, name: str, **arguments: Json) -> str | None:
        result = self.call(name, **arguments)
        assert not result.ok, "the call was taken"
        return result.code

    def has(self, path: str, content: str | bytes = "here\n") -> None:
        """Puts a file there, as a person or a program would."""
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)

    def holds(self, path: str) -> bytes:
        return (self.root / path).read_bytes()


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    return Agent(tmp_path / "project")


#: What every tool that takes a path refuses: the path, and the code.
OUTSIDE = [
    ("../secret", "path_escape"),
    ("/etc/passwd", "path_escape"),
    ("a/../../b", "path_escape"),
    ("~/x", "path_escape"),
    ("a\\b", "path_escape"),
    (".officina/usage", "path_escape"),
    (".OFFICINA/usage", "path_escape"),
    ("a\nb", "invalid_input"),
    ("a\0b", "invalid_input"),
    ("", "invalid_input"),
]
BLOCKED = [
    *(".env", ".env.local", "a/.env", ".ENV", ".Env.Production", ".ssh/config", ".gnupg/x", ".aws/credentials"),
    *("id_rsa", "keys/ID_RSA", "id_ed25519", "a/b/server.PEM", ".git/config", ".Git/hooks/pre-commit", ".hg/x"),
    *(".svn/x", "node_modules/a/index.js", "web/dist/app.js", "dist"),
]
TAKING_A_FILE = {
    "read_file": {},
    "write_file": {"content": "x"},
    "edit_file": {"old_string": "a", "new_string": "b"},
}


@pytest.mark.parametrize("tool", TAKING_A_FILE)
@pytest.mark.parametrize(("path", "code"), OUTSIDE)
def test_no_path_leads_out(agent: Agent, tool: str, path: str, code: str) -> None:
    assert agent.refused(tool, path=path, **TAKING_A_FILE[tool]) == code
    assert not (agent.root.parent / "secret").exists()


@pytest.mark.parametrize("tool", TAKING_A_FILE)
@pytest.mark.parametrize("path", BLOCKED)
def test_blocked_names_are_refused_in_any_part_of_a_path_and_in_any_case(agent: Agent, tool: str, path: str) -> None:
    agent.has(path, "a secret")
    assert agent.refused(tool, path=path, **TAKING_A_FILE[tool]) == "blocked"
    assert agent.holds(path) == b"a secret"


@pytest.mark.parametrize("tool", ["list_dir", "grep"])
@pytest.mark.parametrize("path", [".git", "a/NODE_MODULES", "dist/"])
def test_a_blocked_folder_is_not_listed_and_not_searched(agent: Agent, tool: str, path: str) -> None:
    agent.has(f"{path}/x")
    arguments = {"pattern": "here"} if tool == "grep" else {}
    assert agent.refused(tool, path=path, **arguments) == "blocked"


@pytest.mark.parametrize("tool", ["read_file", "write_file", "edit_file"])
def test_links_are_not_followed(agent: Agent, tool: str) -> None:
    outside = agent.root.parent / "outside"
    outside.mkdir()
    (outside / "f").write_text("a secret")
    (agent.root / "link").symlink_to(outside / "f")
    (agent.root / "folder").symlink_to(outside)
    os.link(outside / "f", agent.root / "hard")
    for path in ("folder/f", "hard", *(["link"] if tool != "write_file" else [])):
        assert agent.refused(tool, path=path, **TAKING_A_FILE[tool]) == "path_escape"
    agent.call(tool, path="link", **TAKING_A_FILE[tool])
    assert (outside / "f").read_text() == "a secret"


@pytest.mark.parametrize("tool", sorted(PACK.tool_names))
def test_without_a_workspace_there_is_nothing_to_work_on(tool: str) -> None:
    needed = {"glob": {"pattern": "*"}, "grep": {"pattern": "x"}, "list_dir": {}}
    arguments = needed.get(tool) or ({} if tool == "list_dir" else {"path": "a", **TAKING_A_FILE.get(tool, {})})
    result = REGISTRY.invoke(tool, arguments, SkillContext(caller=Caller(kind="run")))
    assert (result.ok, result.code) == (False, "not_found")


@pytest.mark.parametrize(
    ("tool", "operations", "effect"),
    [
        ("read_file", ["fs.read"], "pure"),
        ("write_file", ["fs.write"], "idempotent"),
        ("edit_file", ["fs.write"], "once"),
        ("list_dir", ["fs.read"], "pure"),
        ("glob", ["fs.read"], "pure"),
        ("grep", ["fs.read"], "pure"),
    ],
)
def test_what_a_tool_does_to_the_world(tool: str, operations: list[str], effect: str) -> None:
    found = REGISTRY.find(tool)
    assert found is not None
    assert (found.operations_of(None), found.effect) == (operations, effect)


# read_file


def test_lines_are_read_behind_their_numbers(agent: Agent) -> None:
    agent.has("a.txt", "one\ntwo\nthree\n")
    assert agent.ok("read_file", path="a.txt") == {
        "content": "1: one\n2: two\n3: three",
        "totalLines": 3,
        "truncated": False,
    }


@pytest.mark.parametrize(
    ("offset", "limit", "content", "truncated"),
    [
        (1, 1, "1: one", True),
        (2, 1, "2: two", True),
        (2, 2, "2: two\n3: three", False),
        (3, 400, "3: three", False),
        (4, 10, "", False),
        (9_999_999, 10, "", False),
    ],
)
def test_an_offset_is_a_line(agent: Agent, offset: int, limit: int, content: str, truncated: bool) -> None:
    agent.has("a.txt", "one\ntwo\nthree")
    found = agent.ok("read_file", path="a.txt", offset=offset, limit=limit)
    assert found == {"content": content, "totalLines": 3, "truncated": truncated}


@pytest.mark.parametrize(
    ("content", "shown", "total"),
    [
        (b"", "", 0),
        (b"\n", "1: ", 1),
        (b"a\r\nb\r\n", "1: a\n2: b", 2),
        (b"\xef\xbb\xbfa\n", "1: a", 1),
        (b"caf\xe9\n", "1: caf\ufffd", 1),
        (b"x" * 8192 + b"\0", f"1: {'x' * 8192}\0", 1),
    ],
)
def test_what_is_in_a_file_is_shown_as_text(agent: Agent, content: bytes, shown: str, total: int) -> None:
    agent.has("a", content)
    found = agent.ok("read_file", path="a")
    assert (found["content"], found["totalLines"]) == (shown, total)


def test_four_hundred_lines_come_unless_others_are_asked_for(agent: Agent) -> None:
    agent.has("a", "x\n" * 3000)
    assert agent.ok("read_file", path="a")["content"].count("\n") == 399
    assert agent.ok("read_file", path="a", limit=2000)["truncated"]


def test_what_is_too_long_for_one_call_comes_in_parts(agent: Agent) -> None:
    agent.has("wide", "\n".join(["x" * 200_000] * 3))
    first = agent.ok("read_file", path="wide")
    assert (first["content"].count("\n"), first["truncated"]) == (0, True)
    agent.has("one-line", "x" * 300_000)
    assert agent.ok("read_file", path="one-line")["truncated"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"path": "missing"}, "not_found"),
        ({"path": "folder/missing"}, "not_found"),
        ({"path": "file/below"}, "not_found"),
        ({"path": "folder"}, "invalid_input"),
        ({"path": "binary"}, "unsupported_type"),
        ({"path": "pipe"}, "unsupported_type"),
        ({"path": "huge"}, "too_large"),
        ({"path": "file", "offset": 0}, "invalid_input"),
        ({"path": "file", "limit": 2001}, "invalid_input"),
        ({"path": "file", "limit": "4"}, "invalid_input"),
        ({"path": "file", "lines": 3}, "invalid_input"),
        ({}, "invalid_input"),
    ],
)
def test_a_read_is_refused(agent: Agent, arguments: dict[str, Json], code: str) -> None:
    agent.has("file")
    agent.has("folder/x")
    agent.has("binary", b"GIF89a\0rest")
    os.mkfifo(agent.root / "pipe")
    with (agent.root / "huge").open("wb") as huge:
        huge.truncate(21 * 1024 * 1024)
    assert agent.refused("read_file", **arguments) == code


def test_a_kept_output_can_be_read_and_searched_and_not_written(agent: Agent) -> None:
    assert agent.context.workspace is not None
    path = agent.context.workspace.write_output("run1", "call1", "long\ntext\n")
    assert agent.ok("read_file", path=path)["totalLines"] == 2
    assert agent.ok("grep", pattern="tex", path=path)["matches"] == [{"file": path, "line": 2, "text": "text"}]
    assert agent.refused("write_file", path=path, content="x") == "path_escape"
    assert agent.refused("edit_file", path=path, old_string="long", new_string="x") == "path_escape"
    assert agent.ok("grep", pattern="long")["matches"] == []


# write_file


def test_a_file_is_written_with_the_folders_that_lead_to_it(agent: Agent) -> None:
    assert agent.ok("write_file", path="a/b.txt", content="é\n") == {"path": "a/b.txt", "bytes": 3, "created": True}
    assert agent.ok("write_file", path="./a//b.txt", content="two") == {"path": "a/b.txt", "bytes": 3, "created": False}
    assert agent.holds("a/b.txt") == b"two"
    assert [kind for kind, _ in agent.events] == ["file.written"] * 2
    assert agent.events[0][1]["skill"] == "write_file"


def test_a_file_that_is_there_is_kept_on_demand(agent: Agent) -> None:
    agent.has("a", "old")
    assert agent.refused("write_file", path="a", content="new", overwrite=False) == "conflict"
    assert agent.holds("a") == b"old"
    assert agent.ok("write_file", path="b", content="new", overwrite=False)["created"]


def test_a_write_that_is_repeated_after_a_crash_finds_its_own_content(agent: Agent) -> None:
    for _ in range(2):
        found = agent.ok("write_file", path="a", content="new", overwrite=False)
    assert found == {"path": "a", "bytes": 3, "created": False}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"path": "folder", "content": "x"}, "conflict"),
        ({"path": "file/below", "content": "x"}, "conflict"),
        ({"path": "a/", "content": "x"}, "invalid_input"),
        ({"path": "a", "content": "é" * 600_000}, "too_large"),
        ({"path": "a", "content": "x" * 1_100_000}, "invalid_input"),
        ({"path": "a"}, "invalid_input"),
        ({"path": "a", "content": "x", "mode": "append"}, "invalid_input"),
    ],
)
def test_a_write_is_refused(agent: Agent, arguments: dict[str, Json], code: str) -> None:
    agent.has("file")
    agent.has("folder/x")
    assert agent.refused("write_file", **arguments) == code
    assert sorted(p.name for p in agent.root.iterdir() if p.name != ".officina") == ["file", "folder"]


def test_a_full_workspace_takes_no_more(agent: Agent) -> None:
    agent.context.workspace = JailedWorkspace(agent.root, max_files=1)
    agent.ok("write_file", path="a", content="x")
    assert agent.refused("write_file", path="b", content="x") == "quota"


# edit_file


def test_an_edit_shows_what_changed(agent: Agent) -> None:
    agent.has("a.py", "".join(f"line {n}\n" for n in range(1, 11)))
    found = agent.ok("edit_file", path="a.py", old_string="line 5\n", new_string="line five\nand more\n")
    assert found == {
        "path": "a.py",
        "replacements": 1,
        "diff": "--- a/a.py\n+++ b/a.py\n@@ -2,7 +2,8 @@\n line 2\n line 3\n line 4\n-line 5\n+line five\n+and more\n"
        " line 6\n line 7\n line 8\n",
    }
    assert agent.holds("a.py").splitlines()[4:6] == [b"line five", b"and more"]
    assert agent.events[0][1]["skill"] == "edit_file"


def test_every_place_is_replaced_on_demand(agent: Agent) -> None:
    agent.has("a", "x y x\nx\n")
    found = agent.ok("edit_file", path="a", old_string="x", new_string="z", replace_all=True)
    assert found["replacements"] == 3
    assert agent.holds("a") == b"z y z\nz\n"


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\r\nb\r\n", "a\nb", "c\nd", b"c\r\nd\r\n"),
        (b"a\r\nb\r\n", "a\r\nb", "c\r\nd", b"c\r\nd\r\n"),
        (b"a\r\nb\r\n", "a", "x\ny", b"x\r\ny\r\nb\r\n"),
        (b"a\r\nb\n", "b", "x\ny", b"a\r\nx\ny\n"),
        (b"\xef\xbb\xbfa\n", "a", "b", b"\xef\xbb\xbfb\n"),
        (b"caf\xe9 a\n", "a\n", "b\n", b"caf\xe9 b\n"),
        (b"no end", "end", "END", b"no END"),
        (b"gone", "gone", "", b""),
        (b"$1 \\1 {x}", "$1", "\\g<0>{}", b"\\g<0>{} \\1 {x}"),
    ],
)
def test_an_edit_leaves_the_rest_as_it_is(agent: Agent, before: bytes, old: str, new: str, after: bytes) -> None:
    agent.has("a", before)
    agent.ok("edit_file", path="a", old_string=old, new_string=new)
    assert agent.holds("a") == after


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"path": "missing", "old_string": "a", "new_string": "b"}, "not_found"),
        ({"path": "file", "old_string": "nowhere", "new_string": "b"}, "not_found"),
        ({"path": "file", "old_string": "", "new_string": "b"}, "invalid_input"),
        ({"path": "file", "old_string": "e", "new_string": "b"}, "conflict"),
        ({"path": "file", "old_string": "here", "new_string": "here"}, "invalid_input"),
        ({"path": "file", "oldString": "here", "newString": "b"}, "invalid_input"),
        ({"path": "binary", "old_string": "a", "new_string": "b"}, "unsupported_type"),
        ({"path": "large", "old_string": "a", "new_string": "b"}, "too_large"),
        ({"path": "file", "old_string": "h", "new_string": "x" * 1_048_576}, "too_large"),
        ({"path": "folder", "old_string": "a", "new_string": "b"}, "invalid_input"),
    ],
)
def test_an_edit_is_refused(agent: Agent, arguments: dict[str, Json], code: str) -> None:
    agent.has("file", "here\n")
    agent.has("folder/x")
    agent.has("binary", b"a\0")
    agent.has("large", "a" * 1_100_000)
    assert agent.refused("edit_file", **arguments) == code
    assert agent.holds("file") == b"here\n"
    assert agent.events == []


def test_two_edits_at_once_lose_nothing(agent: Agent) -> None:
    agent.has("a", "".join(f"<{n}>\n" for n in range(24)))
    edit = [
        threading.Thread(target=lambda n=n: agent.ok("edit_file", path="a", old_string=f"<{n}>", new_string=f"[{n}]"))
        for n in range(24)
    ]
    for one in edit:
        one.start()
    for one in edit:
        one.join()
    assert agent.holds("a").decode() == "".join(f"[{n}]\n" for n in range(24))


def test_a_change_by_somebody_who_takes_no_lock_is_not_overwritten(agent: Agent) -> None:
    agent.has("a", "one\n")
    workspace = agent.context.workspace
    assert workspace is not None
    read = workspace.read

    def meanwhile(path: str, *, max_bytes: int) -> bytes:
        found = read(path, max_bytes=max_bytes)
        agent.has("a", "another's\n")
        return found

    workspace.read = meanwhile  # type: ignore[method-assign]
    assert agent.refused("edit_file", path="a", old_string="one", new_string="two") == "conflict"
    assert agent.holds("a") == b"another's\n"


def applied(before: str, diff: str) -> str:
    """What `patch` makes of a text: every line of context and every removed one has to be where the hunk says."""
    old, made, at = before.splitlines(keepends=True), [], 0
    for line in diff.splitlines(keepends=True)[2:]:
        if line.startswith("@@"):
            start = int(line.split()[1].lstrip("-").split(",")[0])
            count = int(line.split()[1].split(",")[1])
            first = start - 1 if count else start
            made += old[at:first]
            at = first
            assert sum(map(len, made)) == len("".join(made))
            new_start, new_count = map(int, line.split()[2].lstrip("+").split(","))
            assert new_start == len(made) + (1 if new_count else 0)
        elif line.startswith("\\"):
            made[-1:] = [made[-1].removesuffix("\n")] if made and made[-1].endswith("\n\0") else made[-1:]
        elif line[0] in " -":
            assert old[at].removesuffix("\n") == line[1:].removesuffix("\n")
            made += [old[at]] if line[0] == " " else []
            at += 1
        else:
            made.append(line[1:])
    return "".join(made + old[at:])


@given(
    st.lists(st.sampled_from(["a", "b", "ab", "", "x y"]), max_size=40),
    st.sampled_from(["a", "b", "a\n", "\n", "b\na", "x"]),
    st.sampled_from(["", "a", "c", "c\n", "\n\n", "a\nb\nc", "b\n"]),
)
def test_a_difference_gives_the_new_file_when_it_is_applied(words: list[str], old: str, new: str) -> None:
    before = "".join(f"{word}\n" for word in words)
    after = before.replace(old, new)
    if old not in before or (after and not after.endswith("\n")):
        return
    made = edits.replaced(before.encode(), old, new, every=True, path="f")
    assert made.after.decode() == after
    assert applied(before, edits.unified_diff(made, "f")) == after


def test_a_difference_takes_no_longer_than_the_file_is_long() -> None:
    before = b"x\ny\n" * 100_000
    began = time.monotonic()
    made = edits.replaced(before, "x", "z", every=True, path="f")
    diff = edits.unified_diff(made, "f")
    assert time.monotonic() - began < 5
    assert len(diff) < 21_000 and "left out" in diff


# list_dir


def test_a_folder_is_listed(agent: Agent) -> None:
    for path in ("b.txt", "a/c.txt", "a/d/e.txt"):
        agent.has(path)
    (agent.root / "link").symlink_to("b.txt")
    assert agent.ok("list_dir") == {
        "path": ".",
        "entries": [
            {"name": "a", "type": "dir", "size": 0},
            {"name": "b.txt", "type": "file", "size": 5},
            {"name": "link", "type": "link", "size": 0},
        ],
        "truncated": False,
    }
    deeper = agent.ok("list_dir", path="a", depth=2)
    assert [e["name"] for e in deeper["entries"]] == ["c.txt", "d", "d/e.txt"]
    assert [e["name"] for e in agent.ok("list_dir", depth=2)["entries"]] == ["a", "a/c.txt", "a/d", "b.txt", "link"]


def test_five_hundred_entries_are_the_most(agent: Agent) -> None:
    for n in range(501):
        agent.has(f"many/{n:03d}")
    found = agent.ok("list_dir", path="many")
    assert (len(found["entries"]), found["truncated"]) == (500, True)
    (agent.root / "many" / "500").unlink()
    assert not agent.ok("list_dir", path="many")["truncated"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"path": "file"}, "invalid_input"),
        ({"path": "missing"}, "not_found"),
        ({"path": "link"}, "path_escape"),
        ({"path": "../x"}, "path_escape"),
        ({"depth": 6}, "invalid_input"),
        ({"depth": 0}, "invalid_input"),
    ],
)
def test_a_listing_is_refused(agent: Agent, arguments: dict[str, Json], code: str) -> None:
    agent.has("file")
    (agent.root / "link").symlink_to(agent.root.parent)
    assert agent.refused("list_dir", **arguments) == code


def listed(agent: Agent) -> dict[str, list[str]]:
    """What each of the three shows of a workspace."""
    return {
        "list_dir": [e["name"] for e in agent.ok("list_dir", depth=5)["entries"] if e["type"] == "file"],
        "glob": agent.ok("glob", pattern="*")["matches"],
        "grep": [hit["file"] for hit in agent.ok("grep", pattern="here")["matches"]],
    }


def test_listings_hide_blocked_names_and_odd_ones(agent: Agent) -> None:
    for path in (*BLOCKED[:-1], "seen.txt", "a/seen.txt", "a/odd\nname", ".officina/x", ".gitignore"):
        agent.has(path)
    for shown in listed(agent).values():
        assert shown == [".gitignore", "a/seen.txt", "seen.txt"]


IGNORING = [
    ({".gitignore": "*.log\n"}, ["a.log", "b/c.log"], ["a.txt"]),
    ({".gitignore": "build/\n"}, ["build/x", "b/build/y"], ["buildings"]),
    ({".gitignore": "/top\n"}, ["top"], ["b/top"]),
    ({".gitignore": "*.log\n!keep.log\n"}, ["a.log"], ["keep.log"]),
    ({".gitignore": "*.log\n", "b/.gitignore": "!c.log\n"}, ["a.log", "b/a.log"], ["b/c.log"]),
    ({".gitignore": "b/\n", "b/.gitignore": "!c.log\n"}, ["b/c.log"], ["c.log"]),
    ({"b/.gitignore": "*.tmp\n"}, ["b/x.tmp", "b/c/x.tmp"], ["x.tmp"]),
    ({".gitignore": "# all\n\n*.log   \n"}, ["a.log"], ["# all"]),
    ({".gitignore": "***/x[\n*.log\n"}, ["a.log"], ["a.txt"]),
    ({".gitignore": b"\xff\xfe*.log\n"}, [], ["a.log"]),
]


@pytest.mark.parametrize(("files", "hidden", "seen"), IGNORING)
def test_listings_hide_what_git_would_ignore(
    agent: Agent, files: dict[str, str | bytes], hidden: list[str], seen: list[str]
) -> None:
    for path, content in files.items():
        agent.has(path, content)
    for path in (*hidden, *seen):
        agent.has(path)
    for shown in listed(agent).values():
        assert set(seen) <= set(shown)
        assert not set(hidden) & set(shown)


def test_an_ignored_file_that_is_named_can_be_read_and_its_folder_listed(agent: Agent) -> None:
    agent.has(".gitignore", "build/\n")
    agent.has("build/out.txt")
    assert agent.ok("read_file", path="build/out.txt")["totalLines"] == 1
    assert [e["name"] for e in agent.ok("list_dir", path="build")["entries"]] == ["out.txt"]
    assert agent.ok("grep", pattern="here", path="build/out.txt")["matches"]


def test_what_is_hidden_is_not_walked(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(50):
        agent.has(f"node_modules/m{n}/deep/index.js")
    agent.has("a")
    looked: list[str] = []
    scandir = os.scandir

    def watched(where: Any) -> Any:
        looked.append(str(where))
        return scandir(where)

    monkeypatch.setattr(os, "scandir", watched)
    assert agent.ok("glob", pattern="*")["matches"] == ["a"]
    assert len(looked) == 1


# glob


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("*.md", ["a.md", "src/b.md", "src/deep/c.md"]),
        ("src/*.md", ["src/b.md"]),
        ("src/**/*.md", ["src/b.md", "src/deep/c.md"]),
        ("/*.md", ["a.md"]),
        ("src/", ["src/b.md", "src/deep/c.md"]),
        ("*.nothing", []),
        ("A.MD", []),
    ],
)
def test_files_are_found_by_pattern(agent: Agent, pattern: str, matches: list[str]) -> None:
    for path in ("a.md", "src/b.md", "src/deep/c.md", "x.txt"):
        agent.has(path)
    assert agent.ok("glob", pattern=pattern) == {"pattern": pattern, "matches": matches}


def test_a_thousand_paths_are_the_most(agent: Agent) -> None:
    for n in range(1001):
        agent.has(f"many/{n:04d}")
    found = agent.ok("glob", pattern="many/*")["matches"]
    assert (len(found), found[-1]) == (1000, "many/0999")
    assert all(one < other for one, other in pairwise(found))


@pytest.mark.parametrize(
    ("pattern", "code"),
    [
        ("../*", "path_escape"),
        ("src/../../*", "path_escape"),
        (".\\./x", "path_escape"),
        ("", "invalid_input"),
        ("# no", "invalid_input"),
        ("!*", "invalid_input"),
        ("x" * 201, "invalid_input"),
        ("a\nb", "invalid_input"),
    ],
)
def test_a_glob_is_refused(agent: Agent, pattern: str, code: str) -> None:
    assert agent.refused("glob", pattern=pattern) == code


# grep


def test_lines_are_found_by_pattern(agent: Agent) -> None:
    agent.has("a.py", "import os\nprint(1)\n")
    agent.has("b/c.py", "x\r\nimport sys\r\n")
    assert agent.ok("grep", pattern="^import") == {
        "pattern": "^import",
        "matches": [
            {"file": "a.py", "line": 1, "text": "import os"},
            {"file": "b/c.py", "line": 2, "text": "import sys"},
        ],
        "truncated": False,
    }
    assert [m["file"] for m in agent.ok("grep", pattern="import", path="b")["matches"]] == ["b/c.py"]
    assert [m["file"] for m in agent.ok("grep", pattern="import", path="b/c.py")["matches"]] == ["b/c.py"]
    assert [m["file"] for m in agent.ok("grep", pattern="import", glob="a*")["matches"]] == ["a.py"]
    assert agent.ok("grep", pattern="IMPORT")["matches"] == []
    assert len(agent.ok("grep", pattern="(?i)IMPORT", path=".")["matches"]) == 2


def test_as_many_matches_as_asked_for(agent: Agent) -> None:
    agent.has("a", "x\n" * 150)
    assert len(agent.ok("grep", pattern="x")["matches"]) == 100
    found = agent.ok("grep", pattern="x", maxResults=149)
    assert (len(found["matches"]), found["truncated"]) == (149, True)
    assert not agent.ok("grep", pattern="x", maxResults=150)["truncated"]


def test_files_that_hold_no_text_are_passed_over(agent: Agent) -> None:
    agent.has("binary", b"here\0")
    agent.has("latin", b"here \xe9\n")
    agent.has("large", "here\n" * 500_000)
    agent.has("text")
    assert [m["file"] for m in agent.ok("grep", pattern="here")["matches"]] == ["text"]
    assert agent.refused("grep", pattern="here", path="binary") == "unsupported_type"
    assert agent.refused("grep", pattern="here", path="large") == "too_large"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"pattern": "("}, "invalid_input"),
        ({"pattern": "(?=x)"}, "invalid_input"),
        ({"pattern": "(a)\\1"}, "invalid_input"),
        ({"pattern": "((a{100}){100}){100}"}, "invalid_input"),
        ({"pattern": "a\nb"}, "invalid_input"),
        ({"pattern": ""}, "invalid_input"),
        ({"pattern": "x", "path": "missing"}, "not_found"),
        ({"pattern": "x", "path": "missing/file"}, "not_found"),
        ({"pattern": "x", "path": "../up"}, "path_escape"),
        ({"pattern": "x", "path": "link"}, "path_escape"),
        ({"pattern": "x", "path": ".officina"}, "path_escape"),
        ({"pattern": "x", "glob": "../*"}, "path_escape"),
        ({"pattern": "x", "maxResults": 1001}, "invalid_input"),
        ({"pattern": "x", "max_results": 5}, "invalid_input"),
    ],
)
def test_a_search_is_refused(agent: Agent, arguments: dict[str, Json], code: str) -> None:
    (agent.root / "link").symlink_to(agent.root.parent)
    assert agent.refused("grep", **arguments) == code


def test_a_pattern_that_would_take_others_for_ever_takes_no_time(agent: Agent) -> None:
    agent.has("a", "a" * 100_000 + "!\n")
    began = time.monotonic()
    assert agent.ok("grep", pattern="(a+)+$")["matches"] == []
    assert time.monotonic() - began < 5


def test_a_search_ends_with_its_time_and_with_its_run(agent: Agent) -> None:
    agent.has("a")
    agent.context.time_left = 0
    assert agent.refused("grep", pattern="here") == "timeout"
    agent.context.time_left = 10
    agent.context.cancelled = lambda: True
    assert agent.refused("grep", pattern="here") == "cancelled"


# the settings of the pack


def test_paths_are_below_the_root_of_the_pack(tmp_path: Path) -> None:
    agent = Agent(tmp_path / "project", root="site")
    assert agent.ok("glob", pattern="*")["matches"] == []
    agent.ok("write_file", path="a/b.txt", content="here\n")
    agent.has("above.txt")
    assert agent.holds("site/a/b.txt") == b"here\n"
    assert agent.events[0][1]["path"] == "site/a/b.txt"
    assert all(shown == ["a/b.txt"] for shown in listed(agent).values())
    assert agent.refused("read_file", path="../above.txt") == "path_escape"
    assert agent.refused("read_file", path="above.txt") == "not_found"
    assert agent.ok("edit_file", path="a/b.txt", old_string="here", new_string="x")["path"] == "a/b.txt"


def test_the_block_list_of_an_agent_adds_to_the_one_that_always_holds(tmp_path: Path) -> None:
    agent = Agent(tmp_path / "project", blocklist=["*.KEY", "private/", "notes/secret-*"])
    for path in ("a.key", "Private/x", "notes/SECRET-1", "notes/b", ".env"):
        agent.has(path)
    for path in ("a.key", "Private/x", "notes/SECRET-1", ".env"):
        assert agent.refused("read_file", path=path) == "blocked"
    assert all(shown == ["notes/b"] for shown in listed(agent).values())


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        ({"root": "../up"}, "root"),
        ({"root": ".git"}, "root"),
        ({"root": "a/Dist"}, "root"),
        ({"blocklist": ["!.env"]}, "blocklist"),
        ({"blocklist": ["# note"]}, "blocklist"),
        ({"blocklist": [""]}, "blocklist"),
        ({"blocklist": "x"}, "blocklist"),
        ({"block": []}, "block"),
    ],
)
def test_settings_that_do_not_fit_are_refused(spec: dict[str, Json], names: str) -> None:
    assert names in str(PACK.spec_fault(spec))
