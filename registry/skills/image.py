"""`image.generate`: pictures from a prompt, as PNG files that hold pixels and nothing else (spec: skills 7.15)."""

import io
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import AfterValidator, Field, StringConstraints

from registry.base import Model
from registry.errors import SkillError
from registry.skills.context import SkillContext
from registry.skills.paths import WorkspacePath, slug, stem
from registry.skills.ports import Wanted
from registry.skills.skill import Skill, skill
from registry.text import not_blank

if TYPE_CHECKING:
    from PIL.Image import Image

NOT_WIRED: Final = "nobody makes pictures here: nothing was written"
MAX_SIDE: Final = 4096
MAX_FILE_BYTES: Final = 20 * 1024 * 1024
FORMATS: Final = ("PNG", "JPEG", "WEBP", "GIF")
STYLES: Final = {
    "photo": "a photograph",
    "illustration": "an illustration",
    "icon": "a simple icon on a plain background",
    "diagram": "a clear diagram",
}


class GenerateImage(Model):
    prompt: Annotated[str, StringConstraints(min_length=1, max_length=4000), AfterValidator(not_blank)]
    path: Annotated[WorkspacePath, stem(".png", longest="-4.png")] | None = Field(
        default=None, description="without extension; images/<prompt> when left out"
    )
    size: Literal["1024x1024", "1536x1024", "1024x1536", "512x512"] = "1024x1024"
    count: int = Field(default=1, ge=1, le=4)
    style: Literal["photo", "illustration", "icon", "diagram"] | None = None
    variant: int | None = Field(
        default=None, ge=0, le=2**31 - 1, description="another picture of the same prompt, where the provider can"
    )


class GeneratedImage(Model):
    path: str
    width: int
    height: int
    mime: Literal["image/png"] = "image/png"
    bytes: int
    sha256: str


class GeneratedImages(Model):
    images: list[GeneratedImage] = Field(default_factory=list)
    provider: str = "none"
    model: str | None = None
    revised_prompt: str | None = None
    #: A card with the prompt stands for each picture: no provider was asked.
    placeholder: bool = False
    #: None: nobody knows the price.
    cost_usd: float | None = None
    wired: bool = True
    note: str | None = None


@skill(
    "image.generate",
    title="Generate images",
    timeout_s=120,
    operations=("network", "fs.write"),
    effect="idempotent",
    needs=("net", "workspace", "images"),
    cost_bearing=True,
    rate="image",
)
def generate(given: GenerateImage, context: SkillContext) -> GeneratedImages:
    """Makes 1 to 4 pictures of a prompt and writes them as PNG files into the workspace, over files of that name. The
    prompt goes to the provider of the settings, which may refuse it or change it (`revisedPrompt`). `variant` asks for
    another picture of the same prompt where the provider takes a number. Pictures have at most 4,096 pixels a side.
    `placeholder` says that a card with the prompt stands in and nothing was generated. Costs money. Edits no picture
    and reads none."""
    if context.workspace is None or context.images is None:
        return GeneratedImages(wired=False, note=NOT_WIRED)
    painted = None if context.rehearsal else context.images.paint(context.caller, _wanted(given, context))
    if painted is None and not (context.rehearsal or context.images.placeholder):
        return GeneratedImages(wired=False, note=NOT_WIRED)
    if painted is None:
        contents = [_card(given, number) for number in range(given.count)]
    else:
        contents = [_as_png(picture) for picture in painted.pictures]
    images = []
    for number, (content, (width, height)) in enumerate(contents, start=1):
        path = _path(given, number, len(contents))
        context.check()
        stored = context.workspace.write(path, content, max_bytes=MAX_FILE_BYTES)
        told = {"path": stored.path, "bytes": stored.bytes, "sha256": stored.sha256, "skill": "image.generate"}
        context.emit("file.written", told)
        images.append(
            GeneratedImage(path=stored.path, width=width, height=height, bytes=stored.bytes, sha256=stored.sha256)
        )
    if painted is None:
        note = "no provider was asked: a card with the prompt stands for each picture"
        return GeneratedImages(images=images, provider="placeholder", placeholder=True, cost_usd=0, note=note)
    return GeneratedImages(
        images=images,
        provider=painted.provider,
        model=painted.model,
        revised_prompt=painted.revised_prompt[:4000] if painted.revised_prompt else None,
        cost_usd=None if painted.cost_micro is None else painted.cost_micro / 1_000_000,
    )


def _wanted(given: GenerateImage, context: SkillContext) -> Wanted:
    styled = f"{given.prompt}\n\nThe picture is {STYLES[given.style]}." if given.style else given.prompt
    return Wanted(
        prompt=styled,
        size=given.size,
        count=given.count,
        variant=given.variant,
        timeout_s=context.deadline.left,
        cancelled=context.cancelled,
    )


def _path(given: GenerateImage, number: int, count: int) -> str:
    start = given.path or f"images/{slug(given.prompt)}"
    return f"{start}.png" if count == 1 else f"{start}-{number}.png"


def _as_png(content: bytes) -> tuple[bytes, tuple[int, int]]:
    """The pixels of a picture as a PNG file, and nothing else that it carried.

    Raises:
        SkillError: `invalid_output`, `too_large`.
    """
    from PIL import Image

    try:
        # Judged by its header before a pixel of it is unpacked.
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            if max(image.size) > MAX_SIDE:
                size = "{} x {}".format(*image.size)
                raise SkillError("too_large", f"the picture has {size} pixels; {MAX_SIDE} x {MAX_SIDE} is the most")
            image.load()
            plain = image.convert("RGBA" if "A" in image.getbands() or "transparency" in image.info else "RGB")
    except SkillError:
        raise
    except Exception:  # decoders fail in many ways on bytes that are broken on purpose
        raise SkillError("invalid_output", "the provider sent something that is no whole picture") from None
    return _saved(plain), plain.size


def _saved(image: "Image") -> bytes:
    from PIL import Image

    bare = Image.new(image.mode, image.size)
    bare.paste(image)
    target = io.BytesIO()
    bare.save(target, "PNG")
    return target.getvalue()


def _card(given: GenerateImage, number: int) -> tuple[bytes, tuple[int, int]]:
    """A card that says what it stands for."""
    from PIL import Image, ImageDraw, ImageFont

    from registry.skills.papers.pdffonts import FOLDER, TEXT

    width, height = map(int, given.size.split("x"))
    image = Image.new("RGB", (width, height), "#e8e8e8")
    draw = ImageDraw.Draw(image)
    draw.rectangle((8, 8, width - 9, height - 9), outline="#777777", width=4)
    font = ImageFont.truetype(str(FOLDER / f"{TEXT}.ttf"), max(14, width // 40))
    words = " ".join("".join(c if c.isprintable() else " " for c in given.prompt).split())[:600]
    room = width - 80
    lines, line = [f"PLACEHOLDER {number + 1}: no picture was generated", ""], ""
    for word in words.split():
        longer = f"{line} {word}".strip()
        if line and draw.textlength(longer, font=font) > room:
            lines.append(line)
            line = word
        else:
            line = longer
    draw.multiline_text((40, 40), "\n".join([*lines, line]), fill="#333333", font=font, spacing=8)
    return _saved(image), (width, height)


SKILLS: tuple[Skill, ...] = (generate,)

__all__ = ["SKILLS", "generate"]
