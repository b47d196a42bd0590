"""Skills that write documents into the workspace (spec: skills 7.13, 7.14)."""

from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Final, Literal, Protocol

from pydantic import AfterValidator, Field, StringConstraints

from registry.base import Model
from registry.errors import SkillError
from registry.skills.context import SkillContext, Workspace
from registry.skills.papers.blocks import Document, Heading, Span, count_words, headings
from registry.skills.papers.characters import cleaned, warnings_of
from registry.skills.papers.naming import DocxPath, MarkdownPath, PdfPath, default_path
from registry.skills.skill import Effect, Skill, skill
from registry.text import one_line

MAX_MARKDOWN_BYTES: Final = 512 * 1024
MAX_TEXT_BYTES: Final = 1024 * 1024
MAX_BINARY_BYTES: Final = 20 * 1024 * 1024
NOT_WIRED: Final = "no workspace is wired to this call; nothing was written"


def _markdown(text: str) -> str:
    if not cleaned(text).strip():
        raise ValueError("is blank")
    size = len(text.encode())
    if size > MAX_MARKDOWN_BYTES:
        raise ValueError(f"has {size} bytes, and {MAX_MARKDOWN_BYTES} is the most")
    return text


def _title(text: str) -> str:
    one_line(cleaned(text))
    return one_line(text).strip()


def _name(text: str) -> str:
    return one_line(text).strip() if text.strip() else ""


Title = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_title)]
Markdown = Annotated[
    str,
    StringConstraints(min_length=1, max_length=MAX_MARKDOWN_BYTES),
    AfterValidator(_markdown),
    Field(description="CommonMark with tables, task lists, strike-through and footnotes; raw HTML shows as text"),
]
Key = Annotated[str, StringConstraints(max_length=100), AfterValidator(one_line)]


class WriteMarkdown(Model):
    path: MarkdownPath | None = Field(default=None, description="docs/<title>.md when left out; .md is added")
    title: Title
    markdown: Markdown
    front_matter: dict[Key, str | int | float | bool | None] = Field(default={}, max_length=20)
    toc: bool = Field(default=False, description="whether a table of contents follows the title")
    overwrite: bool = Field(default=True, description="false refuses (conflict) when the file is there")


class OutlineEntry(Model):
    level: int
    text: str


class WrittenMarkdown(Model):
    path: str
    bytes: int = 0
    sha256: str | None = None
    words: int = 0
    headings: list[OutlineEntry] = Field(default_factory=list)
    warnings: list[str] = Field(default_factory=list)
    wired: bool = True
    note: str | None = None


class WriteDocx(Model):
    path: DocxPath | None = Field(default=None, description="docs/<title>.docx when left out; .docx is added")
    title: Title
    markdown: Markdown
    author: Annotated[str, AfterValidator(_name)] = Field(
        default="", max_length=100, description="your own name when left out"
    )
    page_size: Literal["a4", "letter"] = "a4"
    overwrite: bool = Field(default=True, description="false refuses (conflict) when the file is there")


class WrittenDocx(Model):
    path: str
    bytes: int = 0
    sha256: str | None = None
    words: int = 0
    #: Paragraphs of the file's body; those inside of tables are not counted.
    paragraphs: int = 0
    tables: int = 0
    images: int = 0
    warnings: list[str] = Field(default_factory=list)
    wired: bool = True
    note: str | None = None


class WritePdf(WriteDocx):
    path: PdfPath | None = Field(default=None, description="docs/<title>.pdf when left out; .pdf is added")


class WrittenPdf(WrittenDocx):
    pages: int = 0


class _Overwriting(Protocol):
    @property
    def overwrite(self) -> bool: ...


def _effect(given: _Overwriting) -> Effect:
    return "idempotent" if given.overwrite else "once"


_writing = partial(
    skill,
    operations=("fs.write",),
    effect=_effect,
    timeout_s=30,
    needs=("workspace",),
)


@_writing("docs.write_markdown", title="Write a Markdown document")
def write_markdown(given: WriteMarkdown, context: SkillContext) -> WrittenMarkdown:
    """Writes a Markdown file of at most 512 KiB of text into the workspace. The title becomes the first heading unless
    the text begins with one; `frontMatter` becomes a block of YAML before it, `toc` adds a table of contents. Control
    characters are removed, the rest of the text stays as sent. overwrite false refuses a file that is there. Does not
    render anything, and neither fetches nor checks links."""
    path = given.path or default_path(given.title, ".md")
    if context.workspace is None:
        return WrittenMarkdown(path=path, wired=False, note=NOT_WIRED)
    _refuse_taken(context.workspace, path, given)
    from registry.skills.papers import outline
    from registry.skills.papers.frontmatter import front_matter
    from registry.skills.papers.markdown import parse

    title, text = cleaned(given.title), cleaned(given.markdown)
    document = parse(text, context.check)
    if document.has_title:
        top, text = outline.split_after(text, document)
    else:
        top = outline.title_line(title) + "\n\n"
        document = _titled(document, title)
    found = list(headings(document.blocks))
    if given.toc and len(found) > 1:
        top = f"{top.rstrip()}\n\n{outline.contents(found)}\n\n"
    content = front_matter(given.front_matter) + top + text
    size, sha256 = _put(context, context.workspace, path, content.encode(), given, write_markdown.name, MAX_TEXT_BYTES)
    return WrittenMarkdown(
        path=path,
        bytes=size,
        sha256=sha256,
        words=count_words(document),
        headings=[OutlineEntry(level=heading.level, text=outline.line_of(heading)) for heading in found],
        warnings=warnings_of(given.title, given.markdown, *map(str, given.front_matter.values())),
    )


@_writing("docs.write_docx", title="Write a Word document")
def write_docx(given: WriteDocx, context: SkillContext) -> WrittenDocx:
    """Writes a Word file made of Markdown into the workspace: headings, bold, italic, strike, code, quotes, nested and
    task lists, tables (at most 30 columns by 500 rows), links, rules, footnotes at the end. The title stands first
    unless the text begins with a heading of level 1. Images are PNG, JPEG or GIF files of the workspace, at most 20 of
    5 MiB; others become their alternative text, and `warnings` says so. Nothing is fetched, raw HTML shows as text.
    overwrite false refuses a file that is there. At most 512 KiB of text and 20,000 blocks."""
    path = given.path or default_path(given.title, ".docx")
    if context.workspace is None:
        return WrittenDocx(path=path, wired=False, note=NOT_WIRED)
    _refuse_taken(context.workspace, path, given)
    # Half a second of imports, which nobody who writes no Word file should pay.
    from registry.skills.papers import docx, images
    from registry.skills.papers.markdown import judged, parse

    document = judged(parse(given.markdown, context.check))
    title = cleaned(given.title)
    drawn = docx.draw(
        document,
        title=title,
        author=given.author or cleaned(context.caller.agent_name or "")[:100],
        page_size=given.page_size,
        load=partial(images.load, context.workspace),
        now=datetime.fromtimestamp(context.now_ms() / 1000, UTC),
        check=context.check,
    )
    size, sha256 = _put(context, context.workspace, path, drawn.content, given, write_docx.name, MAX_BINARY_BYTES)
    return WrittenDocx(
        path=path,
        bytes=size,
        sha256=sha256,
        words=count_words(document if document.has_title else _titled(document, title)),
        paragraphs=drawn.paragraphs,
        tables=drawn.tables,
        images=drawn.images,
        warnings=[*warnings_of(given.title), *drawn.warnings],
    )


@_writing("docs.write_pdf", title="Write a PDF document", catalogued=False, documented=False)
def write_pdf(given: WritePdf, context: SkillContext) -> WrittenPdf:
    """Writes a PDF file made of Markdown into the workspace, for reading and printing: all that docs.write_docx draws,
    by the same rules, with page numbers. The same text gives the same bytes. The font has Latin, Greek, Cyrillic and
    many signs, but no Chinese, Japanese or Korean: what it lacks is replaced, and `warnings` says so. Nothing is
    fetched, raw HTML shows as text. overwrite false refuses a file that is there. At most 512 KiB of text and 20,000
    blocks."""
    path = given.path or default_path(given.title, ".pdf")
    if context.workspace is None:
        return WrittenPdf(path=path, wired=False, note=NOT_WIRED)
    _refuse_taken(context.workspace, path, given)
    from registry.skills.papers import images, pdf
    from registry.skills.papers.markdown import judged, parse

    document = judged(parse(given.markdown, context.check))
    title = cleaned(given.title)
    drawn = pdf.draw(
        document,
        title=title,
        author=given.author or cleaned(context.caller.agent_name or "")[:100],
        page_size=given.page_size,
        load=partial(images.load, context.workspace),
        check=context.check,
    )
    size, sha256 = _put(context, context.workspace, path, drawn.content, given, write_pdf.name, MAX_BINARY_BYTES)
    return WrittenPdf(
        path=path,
        bytes=size,
        sha256=sha256,
        words=count_words(document if document.has_title else _titled(document, title)),
        pages=drawn.pages,
        paragraphs=drawn.paragraphs,
        tables=drawn.tables,
        images=drawn.images,
        warnings=[*warnings_of(given.title), *drawn.warnings],
    )


def _titled(document: Document, title: str) -> Document:
    return replace(document, blocks=(Heading(1, (Span(title),)), *document.blocks))


def _refuse_taken(workspace: Workspace, path: str, given: _Overwriting) -> None:
    """Says no before any work is done; the write itself looks again."""
    if not given.overwrite and workspace.exists(path):
        raise SkillError("conflict", f"{path!r} is there already; overwrite would replace it")


def _put(
    context: SkillContext,
    workspace: Workspace,
    path: str,
    content: bytes,
    given: _Overwriting,
    name: str,
    max_bytes: int,
) -> tuple[int, str]:
    with workspace.lock(path, seconds=min(10, context.deadline.left)):
        context.check()
        stored = workspace.write(path, content, mode="overwrite" if given.overwrite else "create", max_bytes=max_bytes)
    context.emit("file.written", {"path": path, "bytes": stored.bytes, "sha256": stored.sha256, "skill": name})
    return stored.bytes, stored.sha256


SKILLS: tuple[Skill, ...] = (write_markdown, write_docx, write_pdf)

__all__ = ["SKILLS", "write_docx", "write_markdown", "write_pdf"]
