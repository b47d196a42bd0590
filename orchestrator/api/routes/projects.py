"""Projects: looked at and listed."""

from typing import Annotated

from fastapi import Path, Query

from orchestrator import lookup, views
from orchestrator.api.auth import Reading
from orchestrator.api.models import ProjectPage, ProjectView
from orchestrator.api.parts import Cursor, Limit, cursor_of, place_of
from orchestrator.api.parts import router as make_router
from orchestrator.api.replies import Reply, problems
from orchestrator.states import ProjectStatus

router = make_router("projects")

ProjectId = Annotated[
    str,
    Path(
        min_length=1,
        max_length=36,
        description="A project's id, or six characters or more of its beginning or end that no other has.",
    ),
]


@router.get("/projects", response_model=ProjectPage, summary="Your projects, newest first")
def list_projects(
    asking: Reading,
    status: Annotated[ProjectStatus | None, Query(description="Only projects in this state.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Reply:
    with asking.database.read() as connection:
        found = views.project_list(
            connection, asking.owner, status=status, limit=limit, after=place_of(cursor, int, str)
        )
    last = found[-1] if len(found) == limit else None
    return Reply({"items": found, "next": last and cursor_of(last["createdAt"], last["id"])})


@router.get("/projects/{project_id}", response_model=ProjectView, summary="One project whole", responses=problems(409))
def show_project(asking: Reading, project_id: ProjectId) -> Reply:
    """Status, tasks with their runs, costs, files and signals."""
    with asking.database.read() as connection:
        whole = lookup.project_id(connection, project_id, asking.owner)
        return Reply(views.project(connection, whole, asking.settings))
