"""From the bytes of a document to text: HTML, PDF, Word, and what is text already. Runs in the child process."""

import io
import re
import zipfile
from typing import Any, Final

from registry.skills.charsets import codec_of

#: Pages of a PDF that are read.
MAX_PAGES: Final = 50
#: Characters of an extraction below which a page is read again with less judgement.
FEW: Final = 250
MAX_TITLE: Final = 300
#: Bytes the parts of a Word document may have together.
MAX_UNFOLDED: Final = 200 * 1024 * 1024
_META: Final = re.compile(
    rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{2,40})|<\?xml[^>]{0,100}?encoding\s*=\s*[\"']([A-Za-z0-9_.:-]{2,40})",
    re.IGNORECASE,
)
#: Labels that the web writes and means something wider by.
_WIDER: Final = {
    **dict.fromkeys(("iso-8859-1", "latin1", "ascii", "us-ascii"), "windows-1252"),
    **dict.fromkeys(("gb2312", "gbk"), "gb18030"),
    **dict.fromkeys(("shift_jis", "sjis", "x-sjis"), "cp932"),
    **dict.fromkeys(("ks_c_5601-1987", "euc-kr"), "cp949"),
}
_DROPPED: Final = ("script", "style", "noscript", "template", "svg", "iframe", "nav", "form", "head")


class Unreadable(Exception):
    """The document is of a kind that is not read; the message says what."""


def read(head: dict[str, Any], body: bytes) -> dict[str, Any]:
    """The document as `{text, title}`.

    Args:
        head: `kind` (html, pdf, docx, text), `charset` of the header or None, `form` (markdown, text, raw), `url`; of a
            PDF also `pages`, the most that are read.
    """
    if head["kind"] == "pdf":
        return _pdf(body, head.get("pages", MAX_PAGES))
    if head["kind"] == "docx":
        return _docx(body)
    text = decode(body, head.get("charset"))
    if head["kind"] == "html" and head["form"] != "raw":
        return _html(text, head["form"], head["url"])
    return {"text": text, "title": None}


def decode(body: bytes, named: str | None) -> str:
    """Text by what the header says, else a byte order mark, else the document itself, else by its look."""
    for mark, codec in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if body.startswith(mark):
            return body.decode(codec, "replace")
    for label in (named, _declared(body)):
        if label and (found := _by(body, label)) is not None:
            return found
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return _guessed(body)


def _declared(body: bytes) -> str | None:
    found = _META.search(body[:4096])
    return (found[1] or found[2]).decode("ascii") if found else None


def _by(body: bytes, label: str) -> str | None:
    label = _WIDER.get(label.strip().lower(), label.strip().lower())
    if label.startswith(("utf-16", "utf-32")):
        label = "utf-8" if b"\0" not in body[:100] else label  # a page whose meta could be read is none
    codec = codec_of(label)
    return None if codec is None else body.decode(codec, "replace")


def _guessed(body: bytes) -> str:
    from charset_normalizer import from_bytes

    best = from_bytes(body[:65_536]).best()
    return body.decode(best.encoding if best else "utf-8", "replace")


def _html(text: str, form: str, url: str) -> dict[str, Any]:
    import trafilatura
    from lxml import html  # type: ignore[import-untyped]

    text = _without_declaration(text)
    if not text.strip():
        return {"text": "", "title": None}
    tree = html.document_fromstring(text, parser=html.HTMLParser(encoding=None))
    title = " ".join("".join(tree.xpath("//title[1]//text()")).split())[:MAX_TITLE] or None
    markdown = form == "markdown"
    made = trafilatura.extract(
        text,
        url=url,
        output_format="markdown" if markdown else "txt",
        include_links=markdown,
        include_formatting=markdown,
        include_tables=True,
        include_comments=False,
        favor_recall=True,
    )
    made = (made or "").strip()
    if len(made) < FEW:
        whole = _whole(tree, markdown=markdown)
        if len(whole) > 2 * len(made):
            made = whole
    return {"text": made, "title": title}


def _whole(tree: Any, *, markdown: bool) -> str:
    """All of a page that is meant to be read, without a judgement what matters."""
    for element in tree.xpath(" | ".join(f"//{name}" for name in _DROPPED)):
        element.drop_tree() if element.getparent() is not None else None
    if not markdown:
        lines = (" ".join(line.split()) for line in "\n".join(tree.itertext()).splitlines())
        return "\n".join(line for line in lines if line)
    from lxml import html
    from markdownify import markdownify

    made: str = markdownify(html.tostring(tree, encoding="unicode"), heading_style="ATX", strip=["img"])
    return re.sub(r"\n{3,}", "\n\n", made).strip()


def _without_declaration(text: str) -> str:
    """lxml refuses text that still says in which bytes it came; NUL ends its strings."""
    return re.sub(r"^\s*<\?xml[^>]*\?>", "", text.replace("\0", ""), count=1)


def _pdf(body: bytes, most: int) -> dict[str, Any]:
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    try:
        reader = PdfReader(io.BytesIO(body))
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unreadable("it is a PDF that needs a password")
        pages = [(page.extract_text() or "").strip() for page in reader.pages[:most]]
        title = str(reader.metadata.title or "")[:MAX_TITLE] if reader.metadata else ""
    except PyPdfError as error:
        raise Unreadable(f"it is no PDF that can be read: {str(error)[:100]}") from None
    text = "\n\n".join(page for page in pages if page)
    if len(reader.pages) > most:
        text += f"\n\n[... {len(reader.pages) - most} more pages are not read ...]"
    return {"text": text, "title": title.strip() or None}


def _docx(body: bytes) -> dict[str, Any]:
    """Paragraphs and tables in their order; headings keep their rank."""
    import docx
    from docx.opc.exceptions import PackageNotFoundError
    from docx.table import Table

    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > MAX_UNFOLDED:
                raise Unreadable("it is a Word document that unfolds to too much")
        document = docx.Document(io.BytesIO(body))
    except (zipfile.BadZipFile, PackageNotFoundError, KeyError, ValueError) as error:
        raise Unreadable(f"it is no Word document that can be read: {str(error)[:100]}") from None
    parts = []
    for block in document.iter_inner_content():
        if isinstance(block, Table):
            parts.append("\n".join(" | ".join(cell.text.strip() for cell in row.cells) for row in block.rows))
            continue
        rank = re.fullmatch(r"Heading ([1-6])", (block.style.name or "") if block.style else "")
        parts.append(f"{'#' * int(rank[1])} {block.text}" if rank else block.text)
    title = str(document.core_properties.title or "")[:MAX_TITLE].strip()
    return {"text": "\n\n".join(part for part in parts if part.strip()), "title": title or None}
