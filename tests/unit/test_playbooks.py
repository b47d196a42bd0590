"""Playbooks: which files become documents, which root wins, and what is left out (spec: engine 17)."""

import json
import os
import re
from pathlib import Path

import pytest

from orchestrator.known import playbooks, registries
from orchestrator.settings import Settings
from orchestrator.workspaces.jail import JailedWorkspace
from registry import playbooks as module
from registry.errors import SkillError
from registry.graph.validation import validate
from registry.playbooks import SHIPPED, Library, of_json, scan
from registry.presets import load

BODY = "Measure twice, cut once.\n"


def put(root: Path, name: str = "joinery", *, folder: str | None = None, body: str = BODY, **head: str) -> Path:
    """A document in a root; its folder."""
    made = root / (folder or name)
    made.mkdir(parents=True, exist_ok=True)
    lines = {"name": name, "description": f"About {name}.", **head}
    front = "".join(f"{key}: {value}\n" for key, value in lines.items() if value)
    (made / "SKILL.md").write_text(f"---\n{front}---\n{body}", encoding="utf-8")
    return made


def codes(found: module.Playbooks) -> list[str]:
    return [fault.code for fault in found.faults]


def test_a_folder_with_a_skill_file_is_a_document(tmp_path: Path) -> None:
    folder = put(tmp_path, when_to_use="Before you\n  saw.", license="MIT")
    (folder / "tables").mkdir()
    (folder / "tables" / "woods.md").write_text("oak")
    (folder / ".hidden").write_text("no")
    (tmp_path / "flat.md").write_text("---\nname: flat\ndescription: x\n---\nbody")
    (tmp_path / "empty").mkdir()

    found = scan([tmp_path, tmp_path / "nowhere"])

    assert list(found) == ["joinery"] and found.faults == ()
    book = found["joinery"]
    assert (book.description, book.when_to_use, book.instructions) == ("About joinery.", "Before you saw.", BODY)
    assert book.files == {"tables/woods.md": "oak"} and book.path == folder
    assert of_json(json.loads(json.dumps(book.to_json()))) == book


def test_the_later_root_wins_by_name_and_only_there(tmp_path: Path) -> None:
    put(tmp_path / "a", body="old")
    put(tmp_path / "a", "other")
    put(tmp_path / "b", folder="another-folder", body="new")
    put(tmp_path / "b", folder="twin", body="second")

    found = scan([tmp_path / "a", tmp_path / "b"])

    assert found["joinery"].instructions == "new\n" and "other" in found
    assert codes(found) == ["name_twice"] and found.faults[0].path.endswith("twin")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("no front matter", "front_matter"),
        ("---\nname: a\ndescription: b\n", "front_matter"),
        ("---\n- a\n---\nbody", "front_matter"),
        ("---\nname: *x\n---\nbody", "front_matter"),
        ("---\nname: a: b\n---\nbody", "front_matter"),
        ("---\nname: !!python/object:os.system a\ndescription: b\n---\nbody", "front_matter"),
        ("---\ndescription: b\n---\nbody", "name_required"),
        ("---\nname: Has Blanks\ndescription: b\n---\nbody", "name_required"),
        ("---\nname: web.search\ndescription: b\n---\nbody", "name_required"),
        ("---\nname: ../up\ndescription: b\n---\nbody", "name_required"),
        ("---\nname: 12\ndescription: b\n---\nbody", "name_required"),
        (f"---\nname: {'a' * 65}\ndescription: b\n---\nbody", "name_required"),
        ("---\nname: a\n---\nbody", "description_required"),
        ("---\nname: a\ndescription: '  '\n---\nbody", "description_required"),
        ("---\nname: a\ndescription: [b]\n---\nbody", "front_matter"),
        ("---\nname: a\ndescription: b\nwhen_to_use: {c: d}\n---\nbody", "front_matter"),
        (f"---\nname: a\ndescription: {'b' * 1025}\n---\nbody", "front_matter"),
        ("---\nname: a\ndescription: b\n---\n  \n", "body_required"),
        ("---\nname: a\ndescription: b\n---\na\0b", "not_text"),
        (b"---\nname: a\ndescription: b\n---\n\xff", "not_text"),
        (b"---\nname: a\ndescription: b\n---\n" + b"x" * module.MAX_FILE, "too_large"),
    ],
)
def test_a_bad_file_is_left_out_with_its_reason_and_hides_no_other(
    tmp_path: Path, text: str | bytes, code: str
) -> None:
    put(tmp_path, "good")
    (tmp_path / "bad").mkdir()
    content = text if isinstance(text, bytes) else text.encode()
    (tmp_path / "bad" / "SKILL.md").write_bytes(content)

    found = scan([tmp_path])

    assert list(found) == ["good"] and codes(found) == [code]
    assert found.faults[0].path.endswith("bad/SKILL.md")


def test_links_pipes_and_folders_in_the_place_of_files_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "secret"
    outside.write_text("---\nname: spy\ndescription: x\n---\nsecret")
    root = tmp_path / "root"
    for name in ("linked", "piped", "foldered"):
        (root / name).mkdir(parents=True)
    (root / "linked" / "SKILL.md").symlink_to(outside)
    os.mkfifo(root / "piped" / "SKILL.md")
    (root / "foldered" / "SKILL.md").mkdir()
    put(tmp_path / "elsewhere", "moved")
    (root / "moved").symlink_to(tmp_path / "elsewhere" / "moved")
    kept = put(root, "kept")
    (kept / "link.md").symlink_to(outside)
    (kept / "up").symlink_to(tmp_path)
    os.mkfifo(kept / "pipe.md")

    found = scan([root])

    assert list(found) == ["kept"] and found["kept"].files == {}
    assert sorted(codes(found)) == ["link", "link", "link", "link", "unreadable", "unreadable", "unreadable"]
    assert "secret" not in str(found["kept"].to_json())


def test_supporting_files_are_texts_and_no_more_than_two_hundred(tmp_path: Path) -> None:
    folder = put(tmp_path)
    for number in range(205):
        (folder / f"{number:03}.md").write_text("x")
    (folder / "000.bin").write_bytes(b"\0\xff")
    (folder / "001.big").write_bytes(b"x" * (module.MAX_FILE + 1))

    found = scan([tmp_path])

    assert len(found["joinery"].files) == 200 and "204.md" not in found["joinery"].files
    assert codes(found) == ["not_text", "too_large", "too_many"]


def test_a_library_reads_again_what_was_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REST_S", 0)
    library = Library([tmp_path])
    assert len(library.current()) == 0

    folder = put(tmp_path)
    first = library.current()
    assert library.current() is first and "joinery" in first

    put(tmp_path, body="Cut once, measure never, and be quick.\n")
    assert library.current()["joinery"].instructions.startswith("Cut once") and first["joinery"].instructions == BODY
    (folder / "more.md").write_text("more")
    assert library.current()["joinery"].files == {"more.md": "more"}
    (folder / "SKILL.md").unlink()
    assert len(library.current()) == 0


def test_a_library_rests_between_looks(tmp_path: Path) -> None:
    library = Library([tmp_path])
    library.current()
    put(tmp_path)
    assert len(library.current()) == 0


def test_the_roots_of_an_installation_in_their_order(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home", skills_root=tmp_path / "own", _env_file=None)
    place = tmp_path / "work"
    for root in (tmp_path / "own", tmp_path / "home" / "skills", place / ".officina" / "skills"):
        put(root, body=f"{root}")
        put(root, root.parent.name.strip(".") + "-only" if root.name == "skills" else "own-only")

    assert playbooks(settings)["joinery"].instructions.strip() == str(tmp_path / "home" / "skills")
    assert playbooks(settings, place)["joinery"].instructions.strip() == str(place / ".officina" / "skills")
    assert {"own-only", "home-only", "officina-only", "workspace-ops"} <= playbooks(settings, place).names
    assert "officina-only" not in (registries(settings).documents or ())
    assert registries(settings).documents == playbooks(settings).names


@pytest.mark.parametrize("path", [".officina/skills/x/SKILL.md", ".Officina/skills/x/SKILL.md", ".officina/mcp.json"])
def test_no_file_tool_writes_where_people_keep_documents_and_servers(tmp_path: Path, path: str) -> None:
    workspace = JailedWorkspace(tmp_path)
    for write in (
        lambda: workspace.write(path, b"x", max_bytes=10),
        lambda: workspace.write_tree(path.rpartition("/")[0], {"x": b"x"}),
        lambda: workspace.write_tree("a", {f"../{path}": b"x"}),
    ):
        with pytest.raises(SkillError) as refused:
            write()
        assert refused.value.code == "path_escape"
    assert not (tmp_path / ".officina").exists() or not (tmp_path / ".officina" / "skills").exists()


SHIPS = scan([SHIPPED])


def test_the_documents_that_ship_are_whole() -> None:
    assert SHIPS.faults == ()
    assert {"workspace-ops", "agent-creator", "research-notes", "review-a-deliverable", "plan-and-delegate"} == set(
        SHIPS
    )
    for name, book in SHIPS.items():
        assert book.shipped and book.path is not None and book.path.name == name
        assert book.when_to_use and len(book.instructions) < 12_000


def test_every_document_a_preset_names_is_there() -> None:
    named = {
        name for preset in load([module.SHIPPED.parents[1] / "presets"]).values() for name in preset.agent.documents
    }
    assert named == {"workspace-ops"} and named <= set(SHIPS)


EXAMPLES = re.findall(r"^```json agent\n(.*?)^```", SHIPS["agent-creator"].instructions, re.DOTALL | re.MULTILINE)
PRESETS = re.findall(r"^```json preset\n(.*?)^```", SHIPS["agent-creator"].instructions, re.DOTALL | re.MULTILINE)
FILES = [text for path, text in SHIPS["agent-creator"].files.items() if path.endswith(".json")]


@pytest.mark.parametrize("text", [*EXAMPLES, *FILES])
def test_every_agent_the_agent_creator_shows_is_valid(text: str) -> None:
    findings = validate(json.loads(text))
    assert [f for f in findings if f.severity == "error"] == []


def test_every_preset_the_agent_creator_shows_can_be_read(tmp_path: Path) -> None:
    assert len(EXAMPLES) >= 3 and len(PRESETS) >= 1 and len(FILES) >= 1
    for number, text in enumerate(PRESETS):
        (tmp_path / f"p{number}.json").write_text(text)
    found = load([tmp_path])
    assert found.faults == () and len(found) == len(PRESETS)
