"""The files of a workspace: a project's, or a conversation's."""

from typing import Annotated, Any

from fastapi import Path, Request
from sqlalchemy import select
from starlette.responses import Response

from orchestrator import downloads, lookup, views
from orchestrator.api.auth import Asking, Reading
from orchestrator.api.models import FileList
from orchestrator.api.parts import ProjectId, ThreadId
from orchestrator.api.parts import router as make_router
from orchestrator.api.replies import Reply, problems
from orchestrator.api.sending import sent
from orchestrator.store.tables import projects

router = make_router("projects")

FilePath = Annotated[str, Path(max_length=2_048)]

_BYTES: dict[str, Any] = {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: _BYTES | {"description": "The file."},
    206: _BYTES | {"description": "The range that was asked for."},
    304: {"description": "You have it: `If-None-Match` names this version."},
    **problems(409, 416),
}


@router.get(
    "/projects/{project_id}/files", response_model=FileList, summary="Files of the workspace", responses=problems(409)
)
def list_files(asking: Reading, project_id: ProjectId) -> Reply:
    """The inputs, and what skills wrote."""
    with asking.database.read() as connection:
        whole = lookup.project_id(connection, project_id, asking.owner)
        return Reply({"items": views.file_list(connection, whole)})


@router.get(
    "/projects/{project_id}/files/{path:path}",
    response_class=Response,
    summary="One file, as an attachment",
    responses=_ANSWERS,
)
def download(request: Request, asking: Reading, project_id: ProjectId, path: FilePath) -> Response:
    """Takes `Range`, one range at a time, with `If-Range`. Whatever it holds, no browser shows it in our name."""
    with asking.database.read() as connection:
        whole = lookup.project_id(connection, project_id, asking.owner)
    return _sent(request, asking, whole, path)


@router.get("/threads/{thread_id}/files", response_model=FileList, summary="Files of a thread", responses=problems(409))
def list_thread_files(asking: Reading, thread_id: ThreadId) -> Reply:
    """What came with messages (`attachments/DIGEST/NAME`), and what skills wrote."""
    with asking.database.read() as connection:
        whole = lookup.thread_id(connection, thread_id, asking.owner)
        return Reply({"items": views.file_list(connection, whole)})


@router.get(
    "/threads/{thread_id}/files/{path:path}",
    response_class=Response,
    summary="One file of a thread, as an attachment",
    responses=_ANSWERS,
)
def download_of_thread(request: Request, asking: Reading, thread_id: ThreadId, path: FilePath) -> Response:
    """As a project's."""
    with asking.database.read() as connection:
        whole = lookup.thread_id(connection, thread_id, asking.owner)
    return _sent(request, asking, whole, path)


def _sent(request: Request, asking: Asking, whole: str, path: str) -> Response:
    with asking.database.read() as connection:
        folder = connection.execute(select(projects.c.workspace).where(projects.c.id == whole)).scalar_one()
    return sent(downloads.open_file(asking.settings.workspaces / folder, path), request.headers)
