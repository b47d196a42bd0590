"""The pictures inside a Word document."""

from collections.abc import Callable
from typing import Any, Final

from docx.opc.constants import RELATIONSHIP_TYPE
from docx.opc.packuri import PackURI
from docx.oxml.shape import CT_Inline
from docx.parts.image import ImagePart
from docx.shared import Inches

from registry.errors import SkillError
from registry.skills.papers.blocks import Picture
from registry.skills.papers.images import Raster
from registry.skills.papers.notices import Notices, shown
from registry.skills.papers.wordxml import Element, element

MAX_IMAGES: Final = 20
_TYPES: Final = {"png": "image/png", "jpg": "image/jpeg", "gif": "image/gif"}


class Gallery:
    """Puts pictures into a document, each file once.

    Args:
        document: the python-docx document.
        load: reads a picture; raises `SkillError` when there is none to show.
        notices: where a picture that is left out is told.
        max_height: inches.
    """

    def __init__(self, document: Any, load: Callable[[str], Raster], notices: Notices, max_height: float) -> None:
        self._part = document.part
        self._load = load
        self._notices = notices
        self._max_height = max_height
        self._known: dict[str, tuple[str, Raster] | None] = {}
        #: How many pictures are drawn.
        self.count = 0

    def show(self, picture: Picture, max_width: float) -> Element | None:
        """The drawing of a picture, scaled down to what its place holds; None when it cannot be shown."""
        if self.count >= MAX_IMAGES:
            self._notices.add(f"only the first {MAX_IMAGES} images are shown")
            return None
        if picture.path not in self._known:
            self._known[picture.path] = self._add(picture.path)
        found = self._known[picture.path]
        if found is None:
            return None
        self.count += 1
        relation, raster = found
        scale = min(1.0, max_width / raster.width, self._max_height / raster.height)
        width, height = Inches(raster.width * scale), Inches(raster.height * scale)
        inline = CT_Inline.new_pic_inline(self.count, relation, f"image{self.count}.{raster.extension}", width, height)
        inline.docPr.set("descr", picture.alt)
        for side in ("distL", "distR"):
            inline.set(side, "0")
        return element("r", element("drawing", inline))

    def _add(self, path: str) -> tuple[str, Raster] | None:
        try:
            raster = self._load(path)
        except SkillError as error:
            self._notices.add(f"the image {shown(path)} became its alternative text: {error.message}")
            return None
        # Not by way of the library, whose own reading of headers takes fewer JPEG files than Pillow does.
        name = PackURI(f"/word/media/image{len(self._known) + 1}.{raster.extension}")
        part = ImagePart(name, _TYPES[raster.extension], raster.content)
        return self._part.relate_to(part, RELATIONSHIP_TYPE.IMAGE), raster
