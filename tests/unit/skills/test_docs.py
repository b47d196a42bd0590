"""docs.write_markdown and docs.write_docx: what is written, and what is refused (spec: skills 7.13, 7.14)."""

import hashlib
import io
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

import docx
import pytest
import yaml
from docx.enum.text import WD_ALIGN_PARAGRAPH
from docx.shared import Mm
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from orchestrator.workspaces.jail import JailedWorkspace
from registry.errors import SkillError
from registry.skills.context import Caller, SkillContext
from registry.skills.docs import SKILLS
from registry.skills.papers.blocks import Heading, plain
from registry.skills.papers.characters import cleaned
from registry.skills.papers.docx import draw
from registry.skills.papers.frontmatter import front_matter
from registry.skills.papers.markdown import judged, parse
from registry.skills.papers.outline import escape, title_line
from registry.skills.registry import SkillRegistry, SkillResult

REGISTRY = SkillRegistry(SKILLS)
BOTH = pytest.mark.parametrize("name", ["docs.write_markdown", "docs.write_docx"])


class Desk:
    """A workspace in a folder, the events that were written, and calls made by an agent."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workspace = JailedWorkspace(folder)
        self.events: list[tuple[str, dict[str, Any]]] = []

    def context(self, **changes: Any) -> SkillContext:
        return SkillContext(
            Caller("run", agent_name="Sol Anders"),
            workspace=self.workspace,
            emit=lambda kind, data: self.events.append((kind, data)),
            **changes,
        )

    def call(self, name: str, /, **arguments: Any) -> SkillResult:
        return REGISTRY.invoke(name, {"title": "T", "markdown": "text"} | arguments, self.context())

    def markdown(self, **arguments: Any) -> str:
        answer = self.call("docs.write_markdown", **arguments)
        assert answer.ok, answer.error
        return (self.folder / answer.output["path"]).read_bytes().decode()

    def docx(self, markdown: str, **arguments: Any) -> tuple[Any, dict[str, Any]]:
        answer = self.call("docs.write_docx", markdown=markdown, **arguments)
        assert answer.ok, answer.error
        return docx.Document(str(self.folder / answer.output["path"])), answer.output

    def picture(self, path: str, kind: str = "PNG", size: tuple[int, int] = (60, 40)) -> None:
        content = io.BytesIO()
        Image.new("RGB", size, "#336699").save(content, kind)
        self.workspace.write(path, content.getvalue(), max_bytes=10**7)

    def files(self) -> list[str]:
        return [entry.path for entry in self.workspace.entries(".", recursive=True) if entry.type == "file"]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


# Both


@BOTH
def test_a_document_is_named_after_its_title_and_told_to_the_trace(desk: Desk, name: str) -> None:
    extension = name.split("_")[1].replace("markdown", "md")

    output = desk.call(name, title="Weekly Report: Ünïts").output

    content = (desk.folder / output["path"]).read_bytes()
    assert output["path"] == f"docs/weekly-report-units.{extension}"
    assert (output["bytes"], output["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())
    assert desk.events == [
        ("file.written", {"path": output["path"], "bytes": len(content), "sha256": output["sha256"], "skill": name})
    ]


@BOTH
def test_the_extension_is_added_and_another_one_refused(desk: Desk, name: str) -> None:
    extension = name.split("_")[1].replace("markdown", "md")

    assert desk.call(name, path="a.b/report").output["path"] == f"a.b/report.{extension}"
    assert desk.call(name, path=f"./x//report.{extension}").output["path"] == f"x/report.{extension}"
    assert desk.call(name, path=f"R.{extension.upper()}").output["path"] == f"R.{extension.upper()}"
    refused = desk.call(name, path="report.txt")
    assert (refused.code, refused.details[0].path) == ("invalid_input", "path")
    assert desk.call(name, path="x" * 199).code == "invalid_input"


@BOTH
@pytest.mark.parametrize("path", ["../x", "/x", "a/../x", "~/x", "C:/x", ".officina/x", "a\\x"])
def test_a_path_that_leads_out_is_an_escape(desk: Desk, name: str, path: str) -> None:
    assert desk.call(name, path=path).code == "path_escape"
    assert desk.files() == []


@BOTH
def test_without_overwrite_a_file_that_is_there_stays(desk: Desk, name: str) -> None:
    first = desk.call(name, path="a", overwrite=False).output
    before = (desk.folder / first["path"]).read_bytes()
    desk.events.clear()

    refused = desk.call(name, path="a", overwrite=False, markdown="other")

    assert refused.code == "conflict"
    assert (desk.folder / first["path"]).read_bytes() == before
    assert desk.events == []
    assert desk.call(name, path="a", markdown="other").ok


@BOTH
def test_a_call_without_a_workspace_says_that_nothing_was_written(name: str) -> None:
    answer = REGISTRY.invoke(name, {"title": "T", "markdown": "x"}, SkillContext(Caller("person")))

    assert answer.ok
    assert answer.output["wired"] is False
    assert answer.output["note"]
    assert (answer.output["bytes"], answer.output["sha256"]) == (0, None)


@BOTH
@pytest.mark.parametrize(
    "arguments",
    [
        {"title": ""},
        {"title": "  "},
        {"title": "\ufffe"},
        {"title": "a\nb"},
        {"title": "a\x00"},
        {"title": "x" * 201},
        {"title": 1},
        {"markdown": ""},
        {"markdown": " \n\t\n"},
        {"markdown": "\x00\x01"},
        {"markdown": "x" * (512 * 1024 + 1)},
        {"markdown": "é" * (256 * 1024 + 1)},
        {"markdown": "\ud800"},
        {"overwrite": "yes"},
        {"path": ""},
        {"path": "a/"},
        {"approved": True},
    ],
)
def test_input_out_of_bounds_is_refused_and_nothing_written(desk: Desk, name: str, arguments: dict[str, Any]) -> None:
    answer = desk.call(name, **arguments)

    assert answer.code == "invalid_input"
    assert answer.error
    assert desk.files() == []


@BOTH
def test_the_longest_text_is_written(desk: Desk, name: str) -> None:
    assert desk.call(name, markdown="é " * (174_762) + "aa").ok


@BOTH
def test_a_text_made_to_take_forever_ends_with_a_timeout(desk: Desk, name: str) -> None:
    answer = REGISTRY.invoke(name, {"title": "T", "markdown": "![" * 250_000}, desk.context(time_left=0.5))

    assert (answer.code, desk.files()) == ("timeout", [])


@BOTH
def test_a_text_of_too_many_parts_is_too_large(desk: Desk, name: str) -> None:
    cells = "|" + "a|" * 29 + "\n|" + "-|" * 29 + "\n" + "|x\n" * 490 + "\n"

    assert desk.call(name, markdown=cells * 30).code == "too_large"
    assert desk.files() == []


@BOTH
def test_the_words_are_those_a_reader_sees(desk: Desk, name: str) -> None:
    text = (
        "Some **bold words**, [a link](https://example.com/long/path).\n\n- one\n- [ ] two\n\n|a|b|\n|-|-|\n|c|d e|\n"
    )

    assert desk.call(name, title="Two words", markdown=text).output["words"] == 2 + 5 + 2 + 5


def test_what_the_skills_say_of_themselves() -> None:
    for skill in SKILLS:
        definition = skill.definition()
        assert (definition["operations"], definition["timeoutS"]) == (["fs.write"], 30)
        is_pdf = skill.name == "docs.write_pdf"
        assert (definition["catalogued"], definition["documented"]) == (not is_pdf, not is_pdf)
        assert not definition["worldActing"]
        for overwrite, effect in ((True, "idempotent"), (False, "once")):
            checked = skill.input.check({"title": "T", "markdown": "x", "overwrite": overwrite})
            assert skill.effect_of(checked) == effect


# docs.write_markdown


def test_the_title_becomes_the_first_heading_unless_the_text_has_one(desk: Desk) -> None:
    assert desk.markdown(title=" Weekly report ", markdown="Hello.\n") == "# Weekly report\n\nHello.\n"
    assert desk.markdown(markdown="\n\n# Own\ntext") == "\n\n# Own\ntext"
    assert desk.markdown(markdown="Own\n===\n") == "Own\n===\n"
    assert desk.markdown(markdown="## Second\n") == "# T\n\n## Second\n"
    assert desk.markdown(markdown="text\n\n# Later\n") == "# T\n\ntext\n\n# Later\n"


def test_headings_are_listed_as_plain_text(desk: Desk) -> None:
    text = "Hello **team**.\n\n## Next `x` *y*\n\n> ### In [a](http://b) quote\n\n```\n# not one\n```\n"

    output = desk.call("docs.write_markdown", title="Weekly report", markdown=text).output

    assert output["headings"] == [
        {"level": 1, "text": "Weekly report"},
        {"level": 2, "text": "Next x y"},
        {"level": 3, "text": "In a quote"},
    ]


def test_the_text_stays_as_sent_but_for_control_characters(desk: Desk) -> None:
    text = "# A\r\n\r\nx\ty  \r\n<b>&#12;\x00\x1b[0m\x7f\x85\ufffe [l](javascript:x)   \n\n\n"
    kept = "# A\r\n\r\nx\ty  \r\n<b>&#12;[0m [l](javascript:x)   \n\n\n"

    output = desk.call("docs.write_markdown", markdown=text).output

    assert (desk.folder / output["path"]).read_bytes().decode() == kept
    assert output["warnings"] == ["5 control characters were removed"]


def test_a_table_of_contents_follows_the_title(desk: Desk) -> None:
    text = "Intro\n\n## One *a*\n\n#### Deep [x]\n\n## One *a*\n\n# T\n"

    written = desk.markdown(markdown=text, toc=True)

    links = "- [One a](#one-a)\n  - [Deep \\[x\\]](#deep-x)\n- [One a](#one-a-1)\n"
    assert written.startswith(f"# T\n\n{links}")
    assert written.endswith(f"- [T](#t-1)\n\n{text}")


def test_a_table_of_contents_follows_a_title_of_the_texts_own(desk: Desk) -> None:
    written = desk.markdown(markdown="\r\n# Own\r\n\r\ntext\r\n## Next\r\n", toc=True)

    assert written == "\r\n# Own\n\n- [Next](#next)\n\n\r\ntext\r\n## Next\r\n"
    assert desk.markdown(markdown="# Alone", toc=True) == "# Alone"


def test_front_matter_reads_back_as_what_was_given(desk: Desk) -> None:
    values = {
        "title": "No",
        "date": "2026-11-30",
        "time": "1:30",
        "number": "012",
        "exponent": "1e3",
        "colon": "a: b # c",
        "injected": "x\n---\nevil: true",
        "n": 3,
        "x": 1.5,
        "draft": True,
        "nothing": None,
        "yes": "on",
        "ä": "Zażółć 🎈",
    }

    written = desk.markdown(frontMatter=values)

    head, body = written.removeprefix("---\n").split("\n---\n\n", 1)
    assert yaml.safe_load(head) == values
    assert list(yaml.safe_load(head)) == list(values)
    assert body == "# T\n\ntext"


@pytest.mark.parametrize(
    "front",
    [
        {f"k{n}": n for n in range(21)},
        {"a": [1]},
        {"a": {"b": 1}},
        {"": 1},
        {"a\nb": 1},
        {"x" * 101: 1},
        [],
    ],
)
def test_front_matter_is_a_map_of_at_most_twenty_scalars(desk: Desk, front: Any) -> None:
    assert desk.call("docs.write_markdown", frontMatter=front).code == "invalid_input"


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cc", "Cs", "Cn"]), min_size=1, max_size=20),
        st.one_of(
            st.text(max_size=60),
            st.integers(),
            st.booleans(),
            st.none(),
            st.floats(allow_nan=False, allow_infinity=False),
        ),
        max_size=5,
    )
)
def test_every_front_matter_reads_back(values: dict[str, Any]) -> None:
    text = front_matter(values)

    expected = {cleaned(k): cleaned(v) if isinstance(v, str) else v for k, v in values.items()}
    # Line breaks of other kinds come back as they are, because they are escaped.
    assert (yaml.safe_load(text.removeprefix("---\n").removesuffix("---\n\n")) or {}) == expected


@given(st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1).map(str.strip).filter(bool))
def test_every_title_reads_as_itself(title: str) -> None:
    wanted = cleaned(title).strip()
    for text, expected in ((title_line(wanted), wanted), (f"# x{escape(wanted)}", f"x{wanted}")):
        (heading,) = parse(text).blocks or (Heading(1, ()),)
        assert isinstance(heading, Heading)
        assert plain(heading.inlines) == expected


# docs.write_docx


def texts(document: Any, style: str) -> list[str]:
    return [one.text for one in document.paragraphs if one.style.name == style]


def test_the_title_and_all_levels_of_headings_have_real_styles(desk: Desk) -> None:
    document, output = desk.docx(
        "\n\n".join(f"{'#' * n} H{n}" for n in range(2, 7)) + "\n\nbody", title="Big & <small>"
    )

    assert texts(document, "Title") == ["Big & <small>"]
    assert [texts(document, f"Heading {n}") for n in range(2, 7)] == [[f"H{n}"] for n in range(2, 7)]
    assert texts(document, "Normal") == ["body"]
    assert output["paragraphs"] == len(document.paragraphs) == 7


def test_a_text_with_a_title_of_its_own_gets_no_second_one(desk: Desk) -> None:
    document, _ = desk.docx("# Own\n\nbody")

    assert texts(document, "Heading 1") == ["Own"]
    assert texts(document, "Title") == []


def test_styles_inside_a_line(desk: Desk) -> None:
    document, _ = desk.docx("plain **bold *both*** ~~struck~~ `code` <b>raw</b> a\nb  \nc &amp; \\*")

    line = document.paragraphs[1]
    assert line.text == "plain bold both struck code <b>raw</b> a b\nc & *"
    assert [r.text for r in line.runs if r.bold] == ["bold ", "both"]
    assert [r.text for r in line.runs if r.italic] == ["both"]
    assert [r.text for r in line.runs if r.font.strike] == ["struck"]
    assert [r.text for r in line.runs if r.style.name == "Inline Code"] == ["code"]


def test_links_of_the_web_are_kept_and_others_become_text(desk: Desk) -> None:
    text = (
        "[a](https://example.com/x?y=1&z) <mailto:a@example.com> [c](javascript:alert) [d](file:///etc/passwd) "
        "[e](#here) [f](other.md) [g](data:text/html,x) [h](http://) [i](http://[x) [j](mailto:nobody)"
    )

    document, output = desk.docx(text)

    assert [(link.text, link.address) for link in document.paragraphs[1].hyperlinks] == [
        ("a", "https://example.com/x?y=1&z"),
        ("mailto:a@example.com", "mailto:a@example.com"),
    ]
    assert document.paragraphs[1].text == "a mailto:a@example.com c d e f g h i j"
    assert len(output["warnings"]) == 8


def test_lists_nest_and_count_anew(desk: Desk) -> None:
    text = "1. a\n   - b\n     - c\n\n   more\n2. d\n\n---\n\n5. e\n"

    document, _ = desk.docx(text)

    numbered = {p.text: p._p.pPr.numPr for p in document.paragraphs if p._p.pPr.numPr is not None}
    assert {text: one.ilvl.val for text, one in numbered.items()} == {"a": 0, "b": 1, "c": 2, "d": 0, "e": 0}
    assert numbered["a"].numId.val == numbered["d"].numId.val != numbered["e"].numId.val
    lists = document.part.numbering_part.element
    starts = lists.xpath(f".//w:num[@w:numId={numbered['e'].numId.val}]//w:startOverride/@w:val")
    assert starts == ["5"]
    assert texts(document, "List Paragraph") == ["a", "b", "c", "more", "d", "e"]


def test_lists_deeper_than_five_levels_are_drawn_at_the_fifth(desk: Desk) -> None:
    document, output = desk.docx("\n".join("  " * n + f"- l{n}" for n in range(7)))

    levels = [p._p.pPr.numPr.ilvl.val for p in document.paragraphs[1:]]
    assert levels == [0, 1, 2, 3, 4, 4, 4]
    assert len(output["warnings"]) == 1


def test_tasks_show_their_box(desk: Desk) -> None:
    document, _ = desk.docx("- [x] done\n- [ ] **open**\n- [y] none\n- [ ]\n- [X] `c`\n- `[ ]` no\n")

    assert texts(document, "List Paragraph") == ["☑\tdone", "☐\topen", "[y] none", "☐\t", "☑\tc", "[ ] no"]


def test_quotes_code_and_rules(desk: Desk) -> None:
    document, _ = desk.docx("> quoted\n>\n> > deeper\n\n```py\na = 1\n\tb <c>\n\n```\n\n    indented\n\n---\n")

    assert texts(document, "Quote") == ["quoted", "deeper"]
    indents = [p.paragraph_format.left_indent for p in document.paragraphs if p.style.name == "Quote"]
    assert indents[0] < indents[1]
    assert texts(document, "Code Block") == ["a = 1\n    b <c>\n", "indented"]
    assert len(texts(document, "Rule")) == 1


def test_tables_are_real_ones(desk: Desk) -> None:
    document, output = desk.docx("|a|b|c|\n|:-|-:|:-:|\n|1|**2**|\n|x \\| y|`z`|w|v|\n\n|second|\n|-|\n")

    first, second = document.tables
    assert output["tables"] == 2
    assert first.style.name == "Officina Table"
    assert [[cell.text for cell in row.cells] for row in first.rows] == [
        ["a", "b", "c"],
        ["1", "2", ""],
        ["x | y", "z", "w"],
    ]
    sides = [cell.paragraphs[0].alignment for cell in first.rows[1].cells]
    assert sides == [WD_ALIGN_PARAGRAPH.LEFT, WD_ALIGN_PARAGRAPH.RIGHT, WD_ALIGN_PARAGRAPH.CENTER]
    assert len(second.rows) == 1


def test_footnotes_are_a_list_at_the_end(desk: Desk) -> None:
    document, _ = desk.docx(
        "one[^b] two[^a] one[^b] none[^c]\n\n[^a]: A\n[^b]: B *it*\n\n    more\n\n[^z]: unused\n\nlast"
    )

    line = document.paragraphs[1]
    assert [r.text for r in line.runs if r.font.superscript] == ["1", "2", "1"]
    assert line.text == "one1 two2 one1 none[^c]"
    assert texts(document, "Note") == ["B it", "more", "A", "unused"]
    assert document.paragraphs[-1].text == "unused"


def test_images_of_the_workspace_are_embedded_and_scaled_to_the_page(desk: Desk) -> None:
    desk.picture("img/wide one.png", size=(4000, 400))
    desk.picture("img/a.jpg", "JPEG")
    desk.picture("b.gif", "GIF", size=(10, 3000))

    document, output = desk.docx("![Wide](<img/wide one.png>)\n\n![](img/a.jpg) ![](b.gif) ![again](img/a.jpg)")

    section = document.sections[0]
    room = section.page_width - section.left_margin - section.right_margin
    widths = [shape.width for shape in document.inline_shapes]
    assert output["images"] == len(widths) == 4
    assert output["warnings"] == []
    assert abs(widths[0] - room) < 2000
    assert document.inline_shapes[2].height < section.page_height
    assert document.inline_shapes[0]._inline.docPr.get("descr") == "Wide"
    media = [part for part in document.part.package.iter_parts() if part.partname.startswith("/word/media/")]
    assert sorted(part.content_type for part in media) == ["image/gif", "image/jpeg", "image/png"]


def test_images_that_cannot_be_shown_become_their_alternative_text(desk: Desk) -> None:
    desk.workspace.write("text.png", b"no image", max_bytes=100)
    desk.picture("cut.png")
    whole = (desk.folder / "cut.png").read_bytes()
    desk.workspace.write("cut.png", whole[:-20], max_bytes=10**6)
    desk.picture("bmp.png", "BMP")
    (desk.folder / "link.png").symlink_to("/etc/passwd")
    desk.workspace.write("big.png", b"x" * (5 * 1024 * 1024 + 1), max_bytes=10**8)
    sources = ["https://e.com/a.png", "//e.com/a.png", "data:image/png;base64,AA", "../x.png", "/x.png", "none.png"]
    sources += ["text.png", "cut.png", "bmp.png", "link.png", "big.png", "file:///a.png", ".officina/a.png"]

    document, output = desk.docx("\n\n".join(f"![alt {n}]({source})" for n, source in enumerate(sources)))

    assert [p.text for p in document.paragraphs[1:]] == [f"alt {n}" for n in range(len(sources))]
    assert output["images"] == 0
    assert len(output["warnings"]) == len(sources)


@pytest.mark.filterwarnings("ignore:Image size")
def test_an_image_of_too_many_pixels_is_left_out(desk: Desk) -> None:
    content = io.BytesIO()
    Image.new("1", (7000, 6000)).save(content, "PNG")
    desk.workspace.write("huge.png", content.getvalue(), max_bytes=10**7)

    _, output = desk.docx("![h](huge.png)")

    assert output["images"] == 0
    assert "pixels" in output["warnings"][0]


def test_only_the_first_twenty_images_are_shown(desk: Desk) -> None:
    desk.picture("a.png")

    _, output = desk.docx("![a](a.png)\n\n" * 22)

    assert output["images"] == 20
    assert output["warnings"] == ["only the first 20 images are shown"]


def test_control_characters_never_reach_the_file(desk: Desk) -> None:
    text = "a\x00b\x0c\ufffe &#12;c&#x1;d&NewLine;e `x&#12;\x0b`\n\n    code\x01\n"

    document, output = desk.docx(text, title="T\uffff")

    assert [p.text for p in document.paragraphs] == ["T", "ab c\ufffdd e x&#12;", "code"]
    assert len(output["warnings"]) == 2


def test_properties_and_page(desk: Desk) -> None:
    document, _ = desk.docx("x", title="Report", author="Mara Quill", pageSize="letter")
    default, _ = desk.docx("x")

    assert (document.core_properties.title, document.core_properties.author) == ("Report", "Mara Quill")
    assert abs(document.sections[0].page_width - Mm(215.9)) < Mm(0.1)
    assert default.core_properties.author == "Sol Anders"
    assert abs(default.sections[0].page_height - Mm(297)) < Mm(0.1)
    made = default.core_properties.created
    assert abs((datetime.now(made.tzinfo) - made).total_seconds()) < 86_400


@pytest.mark.parametrize("author", ["x" * 101, "a\nb", 1])
def test_an_author_is_one_line(desk: Desk, author: Any) -> None:
    assert desk.call("docs.write_docx", author=author).code == "invalid_input"


@pytest.mark.parametrize(
    "text",
    [
        "a\n\n" * 20_001,
        "|a" * 31 + "|\n" + "|-" * 31 + "|\n",
        "|a|\n|-|\n" + "|x|\n" * 501,
        ">" * 100 + " a",
        "\n".join("  " * n + "- a" for n in range(60)),
    ],
)
def test_what_is_too_large_for_a_page_is_refused(desk: Desk, text: str) -> None:
    assert desk.call("docs.write_docx", markdown=text).code == "too_large"
    assert desk.files() == []
    assert desk.call("docs.write_markdown", markdown=text).ok


@pytest.mark.parametrize(
    "text",
    ["a\n\n" * 20_000, "|a" * 30 + "|\n" + "|-" * 30 + "|\n" + ("|x" * 30 + "|\n") * 500, "- a\n" * 20_000],
)
def test_bounds_of_a_page_are_inclusive(desk: Desk, text: str) -> None:
    assert desk.call("docs.write_docx", markdown=text).ok


PIECES = [
    *"a `*[)\\\t\n\x00é|",
    *("\n\n", "# ", "- ", "1. ", "> ", "```\n", "**", "~~", "](", "![", "[^1]", "\n[^1]: ", "[ ] ", "---\n", "    "),
    *("<b>", "&#12;", "http://a.b", "\r\n", "|a|b|\n|-|-|\n"),
]


@settings(deadline=None)
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=40).map("".join))
def test_every_text_makes_a_file_that_opens(text: str) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)

    drawn = draw(judged(parse(text)), title="T", author="", page_size="a4", load=_no_picture, now=now)

    document = docx.Document(io.BytesIO(drawn.content))
    assert len(document.paragraphs) == drawn.paragraphs
    assert len(document.tables) == drawn.tables


def _no_picture(path: str) -> NoReturn:
    raise SkillError("not_found", f"there is no {path}")
