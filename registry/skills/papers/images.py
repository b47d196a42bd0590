"""Pictures of the workspace, decoded once before any document holds them."""

import io
from dataclasses import dataclass
from typing import Final

from PIL import Image

from registry.errors import SkillError
from registry.skills.context import Workspace

MAX_BYTES: Final = 5 * 1024 * 1024
MAX_PIXELS: Final = 40_000_000
FORMATS: Final = {"PNG": "png", "JPEG": "jpg", "MPO": "jpg", "GIF": "gif"}
#: Dots per inch of a picture that does not say, or says something odd.
DEFAULT_DPI: Final = 96.0

# Pillow judges sizes as it opens a file, so its cap is set before it opens any.
Image.MAX_IMAGE_PIXELS = MAX_PIXELS


@dataclass(frozen=True)
class Raster:
    """A picture as it lies in the workspace.

    Attributes:
        extension: png, jpg or gif.
        width, height: inches at its own resolution.
    """

    content: bytes
    extension: str
    width: float
    height: float


def load(workspace: Workspace, path: str) -> Raster:
    """Reads and decodes a PNG, JPEG or GIF.

    Raises:
        SkillError: what the workspace says of the path, `too_large`, `unsupported_type`.
    """
    content = workspace.read(path, max_bytes=MAX_BYTES)
    try:
        with _opened(content) as image:
            width, height = image.size
            if width * height > MAX_PIXELS:
                raise SkillError("too_large", f"{width} x {height} pixels, and {MAX_PIXELS} in all is the most")
            image.verify()
        # Verifying reads the file's parts, loading decodes them; neither finds every fault of the other.
        with _opened(content) as image:
            image.load()
            return Raster(content, FORMATS[image.format or ""], *_inches(image))
    except SkillError:
        raise
    except Image.DecompressionBombError:
        raise SkillError("too_large", f"more than {MAX_PIXELS} pixels") from None
    except Exception:  # decoders fail in many ways on a file that is broken on purpose
        raise SkillError("unsupported_type", "no whole PNG, JPEG or GIF image") from None


def _opened(content: bytes) -> Image.Image:
    return Image.open(io.BytesIO(content), formats=("PNG", "JPEG", "GIF"))


def _inches(image: Image.Image) -> tuple[float, float]:
    said = image.info.get("dpi")
    horizontal, vertical = said if isinstance(said, tuple) and len(said) == 2 else (DEFAULT_DPI, DEFAULT_DPI)
    return image.width / _sane(horizontal), image.height / _sane(vertical)


def _sane(dpi: float) -> float:
    return float(dpi) if 30 <= dpi <= 2400 else DEFAULT_DPI
