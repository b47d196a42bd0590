"""What a person may do to work under way: try a task again, fork, wake or repair a run."""

from typing import Annotated, Literal

from fastapi import Path
from pydantic import AfterValidator, Field

from orchestrator import control, lookup
from orchestrator.api.auth import Person, Writing
from orchestrator.api.models import Out
from orchestrator.api.parts import router as make_router
from orchestrator.api.replies import Reply, problems
from registry.base import Json, Model
from registry.text import storable

router = make_router("work")

TaskId = Annotated[str, Path(min_length=1, max_length=36, description="A task's id, or a part of it as of projects.")]
RunId = Annotated[str, Path(min_length=1, max_length=36, description="A run's id, or a part of it as of projects.")]


Text = Annotated[str, AfterValidator(storable)]


class Moved(Out):
    id: str


class Fork(Model):
    at: int = Field(ge=1, le=2**62, description="Number of the last event to keep.", examples=[17])


class Repair(Model):
    """What became of a call that may have happened."""

    how: Literal["result", "retry", "skip"]
    result: Json = Field(None, description="It happened, and this came of it; with `how: result`.")
    call_id: Text | None = Field(None, max_length=200, description="Which call, when the run has several.")
    reason: Text | None = Field(None, max_length=2_000, description="For the record.")


@router.post("/tasks/{task_id}/retry", response_model=Moved, summary="Run a failed task again", responses=problems(409))
def retry(asking: Writing, task_id: TaskId) -> Reply:
    """Dependents that were skipped open again."""
    with asking.database.read() as connection:
        whole = lookup.task_id(connection, task_id, asking.owner)
    control.retry(asking.settings, whole, by=asking.who.name)
    return Reply({"id": whole})


@router.post(
    "/runs/{run_id}/fork",
    response_model=Moved,
    status_code=201,
    summary="Run a task again from a checkpoint of an earlier run",
    responses=problems(409),
)
def fork(asking: Writing, run_id: RunId, body: Fork) -> Reply:
    """Messages, state and finished calls up to the checkpoint are kept. Gives the new run's id."""
    with asking.database.read() as connection:
        whole = lookup.run_id(connection, run_id, asking.owner)
    return Reply({"id": control.fork(asking.settings, whole, body.at, by=asking.who.name)}, 201)


@router.post("/runs/{run_id}/wake", response_model=Moved, summary="End a run's sleep", responses=problems(409))
def wake(asking: Writing, run_id: RunId) -> Reply:
    with asking.database.read() as connection:
        whole = lookup.run_id(connection, run_id, asking.owner)
    control.wake(asking.settings, whole, by=asking.who.name)
    return Reply({"id": whole})


@router.post(
    "/runs/{run_id}/repair",
    response_model=Moved,
    summary="Say what became of a call that may have happened",
    responses=problems(409),
)
def repair(asking: Person, run_id: RunId, body: Repair) -> Reply:
    """To run it again is a yes to it: this takes a person's session."""
    with asking.database.read() as connection:
        whole = lookup.run_id(connection, run_id, asking.owner)
    done = control.repair(
        asking.settings,
        whole,
        body.how,
        by=asking.who.name,
        call_id=body.call_id,
        result=body.result,
        reason=body.reason,
    )
    return Reply({"id": whole, "callId": done.call.call_id})
