"""Reviewing and installing plugins: judged whole, granted by hand, nothing half-installed (spec: skills 17)."""

import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator import plugins
from orchestrator.settings import Settings
from registry import archives
from registry.errors import OfficinaError, Refused, WrongUse
from tests.plugins import GREET, Workshop, manifest, skill, written


@pytest.fixture
def workshop(settings: Settings) -> Workshop:
    return Workshop(settings)


def codes(refused: pytest.ExceptionInfo[WrongUse]) -> set[str]:
    return {fault.code for fault in refused.value.faults}


def test_a_review_tells_facts_and_runs_nothing(tmp_path: Path) -> None:
    code = "import os\nraise SystemExit('ran')\n" + GREET
    found = plugins.review(written(tmp_path / "p", code, capabilities=["net:api.example.com", "llm"]))

    assert (found["id"], found["capabilities"]) == ("hello", ["net:api.example.com", "llm"])
    assert found["skills"] == [{"name": "hello.greet", "worldActing": True}]
    assert {one["path"] for one in found["files"]} == {"hello.py", "manifest.json"}
    assert [one["what"] for one in found["findings"]] == ["imports os: reaches the operating system"]


def test_it_is_stored_with_its_hashes_and_the_grant_a_person_wrote(workshop: Workshop, tmp_path: Path) -> None:
    made = workshop.install(written(tmp_path / "p", capabilities=["llm", "memory"]), "llm")

    assert (made["status"], made["granted"], made["capabilities"]) == ("enabled", ["llm"], ["llm", "memory"])
    assert (workshop.folder / "hello.py").read_text() == GREET
    assert plugins.listed(workshop.settings) == [made]
    assert plugins.enabled(workshop.settings, "local")["hello"].tools == {"hello.greet"}
    assert plugins.enabled(workshop.settings, "bob") == {}


@pytest.mark.parametrize("shape", ["folder", "zip", "wrapped", "tar", "tar.gz"])
def test_a_folder_and_every_kind_of_archive_are_the_same_plugin(tmp_path: Path, shape: str) -> None:
    folder = written(tmp_path / "p", files={"docs/notes.md": "# Notes\n"})
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "hello.cpython.pyc").write_bytes(b"\0")
    packed = tmp_path / f"hello.{shape}"
    if shape in ("zip", "wrapped"):
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as out:
            for file in sorted(folder.rglob("*")):
                out.write(file, ("hello-1.0/" if shape == "wrapped" else "") + str(file.relative_to(folder)))
    elif shape != "folder":
        with tarfile.open(packed, "w:gz" if shape == "tar.gz" else "w") as tar:
            tar.add(folder, "hello")
    found = archives.read(folder if shape == "folder" else packed)

    assert found.digest == archives.read(folder).digest
    assert set(found.files) == {"hello.py", "manifest.json", "docs/notes.md"}


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"skills": [skill("other.greet")]}, "invalid_value"),
        ({"skills": [skill("hello.wave")]}, "no_function"),
        ({"skills": [skill(), skill()]}, "invalid_value"),
        ({"skills": [skill(inputSchema={"type": "array"})]}, "invalid_schema"),
        ({"skills": [skill(inputSchema={"type": "object", "$ref": "http://x/y"})]}, "invalid_schema"),
        ({"id": "files"}, "invalid_value"),
        ({"id": "../up"}, "invalid_value"),
        ({"capabilities": ["everything"]}, "invalid_value"),
        ({"capabilities": ["net:*"]}, "invalid_value"),
        ({"granted": ["llm"]}, "invalid_value"),
        ({"entry": "gone.py"}, "missing"),
        ({"entry": "../hello.py"}, "missing"),
        ({"minApi": 2}, "too_new"),
        ({"hooks": ["guard"]}, "no_function"),
        ({"skills": []}, "invalid_value"),
        ({"surprise": 1}, "unknown_field"),
        ({"agents": [{"id": "ada", "name": "A", "instructions": "x"}]}, "foreign_name"),
        ({"agents": [{"id": "hello-a", "name": "A", "instructions": "x", "beingId": "ansel-brook"}]}, "not_allowed"),
    ],
)
def test_what_does_not_hold_together_is_refused_by_name(tmp_path: Path, fields: dict[str, Any], code: str) -> None:
    with pytest.raises(WrongUse, match="cannot be installed") as refused:
        archives.read(written(tmp_path / "p", **fields))
    assert refused.value.code == "plugin_invalid" and refused.value.faults[0].path
    assert code in codes(refused) or code == "invalid_value", codes(refused)


def test_a_grant_of_what_is_not_asked_for_is_refused(workshop: Workshop, tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="nothing that hello asks for"):
        workshop.install(written(tmp_path / "p", capabilities=["llm"]), "llm", "files:write")
    assert plugins.listed(workshop.settings) == []


def test_other_files_than_those_that_were_reviewed_are_refused(workshop: Workshop, tmp_path: Path) -> None:
    seen = plugins.review(written(tmp_path / "p"))["digest"]
    written(tmp_path / "p", GREET + "\n# more\n")
    with pytest.raises(Refused, match="not the files that were reviewed"):
        workshop.install(tmp_path / "p", expect=seen)


def zipped(path: Path, entries: Callable[[zipfile.ZipFile], None]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("manifest.json", json.dumps(manifest()))
        out.writestr("hello.py", GREET)
        entries(out)
    return path


def linked(name: str, target: str) -> Callable[[zipfile.ZipFile], None]:
    def entry(out: zipfile.ZipFile) -> None:
        about = zipfile.ZipInfo(name)
        about.external_attr = 0o120777 << 16
        out.writestr(about, target)

    return entry


@pytest.mark.parametrize(
    "entries",
    [
        lambda out: out.writestr("../outside.py", "x"),
        lambda out: out.writestr("/etc/cron.d/job.txt", "x"),
        lambda out: out.writestr("a/../../outside.py", "x"),
        lambda out: out.writestr("a\\..\\outside.py", "x"),
        lambda out: out.writestr("C:/outside.py", "x"),
        linked("notes.md", "/etc/passwd"),
        lambda out: out.writestr("HELLO.py", "x"),
        lambda out: out.writestr("native.so", "x"),
        lambda out: out.writestr("latin.txt", b"\xff\xfe"),
        lambda out: out.writestr("nul.txt", "a\0b"),
        lambda out: out.writestr("\u202eyp.exe.py", "x"),
        lambda out: out.writestr("bomb.txt", "0" * 100_000_000),
        lambda out: [out.writestr(f"{n}.txt", "0" * 400_000) for n in range(50)],
        lambda out: [out.writestr(f"{n}.txt", "") for n in range(2_000)],
    ],
)
def test_an_archive_that_leads_elsewhere_or_unpacks_without_end_is_refused(
    workshop: Workshop, tmp_path: Path, entries: Callable[[zipfile.ZipFile], None]
) -> None:
    before = sorted(tmp_path.rglob("outside*"))
    packed = zipped(tmp_path / "p.zip", entries)
    with pytest.raises(WrongUse, match="cannot be installed"):
        workshop.install(packed)
    assert plugins.listed(workshop.settings) == [] and sorted(tmp_path.rglob("outside*")) == before


@pytest.mark.parametrize("kind", ["symlink", "hardlink", "device", "bomb", "pax", "noise", "encrypted"])
def test_a_tar_with_links_devices_or_bombs_is_refused(tmp_path: Path, kind: str) -> None:
    packed = tmp_path / "p.tar.gz"
    with tarfile.open(packed, "w:gz", format=tarfile.PAX_FORMAT) as tar:
        about = tarfile.TarInfo("hello.py")
        about.size = len(GREET)
        tar.addfile(about, io.BytesIO(GREET.encode()))
        odd = tarfile.TarInfo("odd.txt")
        if kind in ("symlink", "hardlink"):
            odd.type, odd.linkname = (tarfile.SYMTYPE if kind == "symlink" else tarfile.LNKTYPE), "/etc/passwd"
        elif kind == "device":
            odd.type = tarfile.CHRTYPE
        elif kind == "pax":
            odd.pax_headers = {"comment": "x" * 30_000_000}
        elif kind == "bomb":
            odd.size = 60_000_000
        tar.addfile(odd, io.BytesIO(b"0" * odd.size))
    if kind == "noise":
        packed.write_bytes(packed.read_bytes()[:200])
    with pytest.raises(WrongUse, match="cannot be installed"):
        archives.read(packed)


@pytest.mark.parametrize("kind", ["symlink", "hardlink", "fifo", "folder"])
def test_a_folder_with_links_is_refused(tmp_path: Path, kind: str) -> None:
    folder = written(tmp_path / "p")
    (tmp_path / "secret.txt").write_text("secret")
    if kind == "symlink":
        (folder / "notes.md").symlink_to(tmp_path / "secret.txt")
    elif kind == "hardlink":
        os.link(tmp_path / "secret.txt", folder / "notes.md")
    elif kind == "fifo":
        os.mkfifo(folder / "notes.md")
    else:
        (tmp_path / "elsewhere").mkdir()
        (folder / "docs").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(WrongUse, match=r"link|neither"):
        archives.read(folder)


def test_a_new_version_takes_the_old_ones_place_and_files_in_one_step(workshop: Workshop, tmp_path: Path) -> None:
    workshop.install(written(tmp_path / "p", capabilities=["llm"]), "llm")
    old = workshop.folder
    made = workshop.install(written(tmp_path / "p", version="1.1.0", capabilities=["memory"]))

    assert (made["version"], made["granted"]) == ("1.1.0", []), "a grant is never carried over"
    assert workshop.folder.exists() and not old.exists()
    plugins.remove(workshop.settings, "hello")
    assert [one.name for one in plugins.folder(workshop.settings).iterdir()] == [".lock"]
    with pytest.raises(Refused, match="no plugin"):
        plugins.remove(workshop.settings, "hello")


KILLED = """
import os, signal, sys
from pathlib import Path
from orchestrator import plugins
from orchestrator.store import plugins as moves
from tests.plugins import TAKEN
from orchestrator.settings import Settings
home, url, source, point, nth = sys.argv[1:]
hits = 0
def dying(real):
    def call(*args, **options):
        global hits
        hits += 1
        if hits == int(nth):
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **options)
    return call
where = {"fsync": (os, "fsync"), "rename": (Path, "rename"), "save": (moves, "save"), "sweep": (plugins, "_sweep")}
holder, name = where[point]
setattr(holder, name, dying(getattr(holder, name)))
plugins.install(Settings(home=home, database_url=url, _env_file=None), Path(source), [], taken=TAKEN)
"""


@pytest.mark.parametrize(("point", "nth"), [("fsync", 1), ("fsync", 2), ("rename", 1), ("save", 1), ("sweep", 1)])
def test_killed_in_the_middle_it_is_installed_whole_or_not_at_all(
    workshop: Workshop, settings: Settings, tmp_path: Path, point: str, nth: int
) -> None:
    workshop.install(written(tmp_path / "p"))
    before = plugins.listed(workshop.settings)
    written(tmp_path / "p", version="2.0.0")
    words = [sys.executable, "-c", KILLED, str(settings.home), str(settings.database_url), str(tmp_path / "p")]
    died = subprocess.run([*words, point, str(nth)], cwd=Path(__file__).parents[3], timeout=60, check=False)

    assert died.returncode == -signal.SIGKILL
    (after,) = plugins.listed(workshop.settings)
    assert after == before[0] if point != "sweep" else (after["version"], after["status"]) == ("2.0.0", "enabled")
    assert workshop.install(tmp_path / "p")["version"] == "2.0.0"
    assert len([one for one in plugins.folder(workshop.settings).iterdir() if one.is_dir()]) == 1, "nothing is left"


def test_what_changed_after_it_was_installed_is_disabled_and_stays_so_until_it_is_right_again(
    workshop: Workshop, tmp_path: Path
) -> None:
    workshop.install(written(tmp_path / "p"))
    (workshop.folder / "extra.py").write_text("x = 1\n")
    (seen,) = plugins.listed(workshop.settings)
    assert seen["status"] == "disabled" and "extra.py" in seen["reason"]
    assert plugins.enabled(workshop.settings, "local") == {}
    with pytest.raises(Refused, match="review and install it anew"):
        plugins.enable(workshop.settings, "hello")
    (workshop.folder / "extra.py").unlink()
    assert plugins.enable(workshop.settings, "hello")["status"] == "enabled"


def test_one_owners_plugin_is_not_there_for_another(workshop: Workshop, tmp_path: Path) -> None:
    workshop.install(written(tmp_path / "p"))
    other = workshop.settings.model_copy(update={"owner": "bob"})
    for move in (plugins.one, plugins.disable, plugins.enable, plugins.remove):
        with pytest.raises(OfficinaError, match="no plugin"):
            move(other, "hello")
    plugins.install(other, tmp_path / "p", [], taken=frozenset())
    plugins.remove(other, "hello")
    assert plugins.listed(workshop.settings)[0]["status"] == "enabled", "files they share are not taken away"


def test_a_tools_name_that_is_taken_is_refused(workshop: Workshop, tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="there is a tool called"):
        plugins.install(workshop.settings, written(tmp_path / "p"), [], taken=frozenset({"hello__greet"}))
