"""`officina knowledge`: files become findable, for one agent or for all."""

import json
from pathlib import Path

import docx
import pytest

from tests.commands import Run


def pdf(path: Path) -> None:
    from reportlab.pdfgen.canvas import Canvas

    page = Canvas(str(path))
    page.drawString(72, 720, "The kiosk sells postcards.")
    page.save()


def word(path: Path) -> None:
    made = docx.Document()
    made.add_heading("Harbour", level=2)
    made.add_paragraph("The lighthouse is closed on Mondays.")
    made.add_table(1, 2).rows[0].cells[1].text = "ferries"
    made.save(str(path))


@pytest.mark.slow
def test_files_of_every_kind_are_added_found_replaced_and_removed(officina: Run, tmp_path: Path) -> None:
    assert officina("knowledge").returncode == 1, "looking makes no database"
    (tmp_path / "a.md").write_text("# Gates\n\nThe zeppelin leaves from gate nine.")
    (tmp_path / "b.html").write_text("<html><title>Tides</title><body><p>High water is at noon.</p></body></html>")
    pdf(tmp_path / "c.pdf")
    word(tmp_path / "d.docx")

    added = officina("knowledge", "add", "a.md", "b.html", "c.pdf", "d.docx", "--json")
    assert added.returncode == 0, added.stderr
    assert [json.loads(line)["how"] for line in added.stdout.splitlines()] == ["added"] * 4
    for words, name in (("zeppelin", "a"), ("noon", "Tides"), ("postcards", None), ("ferries lighthouse", "d")):
        (first, *_) = json.loads(officina("knowledge", "search", words, "--json").stdout)
        assert first["score"] == 1.0 and (name is None or first["title"] == name), words
    assert "## Harbour" in json.loads(officina("knowledge", "search", "harbour", "--json").stdout)[0]["text"]

    (tmp_path / "a.md").write_text("The zeppelin leaves from gate ten.")
    assert " replaced " in officina("knowledge", "add", "a.md").stdout
    assert "gate ten" in officina("knowledge", "search", "zeppelin").stdout
    listed = json.loads(officina("knowledge", "list", "--json").stdout)
    assert len(listed) == 4 and all(one["agentId"] is None for one in listed)
    assert officina("knowledge", "remove", listed[0]["id"]).returncode == 0
    again = officina("knowledge", "remove", listed[0]["id"])
    assert again.returncode == 1 and "unknown_source" in again.stderr
    assert officina("knowledge", "search", "zeppelin").stdout == ""


@pytest.mark.slow
def test_a_file_of_one_agent_is_for_it_alone(officina: Run, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("The zeppelin leaves from gate nine.")
    assert officina("knowledge", "add", "a.md", "--agent", "nobody").returncode == 2
    assert officina("knowledge", "add", "a.md", "--agent", "researcher", "--owner").returncode == 2
    assert officina("knowledge", "add", "a.md", "--agent", "researcher").returncode == 0
    assert officina("knowledge", "search", "zeppelin").stdout == ""
    assert "gate nine" in officina("knowledge", "search", "zeppelin", "--agent", "researcher").stdout


@pytest.mark.slow
def test_a_file_that_cannot_be_read_is_named_and_the_others_are_added(officina: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.pdf").write_bytes(b"no pdf at all")
    (tmp_path / "bad.docx").write_bytes(b"PK no zip")
    (tmp_path / "bad.txt").write_bytes(b"\x00\x01\x02")
    (tmp_path / "bad.exe").write_bytes(b"MZ")
    (tmp_path / "good.txt").write_text("gate nine")
    names = ["bad.pdf", "bad.docx", "bad.txt", "bad.exe", "missing.md", "good.txt"]
    ended = officina("knowledge", "add", *names)
    assert ended.returncode == 1 and "Traceback" not in ended.stderr
    assert all(name in ended.stderr for name in names[:-1])
    assert ended.stdout.count("\n") == 1 and "good.txt" in ended.stdout
