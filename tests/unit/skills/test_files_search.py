"""`files.search`: lines found by text or pattern, in linear time (spec: skills 7.9)."""

import os
import re
import time
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


class Desk:
    """A workspace, and searches in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.context = SkillContext(caller=Caller(kind="run"), workspace=JailedWorkspace(root))

    def put(self, path: str, content: str | bytes) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())

    def call(self, **arguments: Json) -> SkillResult:
        return REGISTRY.invoke("files.search", arguments, self.context)

    def search(self, **arguments: Json) -> dict[str, Any]:
        result = self.call(**arguments)
        assert result.ok, (result.code, result.error)
        output: dict[str, Any] = result.output
        return output

    def places(self, **arguments: Json) -> list[tuple[str, int, int]]:
        return [(m["path"], m["line"], m["column"]) for m in self.search(**arguments)["matches"]]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "project")


def test_matches_come_by_path_and_line_with_columns_in_characters(desk: Desk) -> None:
    desk.put("b.md", "nothing\nthe Übermäßig rain\n")
    desk.put("a.md", "rain\nsun\nétéé rain, rain again")

    assert desk.places(query="rain") == [("a.md", 1, 1), ("a.md", 3, 6), ("b.md", 2, 15)]


def test_case_is_ignored_unless_asked(desk: Desk) -> None:
    desk.put("a.md", "RAIN\nÄrger\n")

    assert desk.places(query="rain") == [("a.md", 1, 1)]
    assert desk.places(query="äRGER") == [("a.md", 2, 1)]
    assert desk.places(query="rain", caseSensitive=True) == []


def test_a_text_is_no_pattern(desk: Desk) -> None:
    desk.put("a.md", "axb\na.b\n$x^ (\n")

    assert desk.places(query="a.b") == [("a.md", 2, 1)]
    assert desk.places(query="$x^ (") == [("a.md", 3, 1)]
    assert desk.places(query="a.b", regex=True) == [("a.md", 1, 1), ("a.md", 2, 1)]


def test_patterns_see_one_line_at_a_time(desk: Desk) -> None:
    desk.put("a.md", "one\ntwo\r\n\nthree")

    assert desk.places(query="^t", regex=True) == [("a.md", 2, 1), ("a.md", 4, 1)]
    assert desk.places(query="[eo]$", regex=True) == [("a.md", 1, 3), ("a.md", 2, 3), ("a.md", 4, 5)]
    assert desk.places(query="^$", regex=True) == [("a.md", 3, 1)]
    assert desk.places(query="one[^x]+two", regex=True) == []
    assert desk.places(query="(?s)one.*three", regex=True) == []


def test_context_lines_stop_at_the_ends(desk: Desk) -> None:
    desk.put("a.md", "1\n2\n3\n4\n5\n")

    first, middle, last = (desk.search(query=q, contextLines=2)["matches"][0] for q in "135")
    assert (first["before"], first["after"]) == ([], ["2", "3"])
    assert (middle["before"], middle["after"]) == (["1", "2"], ["4", "5"])
    assert (last["before"], last["after"]) == (["3", "4"], [])


def test_long_lines_are_cut_to_show_the_match(desk: Desk) -> None:
    desk.put("a.md", "é" * 5000 + "needle" + "x" * 5000)

    match = desk.search(query="needle", contextLines=1)["matches"][0]
    assert match["column"] == 5001
    assert len(match["text"]) == 300
    assert "needle" in match["text"]


def test_binary_and_large_files_are_skipped_and_counted(desk: Desk) -> None:
    desk.put("a.md", "rain")
    desk.put("latin1.txt", "Grün rain".encode("latin-1"))
    desk.put("nul.bin", b"rain\0")
    desk.put("large.txt", b"rain\n" * 500_000)

    found = desk.search(query="rain")
    assert [m["path"] for m in found["matches"]] == ["a.md"]
    assert (found["filesScanned"], found["filesSkipped"]) == (1, 3)


def test_links_pipes_and_our_own_folder_are_left_alone(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_text("rain")
    (desk.root / "link").symlink_to(tmp_path / "outside.txt")
    (desk.root / "folder").symlink_to(tmp_path)
    os.link(tmp_path / "outside.txt", desk.root / "hard")
    os.mkfifo(desk.root / "pipe")
    assert isinstance(desk.context.workspace, JailedWorkspace)
    desk.context.workspace.write_output("run", "call", "rain")

    assert desk.places(query="rain") == []


def test_folder_glob_and_limit_narrow_the_search(desk: Desk) -> None:
    for path in ("a.md", "a.txt", "docs/b.md", "docs/c.md"):
        desk.put(path, "rain\n" * 3)

    assert {p for p, _, _ in desk.places(query="rain", path="docs")} == {"docs/b.md", "docs/c.md"}
    assert {p for p, _, _ in desk.places(query="rain", glob="/*.md")} == {"a.md"}
    some = desk.search(query="rain", limit=4)
    assert (len(some["matches"]), some["truncated"]) == (4, True)
    exact = desk.search(query="rain", glob="/a.md", limit=3)
    assert (len(exact["matches"]), exact["truncated"]) == (3, False)


@pytest.mark.parametrize(
    "query",
    ["(?=a)b", "(?<!a)b", "(a)\\1", "(", "a{5000}", "[", "*", "(?P<x", "((a{100}){10}){10}", "(?:\\pL{30}){20}"],
)
def test_what_the_linear_engine_cannot_do_is_invalid(desk: Desk, query: str, capfd: pytest.CaptureFixture[str]) -> None:
    desk.put("a.md", "aab")

    result = desk.call(query=query, regex=True)

    assert result.code == "invalid_input"
    assert (result.error or "").startswith("query: ")
    assert capfd.readouterr().err == "", "the engine must not write to the terminal"


@pytest.mark.parametrize(
    "arguments",
    [
        {"query": ""},
        {"query": "x" * 201},
        {"query": "a\nb"},
        {"query": "a", "limit": 0},
        {"query": "a", "limit": 201},
        {"query": "a", "contextLines": 6},
        {"query": "a", "regex": "yes"},
    ],
)
def test_bad_searches_are_invalid(desk: Desk, arguments: dict[str, Json]) -> None:
    assert desk.call(**arguments).code == "invalid_input"


@pytest.mark.timeout(30)
@pytest.mark.parametrize("query", ["^(a+)+$", "(a|aa)+$", "([ab]*a){20}c", "[ab]*a[ab]{900}c", "(.{900}){5}"])
def test_a_hostile_pattern_ends_in_time(desk: Desk, query: str) -> None:
    desk.put("a.md", ("ab" * 40 + "a" * 5000 + "!\n") * 200)
    started = time.monotonic()

    result = desk.call(query=query, regex=True)

    assert result.ok or result.code in ("timeout", "invalid_input")
    assert time.monotonic() - started < 8


def test_a_cancelled_search_stops(desk: Desk) -> None:
    desk.put("a.md", "rain")
    desk.context.cancelled = lambda: True

    assert desk.call(query="rain").code == "cancelled"


TEXT = st.text(st.sampled_from("ab\n\ré "), max_size=40)


@given(text=TEXT, query=st.text(st.sampled_from("abé "), min_size=1, max_size=2))
def test_every_line_that_holds_the_text_is_found(
    tmp_path_factory: pytest.TempPathFactory, text: str, query: str
) -> None:
    desk = Desk(tmp_path_factory.mktemp("project"))
    desk.put("a.txt", text)

    lines = text.replace("\r\n", "\n").split("\n")
    expected = [("a.txt", n, line.find(query) + 1) for n, line in enumerate(lines, 1) if query in line]

    assert desk.places(query=query, caseSensitive=True) == expected
    assert desk.places(query=re.escape(query), regex=True, caseSensitive=True) == expected
