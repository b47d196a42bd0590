"""Saved plans with blanks in them, and projects made of them."""

from typing import Annotated

from fastapi import Header, Path
from fastapi import Response as Empty
from pydantic import Field

from orchestrator import saved
from orchestrator.api.auth import Reading, Writing
from orchestrator.api.models import Out
from orchestrator.api.parts import Cursor, Limit, page_of, place_of
from orchestrator.api.parts import router as make_router
from orchestrator.api.replies import Reply, problems
from orchestrator.api.routes.projects import SubmittedView
from orchestrator.api.shared import skills
from registry.base import Json, Model
from registry.generators import Generator

router = make_router("generators")

GeneratorId = Annotated[str, Path(min_length=1, max_length=100)]


class GeneratorView(Out):
    id: str
    name: str
    description: str
    inputs: list[dict[str, Json]]
    steps: list[dict[str, Json]]
    version: int
    created_at: int
    built_in: bool = Field(description="It ships with the release: everybody can run it, and nobody delete it.")
    warnings: list[str] | None = Field(None, description="What its writer should look at; told once, when it is saved.")


class GeneratorPage(Out):
    items: list[GeneratorView]
    next: str | None
    built_in: list[GeneratorView] = Field(description="Those that ship; with the first page.")


class Filling(Model):
    inputs: dict[str, Json] = Field(default_factory=dict, description="A value for each blank.")
    rehearse: bool = Field(False, description="The stand-in plays the model, and no world call is made.")


@router.get("/generators", response_model=GeneratorPage, summary="Your generators, the eldest first")
def list_generators(asking: Reading, limit: Limit = 50, cursor: Cursor = None) -> Reply:
    found = saved.generator_list(asking.settings, limit=limit, after=place_of(cursor, int, str))
    return Reply(page_of(found, limit) | {"builtIn": saved.generators_built_in() if cursor is None else []})


@router.get("/generators/{generator_id}", response_model=GeneratorView, summary="One generator")
def show_generator(asking: Reading, generator_id: GeneratorId) -> Reply:
    return Reply(saved.generator(asking.settings, generator_id))


@router.post(
    "/generators", response_model=GeneratorView, status_code=201, summary="Save a generator", responses=problems(409)
)
def create_generator(asking: Writing, body: Generator) -> Reply:
    """Its steps may name skills of the catalogue only."""
    return Reply(saved.create_generator(asking.settings, skills(), body), 201)


@router.post(
    "/generators/{generator_id}/run",
    response_model=SubmittedView,
    status_code=201,
    summary="Start a project with its steps as the plan",
    responses={200: {"model": SubmittedView, "description": "It was there already."}, **problems(409)},
)
def run_generator(
    asking: Writing,
    generator_id: GeneratorId,
    body: Filling,
    idempotency_key: Annotated[str | None, Header(min_length=1, max_length=200)] = None,
) -> Reply:
    """Blanks are filled once: what a value says is never read again."""
    made = saved.run_generator(
        asking.settings, skills(), generator_id, dict(body.inputs), key=idempotency_key, rehearse=body.rehearse
    )
    return Reply(made.to_json() | {"created": made.created}, 201 if made.created else 200)


@router.delete(
    "/generators/{generator_id}", status_code=204, summary="Delete a generator of yours", responses=problems(409)
)
def remove_generator(asking: Writing, generator_id: GeneratorId) -> Empty:
    """Projects made of it keep their plan."""
    saved.remove_generator(asking.settings, generator_id)
    return Empty(status_code=204)
