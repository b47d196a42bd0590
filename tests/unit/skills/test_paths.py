"""Workspace paths: what is stored, what leads out, what is merely a bad name (spec: skills 5)."""

import hashlib
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from registry.base import Model
from registry.errors import SkillError
from registry.skills.context import Caller, SkillContext
from registry.skills.contract import ModelContract
from registry.skills.image import generate
from registry.skills.paths import (
    WorkspaceFolder,
    WorkspaceGlob,
    WorkspacePath,
    judge_glob,
    normalise,
    slug,
)
from registry.skills.registry import SkillRegistry
from registry.skills.scene3d import create


def refusal(path: str, *, folder: bool = False) -> str:
    with pytest.raises(SkillError) as caught:
        normalise(path, folder=folder)
    assert caught.value.message
    return caught.value.code


@pytest.mark.parametrize(
    ("path", "stored"),
    [
        ("a.txt", "a.txt"),
        ("./a//b/./c.txt", "a/b/c.txt"),
        ("cafe\u0301.md", "café.md"),
        ("ﬁle.md", "ﬁle.md"),  # NFC, never NFKC: a ligature stays
        (".hidden/..x/a..b", ".hidden/..x/a..b"),
        ("a~b/~c", "a~b/~c"),
        ("notes: draft.md", "notes: draft.md"),
        ("x/officina", "x/officina"),
        ("日本/é 🎈.md", "日本/é 🎈.md"),
    ],
)
def test_a_good_path_has_one_stored_form(path: str, stored: str) -> None:
    assert normalise(path) == stored


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "//host/share",
        "..",
        "../x",
        "a/../b",
        "a/..",
        "a\\b",
        "..\\x",
        "C:",
        "c:/x",
        "./C:/x",
        "~",
        "~root/x",
        "./~/x",
        ".officina",
        ".officina/outputs/1",
        "a/.Officina-backup/x",
        ".OFFICINA.tmp",
        ".o\ufb03cina/x",  # a ligature that folds to "ffi"
        ".\u200bofficina/x",  # a format character some file systems pass over
        "../a\x00",  # leading out is said before a bad name is
    ],
)
def test_what_could_lead_out_is_an_escape(path: str) -> None:
    assert refusal(path) == "path_escape"
    assert refusal(path, folder=True) == "path_escape"


@pytest.mark.parametrize(
    "path",
    [
        "",
        "a\x00b",
        "a\nb",
        "a\x7f",
        "a\x85",
        "\u2028",
        "\u2029a",
        "\ufeffa",
        "a\u061c",
        "a\u200e",
        "a\u202e.txt",
        "a\u2066",
        "a\ufdd0",
        "a\uffff",
        "a\U0001fffe",
        "a\ud800",
        "a.",
        "a /b",
        "...",
        ".. ",
        " ",
        "x" * 201,
        "é" * 101,
        "/".join(["a"] * 13),
        "/".join(["x" * 170] * 4),
        "x" * 100_000,
    ],
)
def test_a_bad_name_is_invalid_input(path: str) -> None:
    assert refusal(path) == "invalid_input"
    assert refusal(path, folder=True) == "invalid_input"


def test_bounds_are_inclusive_and_count_bytes_of_the_stored_form() -> None:
    assert normalise("é" * 100) == "é" * 100
    assert normalise("e\u0301" * 100) == "é" * 100
    assert normalise("/".join(["a"] * 12))
    longest = "/".join(["x" * 170, "y" * 170, "z" * 170])
    assert len(longest) == 512
    assert normalise(longest) == longest
    assert refusal(longest + "z") == "invalid_input"


def test_only_a_folder_may_end_in_a_slash_or_be_the_workspace_itself() -> None:
    assert normalise("a/b/", folder=True) == "a/b"
    assert normalise(".", folder=True) == "."
    assert normalise("./", folder=True) == "."
    assert refusal("a/b/") == "invalid_input"
    assert refusal(".") == "invalid_input"
    assert refusal("./.") == "invalid_input"


SEGMENT_PIECES = st.sampled_from(
    ["a", "b.md", ".", "..", "", "~", "C:", "\\", ".officina", ".OFFICINA1", "e\u0301", "\x00", " ", "/", "\u202e", "ﬃ"]
)
NASTY = st.one_of(
    st.lists(SEGMENT_PIECES, max_size=16).map("/".join), st.lists(SEGMENT_PIECES, max_size=8).map("".join), st.text()
)


@given(NASTY, st.booleans())
def test_every_text_is_stored_safely_or_refused_with_one_of_two_codes(path: str, folder: bool) -> None:
    try:
        stored = normalise(path, folder=folder)
    except SkillError as error:
        assert error.code in ("path_escape", "invalid_input")
        return
    assert normalise(stored, folder=folder) == stored
    assert unicodedata.normalize("NFC", stored) == stored
    assert 0 < len(stored.encode()) <= 512
    parts = stored.split("/")
    assert len(parts) <= 12
    if stored != ".":
        assert not {"", ".", ".."} & set(parts)
    assert not re.search(r"[\\\x00-\x1f\x7f]", stored)
    assert not stored.startswith(("/", "~"))
    assert not any(part.lower().startswith(".officina") for part in parts)


@given(st.lists(st.text("abcXYZ019_-é", min_size=1, max_size=20), min_size=1, max_size=12))
def test_plain_words_joined_by_slashes_are_stored_as_they_are(parts: list[str]) -> None:
    path = "/".join(parts)

    assert normalise(path) == path
    assert normalise("./" + "//".join(parts)) == path


def test_a_pattern_may_not_climb() -> None:
    assert judge_glob("**/*.md") == "**/*.md"
    assert judge_glob("!a..b/[.]x") == "!a..b/[.]x"
    for glob in ("../*", "a/../*", "..", "\\../x", ".\\./x"):
        with pytest.raises(SkillError) as caught:
            judge_glob(glob)
        assert caught.value.code == "path_escape"
    for glob in ("x" * 201, "a\x00", "a\u202e"):
        with pytest.raises(SkillError) as caught:
            judge_glob(glob)
        assert caught.value.code == "invalid_input"


class Nested(Model):
    path: WorkspacePath


class Example(Model):
    path: WorkspacePath
    title: str = Field(default="x", max_length=3)
    folder: WorkspaceFolder = "."
    glob: WorkspaceGlob | None = None
    more: tuple[Nested, ...] = ()


def test_an_input_model_holds_the_stored_form() -> None:
    checked = ModelContract(Example).check({"path": "./cafe\u0301.md", "folder": "a//b/"})

    assert (checked.path, checked.folder) == ("café.md", "a/b")


@pytest.mark.parametrize(
    ("given_input", "code", "field"),
    [
        ({"path": "../x"}, "path_escape", "path"),
        ({"path": "a."}, "invalid_input", "path"),
        ({"path": ""}, "invalid_input", "path"),
        ({"path": 1}, "invalid_input", "path"),
        ({"path": "a", "folder": "/"}, "path_escape", "folder"),
        ({"path": "a", "glob": "../*"}, "path_escape", "glob"),
        ({"path": "a", "more": [{"path": "b"}, {"path": "~/c"}]}, "path_escape", "more[1].path"),
        ({"path": "../{reason}", "title": "long"}, "path_escape", "path"),
    ],
)
def test_the_contract_keeps_the_code_and_names_the_field(given_input: dict, code: str, field: str) -> None:
    with pytest.raises(SkillError) as caught:
        ModelContract(Example).check(given_input)

    assert caught.value.code == code
    assert field in [detail.path for detail in caught.value.details]


def test_the_schema_tells_the_model_what_a_path_is() -> None:
    schema = ModelContract(Example).schema

    assert schema["properties"]["path"]["type"] == "string"
    assert "relative" in schema["properties"]["path"]["description"]


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Weekly report", "weekly-report"),
        ("  Zażółć — GĘŚLĄ?! ", "zazoc-gesla"),
        ("a/../b\\c", "a-b-c"),
        ("Ⅷ ﬁne", "viii-fine"),
        ("x" * 59 + " tail", "x" * 59),
        ("日本", "doc-" + hashlib.sha256("日本".encode()).hexdigest()[:8]),
        ("!!!", "doc-" + hashlib.sha256(b"!!!").hexdigest()[:8]),
    ],
)
def test_a_title_makes_a_slug(title: str, name: str) -> None:
    assert slug(title) == name


@given(st.text())
def test_every_slug_is_a_good_file_name(title: str) -> None:
    name = slug(title)

    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)
    assert len(name) <= 60
    assert normalise(f"docs/{name}.md") == f"docs/{name}.md"
    assert slug(name) == name


@pytest.mark.parametrize(
    ("name", "more", "longest"),
    [
        ("image.generate", {"prompt": "a lake"}, 200 - len("-4.png")),
        ("scene3d.create", {"title": "A lake", "objects": [{"kind": "box"}]}, 200 - len(".json")),
    ],
)
def test_a_path_that_gets_an_ending_is_judged_with_it_before_anything_is_made(
    name: str, more: dict[str, object], longest: int
) -> None:
    registry, context = SkillRegistry([generate, create]), SkillContext(Caller("run"))
    assert registry.check(name, more | {"path": "a" * longest}, context).input.path == "a" * longest
    with pytest.raises(SkillError) as caught:
        registry.check(name, more | {"path": "a" * (longest + 1)}, context)
    assert (caught.value.code, caught.value.details[0].path) == ("invalid_input", "path")
    # The words are ours from the first one on, not the library's.
    assert caught.value.details[0].message.startswith("a segment of the path")


def test_the_words_of_a_validator_come_without_the_librarys_own() -> None:
    with pytest.raises(SkillError) as caught:
        SkillRegistry([create]).check("scene3d.create", {"title": "A lake"}, SkillContext(Caller("run")))
    assert caught.value.message == "the input: exactly one of objects and prompt says what is in the scene"
