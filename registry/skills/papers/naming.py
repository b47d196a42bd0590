"""Where a document goes: the file it names, or one named after its title."""

from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Annotated, Final

from pydantic import AfterValidator

from registry.errors import SkillError
from registry.skills.paths import WorkspacePath, normalise, slug

FOLDER: Final = "docs"


def default_path(title: str, extension: str) -> str:
    return f"{FOLDER}/{slug(title)}{extension}"


def _with(extension: str) -> Callable[[str], str]:
    """Adds the extension to a path that has none, and refuses another one."""

    def judge(path: str) -> str:
        found = PurePosixPath(path).suffix
        if found.lower() == extension:
            return path
        if found:
            raise ValueError(
                f"ends in {found!r}, and this writes {extension} files; leave the extension out or change it"
            )
        try:
            return normalise(path + extension)
        except SkillError as error:
            raise ValueError(error.message) from None

    return judge


MarkdownPath = Annotated[WorkspacePath, AfterValidator(_with(".md"))]
DocxPath = Annotated[WorkspacePath, AfterValidator(_with(".docx"))]
PdfPath = Annotated[WorkspacePath, AfterValidator(_with(".pdf"))]
