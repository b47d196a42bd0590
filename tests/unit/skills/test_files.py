"""`files.list`, `files.read` and `files.write`, called through the one invoke (spec: skills 7.6 to 7.8)."""

import base64
import hashlib
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.workspaces.jail import JailedWorkspace
from registry.base import Json
from registry.skills.context import Caller, SkillContext
from registry.skills.files import SKILLS
from registry.skills.registry import SkillRegistry, SkillResult

REGISTRY = SkillRegistry(SKILLS)


class Agent:
    """Calls file skills on a workspace, and keeps the events they emit."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.events: list[tuple[str, dict[str, Json]]] = []
        self.context = SkillContext(
            caller=Caller(kind="run"),
            workspace=JailedWorkspace(root),
            emit=lambda kind, data: self.events.append((kind, data)),
        )

    def call(self, name: str, **arguments: Json) -> SkillResult:
        return REGISTRY.invoke(f"files.{name}", arguments, self.context)

    def ok(self, name: str, **arguments: Json) -> dict[str, Any]:
        result = self.call(name, **arguments)
        assert result.ok, (result.code, result.error)
        output: dict[str, Any] = result.output
        return output

    def refused(self, name: str, **arguments: Json) -> str | None:
        result = self.call(name, **arguments)
        assert not result.ok, "the call was taken"
        return result.code


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    return Agent(tmp_path / "project")


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def paths(listed: dict[str, Any]) -> list[str]:
    return [entry["path"] for entry in listed["entries"]]


def test_a_written_file_is_listed_read_and_told_to_the_trace(agent: Agent) -> None:
    written = agent.ok("write", path="notes//./one.md", content="Grüße\n")

    assert written["path"] == "notes/one.md"
    assert (written["bytes"], written["created"]) == (8, True)
    assert agent.events == [
        (
            "file.written",
            {"path": "notes/one.md", "bytes": 8, "sha256": sha256("Grüße\n".encode()), "skill": "files.write"},
        )
    ]
    read = agent.ok("read", path="notes/one.md")
    assert (read["content"], read["size"], read["totalLines"]) == ("Grüße\n", 8, 1)
    assert read["sha256"] == written["sha256"]
    assert paths(agent.ok("list", path="notes")) == ["notes/one.md"]


def test_a_refused_write_tells_nothing_to_the_trace(agent: Agent) -> None:
    agent.ok("write", path="a.md", content="one", mode="create")

    assert agent.refused("write", path="a.md", content="two", mode="create") == "conflict"
    assert agent.refused("write", path="a.md", content="two", expectedSha256=sha256(b"three")) == "conflict"
    assert len(agent.events) == 1


def test_an_overwrite_names_the_hash_it_replaced(agent: Agent) -> None:
    agent.ok("write", path="a.md", content="one")
    second = agent.ok("write", path="a.md", content="two", expectedSha256=sha256(b"one"))

    assert (second["created"], second["previousSha256"]) == (False, sha256(b"one"))


def test_append_makes_a_missing_file_and_stops_at_1_mib(agent: Agent) -> None:
    agent.ok("write", path="a.md", content="x" * (1024 * 1024 - 1), mode="append")
    agent.ok("write", path="a.md", content="y", mode="append")

    assert agent.refused("write", path="a.md", content="z", mode="append") == "too_large"


def test_content_is_measured_in_bytes_and_decoded_when_base64(agent: Agent) -> None:
    mib = 1024 * 1024
    agent.ok("write", path="a.bin", content=base64.b64encode(b"\xff" * mib).decode(), encoding="base64")
    assert (agent.root / "a.bin").read_bytes() == b"\xff" * mib

    assert agent.refused("write", path="b.md", content="ü" * (mib // 2 + 1)) == "invalid_input"
    too_long = base64.b64encode(b"\xff" * (mib + 1)).decode()
    assert agent.refused("write", path="b.bin", content=too_long, encoding="base64") == "invalid_input"
    assert agent.refused("write", path="b.bin", content="not base64!", encoding="base64") == "invalid_input"
    assert not (agent.root / "b.bin").exists()


def test_only_an_overwrite_may_run_twice() -> None:
    write = REGISTRY.find("files.write")
    assert write is not None
    effects = {
        mode: write.effect_of(write.input.check({"path": "a", "content": "", "mode": mode}))
        for mode in ("overwrite", "create", "append")
    }

    assert effects == {"overwrite": "idempotent", "create": "once", "append": "once"}


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": "a.md"},
        {"path": "a.md", "content": 5},
        {"path": "a.md", "content": "x", "mode": "truncate"},
        {"path": "a.md", "content": "x", "approved": True},
        {"path": "a.md", "content": "x", "expectedSha256": "abc"},
        {"path": "", "content": "x"},
        {"path": "a/", "content": "x"},
    ],
)
def test_bad_writes_are_invalid(agent: Agent, arguments: dict[str, Json]) -> None:
    assert agent.refused("write", **arguments) == "invalid_input"


@pytest.mark.parametrize("path", ["../a", "/etc/passwd", "a/../b", ".officina/usage", ".OFFICINA/x", "~/x", "a\\b"])
def test_ways_out_are_refused_before_the_disk_is_touched(agent: Agent, path: str) -> None:
    assert agent.refused("write", path=path, content="x") == "path_escape"
    assert agent.refused("read", path=path) == "path_escape"
    assert agent.refused("list", path=path) == "path_escape"
    assert agent.refused("search", query="x", path=path) == "path_escape"


def test_a_link_made_by_another_program_is_not_followed(agent: Agent) -> None:
    (agent.root / "out").mkdir()
    (agent.root / "out" / "link").symlink_to("/etc/passwd")

    assert agent.refused("read", path="out/link") == "path_escape"
    assert [(e["path"], e["type"]) for e in agent.ok("list", path="out")["entries"]] == [("out/link", "link")]


def test_a_pipe_does_not_hold_a_call(agent: Agent) -> None:
    os.mkfifo(agent.root / "pipe")

    assert agent.refused("read", path="pipe") == "unsupported_type"


def test_lines_are_read_in_parts(agent: Agent) -> None:
    agent.ok("write", path="a.txt", content="one\ntwo\r\nthree")

    first = agent.ok("read", path="a.txt", maxLines=2)
    assert (first["content"], first["totalLines"], first["truncated"], first["nextLine"]) == (
        "one\ntwo\r\n",
        3,
        True,
        3,
    )
    rest = agent.ok("read", path="a.txt", startLine=first["nextLine"])
    assert (rest["content"], rest["truncated"], rest["nextLine"]) == ("three", False, None)
    beyond = agent.ok("read", path="a.txt", startLine=4)
    assert (beyond["content"], beyond["truncated"]) == ("", False)


def test_an_empty_file_has_no_lines(agent: Agent) -> None:
    agent.ok("write", path="a.txt", content="")

    read = agent.ok("read", path="a.txt")
    assert (read["content"], read["totalLines"], read["truncated"]) == ("", 0, False)


@given(text=st.text(st.sampled_from("a\n\réß"), max_size=30), lines=st.integers(1, 5))
def test_the_parts_together_are_the_file(tmp_path_factory: pytest.TempPathFactory, text: str, lines: int) -> None:
    agent = Agent(tmp_path_factory.mktemp("project"))
    agent.ok("write", path="a.txt", content=text)

    parts, line = [], 1
    while True:
        read = agent.ok("read", path="a.txt", startLine=line, maxLines=lines)
        parts.append(read["content"])
        if not read["truncated"]:
            break
        line = read["nextLine"]

    assert "".join(parts) == text


def test_a_call_gives_256_kib_at_most(agent: Agent) -> None:
    line = "x" * (100 * 1024 - 1) + "\n"
    agent.ok("write", path="a.txt", content=line * 5)

    read = agent.ok("read", path="a.txt")
    assert (len(read["content"]), read["nextLine"], read["truncated"]) == (200 * 1024, 3, True)


def test_a_line_that_is_too_long_is_cut_between_characters(agent: Agent) -> None:
    agent.ok("write", path="a.txt", content="x" + "é" * 200_000 + "\nnext\n")

    read = agent.ok("read", path="a.txt")
    assert (len(read["content"].encode()), read["nextLine"], read["truncated"]) == (256 * 1024 - 1, 2, True)
    assert agent.ok("read", path="a.txt", startLine=2)["content"] == "next\n"

    agent.ok("write", path="b.txt", content="x" + "é" * 200_000)
    last = agent.ok("read", path="b.txt")
    assert (last["nextLine"], last["truncated"]) == (None, True)


def test_a_byte_order_mark_is_taken_off_and_told(agent: Agent) -> None:
    (agent.root / "a.txt").write_bytes(b"\xef\xbb\xbfhello")

    read = agent.ok("read", path="a.txt")
    assert (read["content"], read["bom"], read["size"]) == ("hello", True, 8)


def test_what_is_not_text_is_read_as_base64(agent: Agent) -> None:
    (agent.root / "a.bin").write_bytes(b"\xff\xfe\n")

    refused = agent.call("read", path="a.bin")
    assert refused.code == "unsupported_type"
    assert "base64" in (refused.error or "")
    assert agent.ok("read", path="a.bin", encoding="base64")["content"] == base64.b64encode(b"\xff\xfe\n").decode()
    (agent.root / "b.bin").write_bytes(b"\xff" * (1024 * 1024 + 1))
    assert agent.refused("read", path="b.bin", encoding="base64") == "too_large"


def test_reading_what_is_no_file(agent: Agent) -> None:
    agent.ok("write", path="d/a.md", content="x")

    assert agent.refused("read", path="d") == "invalid_input"
    assert agent.refused("read", path="d/b.md") == "not_found"
    assert agent.refused("list", path="d/a.md") == "invalid_input"
    assert agent.refused("list", path="e") == "not_found"


def test_kept_outputs_can_be_read_by_their_path(agent: Agent) -> None:
    assert isinstance(agent.context.workspace, JailedWorkspace)
    path = agent.context.workspace.write_output("run", "call", "long")

    assert agent.ok("read", path=path)["content"] == "long"
    assert agent.refused("write", path=path, content="x") == "path_escape"
    assert paths(agent.ok("list", recursive=True)) == []


@pytest.fixture
def tree(agent: Agent) -> Agent:
    for path in ("a.md", "b.txt", "docs/a.md", "docs/deep/b.md", "docs/deep/c.txt"):
        agent.ok("write", path=path, content=path)
    return agent


def test_a_listing_is_sorted_and_one_level_deep_unless_asked(tree: Agent) -> None:
    assert paths(tree.ok("list")) == ["a.md", "b.txt", "docs"]
    assert paths(tree.ok("list", path="docs", recursive=True)) == [
        "docs/a.md",
        "docs/deep",
        "docs/deep/b.md",
        "docs/deep/c.txt",
    ]
    entry = tree.ok("list")["entries"][0]
    assert (entry["type"], entry["size"]) == ("file", 4)
    assert entry["modifiedAt"].endswith("Z")


@pytest.mark.parametrize(
    ("folder", "glob", "expected"),
    [
        (".", "*.md", ["a.md", "docs/a.md", "docs/deep/b.md"]),
        (".", "/*.md", ["a.md"]),
        (".", "docs/**/b.*", ["docs/deep/b.md"]),
        ("docs", "/a.md", ["docs/a.md"]),
        ("docs", "deep/", ["docs/deep", "docs/deep/b.md", "docs/deep/c.txt"]),
        (".", "/etc/*", []),
        (".", "[ab].txt", ["b.txt"]),
    ],
)
def test_a_glob_chooses_below_the_folder(tree: Agent, folder: str, glob: str, expected: list[str]) -> None:
    assert paths(tree.ok("list", path=folder, glob=glob, recursive=True)) == expected


@pytest.mark.parametrize("glob", ["!*.md", "# comment", " ", "\\", "a\nb", "x" * 201])
def test_a_glob_that_cannot_choose_is_invalid(tree: Agent, glob: str) -> None:
    assert tree.refused("list", glob=glob) == "invalid_input"


def test_a_glob_with_two_dots_is_an_escape(tree: Agent) -> None:
    assert tree.refused("list", glob="../*") == "path_escape"


@pytest.mark.timeout(10)
def test_a_glob_of_many_stars_is_matched_at_once(agent: Agent) -> None:
    agent.ok("write", path="a" * 190, content="x")

    assert paths(agent.ok("list", glob="*a" * 90 + "b")) == []


def test_pages_together_are_the_listing(tree: Agent) -> None:
    whole = paths(tree.ok("list", recursive=True))

    found, cursor = [], None
    while True:
        page = tree.ok("list", recursive=True, limit=2, cursor=cursor)
        found += paths(page)
        cursor = page["nextCursor"]
        assert page["truncated"] == (cursor is not None)
        if cursor is None:
            break

    assert found == whole


def test_a_cursor_is_bound_to_its_question(tree: Agent) -> None:
    cursor = tree.ok("list", recursive=True, limit=2)["nextCursor"]

    assert tree.refused("list", recursive=False, limit=2, cursor=cursor) == "invalid_input"
    assert tree.refused("list", recursive=True, glob="*.md", cursor=cursor) == "invalid_input"
    assert tree.refused("list", recursive=True, path="docs", cursor=cursor) == "invalid_input"
    for foreign in ("", "a", "%%%", cursor[:-6], base64.urlsafe_b64encode(b"docs").decode()):
        assert tree.refused("list", recursive=True, cursor=foreign) in ("invalid_input",)


def test_without_a_workspace_nothing_is_claimed() -> None:
    unwired = SkillContext(caller=Caller(kind="run"))

    def ask(name: str, **arguments: Json) -> dict[str, Any]:
        result = REGISTRY.invoke(name, arguments, unwired)
        assert result.ok
        output: dict[str, Any] = result.output
        assert output["wired"] is False
        assert output["note"]
        return output

    assert ask("files.list")["entries"] == []
    assert ask("files.read", path="a.md")["content"] == ""
    assert ask("files.write", path="a.md", content="x") | {"note": ""} == {
        "path": "a.md",
        "bytes": 0,
        "sha256": None,
        "created": False,
        "previousSha256": None,
        "wired": False,
        "note": "",
    }
    assert ask("files.search", query="x")["matches"] == []


def test_a_write_that_waits_for_another_ends_with_the_time_of_the_call(agent: Agent) -> None:
    assert agent.context.workspace is not None
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        assert agent.context.workspace is not None
        with agent.context.workspace.lock("a.md"):
            held.set()
            release.wait(30)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(30)
    agent.context.time_left = 0.2
    try:
        assert agent.refused("write", path="a.md", content="x") == "conflict"
    finally:
        release.set()
        holder.join()
    assert not (agent.root / "a.md").exists()
