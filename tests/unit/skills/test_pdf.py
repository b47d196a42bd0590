"""docs.write_pdf: what a reader extracts from the file, and what is refused (spec: skills 7.14)."""

import io
import time
from pathlib import Path
from typing import Any

import pypdf
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from orchestrator.workspaces.jail import JailedWorkspace
from registry.errors import SkillError
from registry.skills.context import Caller, Deadline, SkillContext
from registry.skills.docs import SKILLS
from registry.skills.papers.markdown import judged, parse
from registry.skills.papers.pdf import draw
from registry.skills.registry import SkillRegistry, SkillResult

REGISTRY = SkillRegistry(SKILLS)


class Desk:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workspace = JailedWorkspace(folder)
        self.events: list[tuple[str, dict[str, Any]]] = []

    def call(self, **arguments: Any) -> SkillResult:
        about = SkillContext(
            Caller("run", agent_name="Sol Anders"),
            workspace=self.workspace,
            emit=lambda kind, data: self.events.append((kind, data)),
        )
        return REGISTRY.invoke("docs.write_pdf", {"title": "A title", "markdown": "text"} | arguments, about)

    def pdf(self, markdown: str, **arguments: Any) -> tuple[pypdf.PdfReader, dict[str, Any]]:
        answer = self.call(markdown=markdown, **arguments)
        assert answer.ok, answer.error
        return pypdf.PdfReader(self.folder / answer.output["path"], strict=True), answer.output

    def text(self, markdown: str, **arguments: Any) -> str:
        reader, _ = self.pdf(markdown, **arguments)
        return "\n".join(page.extract_text() for page in reader.pages)

    def picture(self, path: str, kind: str = "PNG", mode: str = "RGB") -> None:
        content = io.BytesIO()
        Image.new(mode, (60, 40)).save(content, kind)
        self.workspace.write(path, content.getvalue(), max_bytes=10**7)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


WHOLE = """
## Second *level*

Plain **bold** *italic* ~~struck~~ `code` and a [link](https://example.com/a?b=1&c=2).

1. one
2. two
   - inner
     - deeper
3. three

- [x] done
- [ ] open

> quoted words

```python
def f(x):
    return x < 1 and x > 0
```

| Name | Value |
|------|------:|
| left | 10    |
| more | 20    |

---

With a note[^1].

[^1]: The note itself.
"""


def test_everything_is_there_to_be_read(desk: Desk) -> None:
    reader, told = desk.pdf(WHOLE)
    text = "\n".join(page.extract_text() for page in reader.pages)

    for words in (
        "A title",
        "Second level",
        "Plain bold italic struck code and a link",
        "1.",
        "three",
        "inner",
        "deeper",
        "☑",
        "☐",
        "quoted words",
        "return x < 1 and x > 0",
        "Name",
        "20",
        "The note itself.",
    ):
        assert words in text, words
    assert reader.metadata is not None
    assert (reader.metadata.title, reader.metadata.author) == ("A title", "Sol Anders")
    assert (told["pages"], told["tables"], told["images"], told["warnings"]) == (1, 1, 0, [])
    assert told["path"] == "docs/a-title.pdf" and told["words"] > 30 and told["paragraphs"] >= 10
    links = [a.get_object()["/A"]["/URI"] for a in reader.pages[0]["/Annots"]]
    assert links == ["https://example.com/a?b=1&c=2"]
    assert desk.events[0][1]["skill"] == "docs.write_pdf"


def test_the_same_text_gives_the_same_bytes(desk: Desk) -> None:
    first, second = desk.call(markdown=WHOLE).output, desk.call(markdown=WHOLE, path="docs/other").output

    assert first["sha256"] == second["sha256"]
    assert second["path"] == "docs/other.pdf"


def test_polish_and_greek_are_read_as_they_were_written(desk: Desk) -> None:
    assert "Zażółć gęślą jaźń — Ελλάδα — Жук ✓ ≤ → 𝐱"[:28] in desk.text("Zażółć gęślą jaźń — Ελλάδα — Жук ✓ ≤ →")


def test_what_the_font_lacks_is_replaced_and_told(desk: Desk) -> None:
    _, told = desk.pdf("Chinese 会议 and 🎉, and `代码`")

    assert told["warnings"] == [
        "characters that the font lacks were replaced by □: U+4EE3, U+4F1A, U+7801, U+8BAE, U+1F389"
    ]


def test_text_from_the_right_is_told(desk: Desk) -> None:
    assert "right to left" in desk.pdf("שלום")[1]["warnings"][0]


@pytest.mark.parametrize(
    "markdown",
    [
        '<font color="red">red</font> & <b>bold</b> &lt; &amp;',
        "<img src='http://127.0.0.1/x.png'/> <para>",
        "`<b>` <!-- comment --> <![CDATA[x]]>",
        "**</b></para> <i>** ]]> &#0; &#x1F;",
        "[</a>](https://example.com/'\"<>)",
    ],
)
def test_markup_in_a_text_is_text(desk: Desk, markdown: str) -> None:
    text = desk.text(markdown)

    assert "<" in text or "[" in text or "]]>" in text or "&" in text


def test_long_texts_take_pages_with_numbers(desk: Desk) -> None:
    reader, told = desk.pdf("\n\n".join(f"Paragraph {n} " + "word " * 80 for n in range(60)))

    assert told["pages"] == len(reader.pages) > 5
    assert [page.extract_text().split()[-1] for page in reader.pages[:3]] == ["1", "2", "3"]
    assert "Paragraph 59" in reader.pages[-1].extract_text()


def test_page_sizes(desk: Desk) -> None:
    for size, width in (("a4", 595), ("letter", 612)):
        reader, _ = desk.pdf("x", pageSize=size)
        assert round(reader.pages[0].mediabox.width) == width


def test_pictures_of_the_workspace_are_shown_and_others_become_words(desk: Desk) -> None:
    for path, kind, mode in (
        ("a.png", "PNG", "RGBA"),
        ("b.jpg", "JPEG", "RGB"),
        ("c.gif", "GIF", "P"),
        ("d.png", "PNG", "LA"),
    ):
        desk.picture(path, kind, mode)
    reader, told = desk.pdf(
        "![a](a.png) between ![b](b.jpg)\n\n![c](c.gif)\n\n![d](d.png)\n\n"
        "![away](https://example.com/x.png) ![none](none.png) ![data](data:image/png;base64,AAAA)\n\n"
        "| t |\n|---|\n| ![a](a.png) |\n"
    )

    assert told["images"] == 5
    assert len(reader.pages[0].images) == 3, "what looks the same is held once"
    text = reader.pages[0].extract_text()
    assert "between" in text and "away" in text and "none" in text
    assert len(told["warnings"]) == 3


def test_only_so_many_pictures_are_shown(desk: Desk) -> None:
    desk.picture("a.png")
    _, told = desk.pdf("\n\n".join("![a](a.png)" for _ in range(25)))

    assert told["images"] == 20
    assert any("first 20" in warning for warning in told["warnings"])


HARD = {
    "a word without end": "x" * 20_000,
    "a link without end": "https://example.com/" + "a" * 3_000,
    "a line of code without end": "```\n" + "y" * 20_000 + "\n```",
    "deep quotes": "> " * 30 + "deep",
    "deep lists": "\n".join("  " * n + "- x" for n in range(9)),
    "a cell higher than a page": "| a | b |\n|---|---|\n| " + "word " * 9_000 + " | x |",
    "thirty columns": "|" + "c|" * 30 + "\n|" + "-|" * 30 + "\n" + ("|" + "wide|" * 30 + "\n") * 40,
    "headings only": "\n".join(f"{'#' * (n % 6 + 1)} h{n}" for n in range(300)),
    "an empty list and an empty cell": "-\n-\n\n| |\n|-|\n| |\n",
    "a heading before a long table": "# h\n\n| a |\n|---|\n" + "| b |\n" * 500,
    "code of a thousand lines": "```\n" + "line\n" * 1_000 + "```",
}


@pytest.mark.parametrize("name", HARD)
def test_hard_texts_become_files_that_read(desk: Desk, name: str) -> None:
    reader, told = desk.pdf(HARD[name])

    assert told["pages"] == len(reader.pages) >= 1
    assert "".join(page.extract_text() for page in reader.pages).strip()


def test_a_large_table_is_drawn_in_time(desk: Desk) -> None:
    begun = time.monotonic()
    desk.pdf("|" + "c|" * 30 + "\n|" + "-|" * 30 + "\n" + ("|" + "word|" * 30 + "\n") * 500)
    assert time.monotonic() - begun < 25


def test_a_text_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    about = SkillContext(Caller("run"), deadline=Deadline(0.05))
    document = parse("\n\n".join(f"p{n}" for n in range(3_000)))
    with pytest.raises(SkillError, match="longer than it may"):
        draw(document, title="t", author="", page_size="a4", load=lambda _p: None, check=about.check)  # type: ignore[arg-type,return-value]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"title": ""}, "invalid_input"),
        ({"title": "x" * 201}, "invalid_input"),
        ({"markdown": " \n"}, "invalid_input"),
        ({"markdown": "x" * (512 * 1024 + 1)}, "invalid_input"),
        ({"pageSize": "a5"}, "invalid_input"),
        ({"path": "a.docx"}, "invalid_input"),
        ({"path": "../a.pdf"}, "path_escape"),
        ({"markdown": "a\n\n" * 20_001}, "too_large"),
        ({"markdown": "|" + "a|" * 31 + "\n|" + "-|" * 31}, "too_large"),
        ({"author": "x" * 101}, "invalid_input"),
    ],
)
def test_what_cannot_be_written_is_refused(desk: Desk, arguments: dict[str, Any], code: str) -> None:
    assert desk.call(**arguments).code == code
    assert desk.workspace.entries(".", recursive=True) == []


def test_a_file_that_is_there_is_kept_when_asked(desk: Desk) -> None:
    desk.call()
    before = (desk.folder / "docs/a-title.pdf").read_bytes()

    assert desk.call(markdown="other", overwrite=False).code == "conflict"
    assert (desk.folder / "docs/a-title.pdf").read_bytes() == before


def test_without_a_workspace_nothing_is_claimed() -> None:
    answer = REGISTRY.invoke("docs.write_pdf", {"title": "t", "markdown": "m"}, SkillContext(Caller("person")))

    assert answer.ok and (answer.output["wired"], answer.output["bytes"], answer.output["pages"]) == (False, 0, 0)


@settings(max_examples=60, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=400))
def test_any_text_becomes_a_file(text: str) -> None:
    made = draw(judged(parse(text)), title="t", author="a", page_size="a4", load=_nothing)
    assert len(pypdf.PdfReader(io.BytesIO(made.content)).pages) == made.pages


def _nothing(path: str) -> Any:
    raise SkillError("not_found", "none")
