"""What a project file says, field by field (spec: project 1)."""

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from registry.agents import Approvals
from registry.base import Json, Model
from registry.permissions import Gate, Mode, Operation
from registry.plans import PlannedTask
from registry.projects.texts import NOT_BLANK, ONE_LINE

MAX_BRIEF = 4_000
MAX_TITLE = 120


class Input(Model):
    """A file or folder beside the project file, and what it is called below `inputs/` of the workspace."""

    path: Annotated[str, Field(min_length=1, max_length=4_096)]
    #: None: its own name.
    as_: Annotated[str, Field(min_length=1, max_length=400)] | None = Field(default=None, alias="as")


class ProjectBudget(Model):
    """Limits of the whole project; None is the setting of the installation."""

    max_cost_usd: Annotated[float, Field(gt=0, le=1_000_000)] | None = None
    #: Runs that work at once, children included.
    max_parallel: Annotated[int, Field(ge=1, le=10_000)] | None = None


def _short_input(value: Any) -> Any:
    return {"path": value} if isinstance(value, str) else value


def _no_free_world(permissions: dict[str, Gate]) -> dict[str, Gate]:
    if permissions.get("world") == "allow":
        raise PydanticCustomError("permission_world", "world cannot be allow: acting outside Officina always asks")
    return permissions


class ProjectFile(Model):
    """A project as a person wrote it. Without tasks, the planner makes them from the brief."""

    title: Annotated[str, Field(min_length=1, max_length=MAX_TITLE), ONE_LINE]
    brief: Annotated[str, Field(min_length=1, max_length=MAX_BRIEF), NOT_BLANK] | None = None
    inputs: list[Annotated[Input, BeforeValidator(_short_input)]] = Field(default_factory=list)
    tasks: list[PlannedTask] = Field(default_factory=list)
    #: Id -> definition, or `{file: path}`; read by `registry.projects.agents`.
    agents: dict[str, dict[str, Json]] = Field(default_factory=dict)
    mode: Mode | None = None
    permissions: Annotated[dict[Operation, Gate], AfterValidator(_no_free_world)] = Field(default_factory=dict)
    approvals: Approvals = "park"
    budget: ProjectBudget = ProjectBudget()
    #: 0 to 9, higher first.
    priority: Annotated[int, Field(ge=0, le=9)] = 5
    #: The same owner and key give the same project.
    key: Annotated[str, Field(min_length=1, max_length=200), ONE_LINE] | None = None
    #: A stand-in script beside the file.
    script: Annotated[str, Field(min_length=1, max_length=4_096)] | None = None


__all__ = ["MAX_BRIEF", "MAX_TITLE", "Input", "ProjectBudget", "ProjectFile"]
