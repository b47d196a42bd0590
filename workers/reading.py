"""Files that people give to agents, as text: opened in a process of their own, as pages from the web are."""

from pathlib import PurePath
from typing import Final

from registry.errors import Refused, SkillError
from workers.web.opener import open_document

#: Ending of a name -> how the file is read.
KINDS: Final = {
    **dict.fromkeys((".txt", ".text", ".md", ".markdown", ".rst", ".csv"), "text"),
    **dict.fromkeys((".html", ".htm", ".xhtml"), "html"),
    ".pdf": "pdf",
    ".docx": "docx",
}
#: Pages of a PDF that are read.
PAGES: Final = 1_000
SECONDS: Final = 120.0


def read(name: str, content: bytes) -> tuple[str, str | None]:
    """Text and title of a file.

    Raises:
        Refused: `unsupported_type`, `timeout`, `too_large`: the file cannot be read.
    """
    kind = KINDS.get(PurePath(name).suffix.lower())
    if kind is None:
        known = ", ".join(KINDS)
        raise Refused(f"{name}: files of this kind are not read; known are {known}", code="unsupported_type")
    if kind == "text" and b"\0" in content[:8_192] and not content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise Refused(f"{name}: it is no text", code="unsupported_type")
    head = {"kind": kind, "charset": None, "form": "markdown", "url": "", "pages": PAGES}
    try:
        made = open_document(head, content, seconds=SECONDS, check=lambda: None)
    except SkillError as error:
        raise Refused(f"{name}: {error.message}", code=error.code) from None
    return str(made["text"]), made["title"] or PurePath(name).stem
