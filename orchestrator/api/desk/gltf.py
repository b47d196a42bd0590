"""What a glTF scene holds, by the JSON at its head: how many of what, and who wrote it.

It is not drawn here: the smallest renderer that reads all of glTF is larger than the whole desk (docs/desk.md).
"""

import json
from typing import Any, Final

#: The first chunk of a binary glTF begins here, after magic, version, length, and its own length and type.
_MAGIC: Final = b"glTF"
_TYPE: Final = b"JSON"
_BEGIN: Final = 20
#: List in the JSON -> what its members are called.
_PARTS: Final = {
    "scenes": "Scenes",
    "nodes": "Nodes",
    "meshes": "Meshes",
    "materials": "Materials",
    "textures": "Textures",
    "animations": "Animations",
    "cameras": "Cameras",
}


def parts(head: bytes) -> tuple[tuple[str, str], ...] | None:
    """What a binary glTF is made of, as words and numbers; None: it is none. () where its head is damaged or too long.

    Args:
        head: the first bytes of the file; a description that is not whole in them is not read.
    """
    if head[:4] != _MAGIC or len(head) < _BEGIN:
        return None
    length = int.from_bytes(head[12:16], "little")
    if head[16:20] != _TYPE or len(head) < _BEGIN + length:
        return ()
    try:
        described = json.loads(head[_BEGIN : _BEGIN + length])
    except (ValueError, RecursionError):
        return ()
    return tuple(_told(described)) if isinstance(described, dict) else ()


def _told(described: dict[str, Any]) -> list[tuple[str, str]]:
    asset = described.get("asset")
    about = asset if isinstance(asset, dict) else {}
    found = [("Version", about.get("version")), ("Written by", about.get("generator"))]
    counted = [(word, described.get(key)) for key, word in _PARTS.items()]
    return [
        *((word, text[:200]) for word, text in found if isinstance(text, str) and text),
        *((word, f"{len(some):,}") for word, some in counted if isinstance(some, list) and some),
    ]
