"""A file of a workspace as a page shows it, and the picture that is in one; a project's or a conversation's."""

from pathlib import Path
from typing import Any

from starlette.responses import Response, StreamingResponse

from orchestrator import downloads
from orchestrator.api.desk import previews
from orchestrator.api.gate import Refusal


def shown(workspace: Path, path: str, at: str) -> dict[str, Any]:
    """What a page says of a file.

    Args:
        at: the address of the page that the file belongs to.

    Raises:
        Refused: `unknown_file`.
    """
    download = downloads.open_file(workspace, path)
    with download.file:
        preview = previews.preview(download)
    return {"at": at, "path": path, "bytes": download.bytes, "preview": preview, "long": previews.LONG}


def picture(workspace: Path, path: str) -> Response:
    """A picture, for a page to show: what it is, its first bytes say.

    Raises:
        Refused: `unknown_file`.
        Refusal: it is no picture, or one too large to be shown.
    """
    download = downloads.open_file(workspace, path)
    kind = previews.picture_type(download.file.read(16))
    if kind is None or download.bytes > previews.PICTURE:
        download.file.close()
        raise Refusal(404, "not_found", "that file is no picture")
    download.file.seek(0)
    headers = {"content-security-policy": "sandbox; default-src 'none'", "content-length": str(download.bytes)}
    return StreamingResponse(download.file, media_type=kind, headers=headers)
