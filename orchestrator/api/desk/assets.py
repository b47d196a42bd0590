"""Style, script and fonts of the pages, read once; their names carry a digest, so that browsers may keep them."""

import hashlib
from functools import lru_cache
from importlib.resources import files
from typing import Final

from fastapi import APIRouter
from starlette.responses import Response

from orchestrator.api.gate import Refusal

router = APIRouter(include_in_schema=False)

_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8",
}
_NAMES: Final = (
    "desk.css",
    *("theme.css", "frame.css", "lists.css", "project.css", "studio.css", "narrow.css"),
    "desk.js",
    "mark.svg",
    "vendor/htmx.min.js",
    "vendor/pico.min.css",
    "vendor/inter-latin-wght-normal.woff2",
    "vendor/jetbrains-mono-latin-wght-normal.woff2",
)


@lru_cache(maxsize=len(_NAMES))
def _read(name: str) -> bytes:
    return files(__package__).joinpath("static", *name.split("/")).read_bytes()


@lru_cache(maxsize=1)
def version() -> str:
    """Of all assets together: another release is another address."""
    return hashlib.sha256(b"".join(_read(name) for name in _NAMES)).hexdigest()[:12]


def url(name: str) -> str:
    """Where a page finds an asset."""
    return f"/static/{version()}/{name}"


@router.get("/static/{of}/{name:path}")
async def asset(of: str, name: str) -> Response:
    """An asset; who asks for another version gets what there is, and may not keep it."""
    if name not in _NAMES:
        raise Refusal(404, "not_found", "there is no such file")
    kind = next(kind for end, kind in _TYPES.items() if name.endswith(end))
    keep = "public, max-age=31536000, immutable" if of == version() else "no-cache"
    return Response(_read(name), media_type=kind, headers={"cache-control": keep})
