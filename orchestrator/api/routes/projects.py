"""Projects: submitted, looked at, listed, cancelled."""

from typing import Annotated, Any

from fastapi import Body, Header, Query
from pydantic import AfterValidator, ConfigDict, Field, PrivateAttr, model_validator

from orchestrator import control, held, lookup, submission, views
from orchestrator.api.auth import Reading, Writing
from orchestrator.api.models import Out, ProjectPage, ProjectView
from orchestrator.api.parts import Cursor, IfMatch, Limit, ProjectId, page_of, place_of, version_of
from orchestrator.api.parts import router as make_router
from orchestrator.api.replies import Reply, problems
from orchestrator.api.shared import skills
from orchestrator.states import ProjectStatus
from orchestrator.submission import MAX_FILES
from orchestrator.terminal import underway
from registry.base import Json, Model
from registry.projects.model import ProjectFile
from registry.text import storable

router = make_router("projects")


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
    return Reply(page_of(found, limit))


@router.get("/projects/{project_id}", response_model=ProjectView, summary="One project whole", responses=problems(409))
def show_project(
    asking: Reading,
    project_id: ProjectId,
    live: Annotated[bool, Query(description="With how its fan-outs stand, and whether anybody works there.")] = False,
) -> Reply:
    """Status, tasks with their runs, costs, files and signals."""
    with asking.database.read() as connection:
        whole = lookup.project_id(connection, project_id, asking.owner)
        found = views.project(connection, whole, asking.settings)
        return Reply(found | {"live": underway.read(connection, whole)} if live else found)


class Upload(Model):
    """A file that the document names."""

    path: str = Field(min_length=1, max_length=512, description="Relative, with `/`.", examples=["CHANGELOG.md"])
    text: str | None = Field(None, description="What it holds, when that is text.")
    base64: str | None = Field(None, description="What it holds, in base64.")


class Submission(ProjectFile):
    """A project file, and what comes along with it. It is judged whole, as `officina submit` judges it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"title": "Release notes", "brief": "Turn CHANGELOG.md into notes.", "rehearse": True}]
        }
    )

    files: list[Upload] = Field(default_factory=list, max_length=MAX_FILES)
    rehearse: bool = Field(False, description="The stand-in plays the model, and no world call is made.")
    plan_only: bool = Field(False, description="The plan waits until it is started.")
    script: Any = Field(None, description="A stand-in script: a path among the files, or the script itself.")

    @model_validator(mode="wrap")
    @classmethod
    def _as_it_came(cls, value: Any, handler: Any) -> "Submission":
        """What comes along is judged here; the project itself where all its faults are found at once."""
        if not isinstance(value, dict):
            return handler(value)  # type: ignore[no-any-return]
        beside = {name: value[name] for name in ("files", "rehearse", "planOnly") if name in value}
        judged = handler({"title": "t", **beside})
        rest = {name: one for name, one in value.items() if name not in beside}
        object.__setattr__(judged, "_document", rest)
        return judged  # type: ignore[no-any-return]

    _document: dict[str, Json] = PrivateAttr(default_factory=dict)

    @property
    def document(self) -> dict[str, Json]:
        return self._document


class SubmittedView(Out):
    id: str
    status: ProjectStatus
    tasks: dict[str, str] = Field(description="Task key -> id.")
    created: bool = Field(description="False: this key was used for this very project before; this is it.")


@router.post(
    "/projects",
    response_model=SubmittedView,
    status_code=201,
    summary="Submit a project",
    responses={200: {"model": SubmittedView, "description": "It was there already."}, **problems(408, 409, 413, 415)},
)
def submit_project(
    asking: Writing,
    body: Submission,
    idempotency_key: Annotated[
        str | None,
        Header(min_length=1, max_length=200, description="The same key and project give the same project; as `key`."),
    ] = None,
) -> Reply:
    """Checks it whole, stores it, starts it. Nothing is written when anything is wrong; every fault is named. Hooks of
    agents it brings along take a person's session."""
    files = submission.uploads([one.model_dump(exclude_none=True) for one in body.files])
    made = submission.submit(
        asking.settings,
        skills(),
        dict(body.document),
        files,
        key=idempotency_key,
        rehearse=body.rehearse,
        plan_only=body.plan_only,
        person=asking.who.person,
    )
    view = made.to_json() | {"created": made.created}
    return Reply(view, 201 if made.created else 200, {"location": f"/api/studio/projects/{made.project_id}"})


class Beginning(Model):
    """How a project whose plan waits begins."""

    plan: dict[str, Any] | None = Field(
        None, description="Another plan to start in its place: {goal?, summary?, tasks}, judged whole."
    )


class Begun(Out):
    id: str
    status: ProjectStatus
    tasks: dict[str, str] = Field(description="Task key -> id.")


@router.post(
    "/projects/{project_id}/start",
    response_model=Begun,
    summary="Start a plan that waits",
    responses=problems(409, 412),
)
def start_project(asking: Writing, project_id: ProjectId, body: Beginning, if_match: IfMatch = None) -> Reply:
    """Once: of two who start it the second is told so. After it the plan is frozen."""
    with asking.database.read() as connection:
        whole = lookup.project_id(connection, project_id, asking.owner)
    ids = held.start(asking.settings, skills(), whole, body.plan, version=version_of(if_match))
    return Reply({"id": whole, "status": "running", "tasks": ids})


#: Judged by its own checks, which name every fault at its place.
PlanDocument = Annotated[
    dict[str, Json],
    Body(
        description="{goal?, summary?, tasks}, tasks as in a project file.",
        examples=[{"goal": "Notes", "tasks": [{"key": "write", "role": "writer", "instruction": "Write."}]}],
    ),
]


@router.patch(
    "/projects/{project_id}/plan",
    response_model=ProjectView,
    summary="Change a plan that waits",
    responses=problems(409, 412),
)
def change_plan(asking: Writing, project_id: ProjectId, body: PlanDocument, if_match: IfMatch = None) -> Reply:
    """Puts this plan in its place; `If-Match` takes the `version` of the plan that was read."""
    with asking.database.read() as connection:
        whole = lookup.project_id(connection, project_id, asking.owner)
    held.change(asking.settings, skills(), whole, body, version=version_of(if_match), by=asking.who.name)
    with asking.database.read() as connection:
        return Reply(views.project(connection, whole, asking.settings))


class Again(Model):
    """What should be different in the next plan."""

    note: Annotated[str, AfterValidator(storable)] = Field("", max_length=4_000, examples=["Two tasks are enough."])


@router.post(
    "/projects/{project_id}/plan",
    response_model=ProjectView,
    status_code=202,
    summary="Have another plan made in the place of one that waits",
    responses=problems(409, 412),
)
def plan_again(asking: Writing, project_id: ProjectId, body: Again, if_match: IfMatch = None) -> Reply:
    """The planner is told the brief, the plan and the note; its plan waits in turn."""
    with asking.database.read() as connection:
        whole = lookup.project_id(connection, project_id, asking.owner)
    held.again(asking.settings, skills(), whole, body.note, version=version_of(if_match), by=asking.who.name)
    with asking.database.read() as connection:
        return Reply(views.project(connection, whole, asking.settings), 202)


@router.post(
    "/projects/{project_id}/cancel", response_model=ProjectView, summary="Stop a project", responses=problems(409)
)
def cancel_project(asking: Writing, project_id: ProjectId) -> Reply:
    """What runs sees it at its next check."""
    with asking.database.read() as connection:
        whole = lookup.project_id(connection, project_id, asking.owner)
    control.cancel(asking.settings, whole, by=asking.who.name)
    with asking.database.read() as connection:
        return Reply(views.project(connection, whole, asking.settings))
