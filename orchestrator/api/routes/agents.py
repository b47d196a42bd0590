"""Saved agents: what projects and conversations name by id or name; and the citizens, whom an owner takes on."""

from typing import Annotated

from fastapi import Body, Path
from fastapi import Response as Empty
from pydantic import Field

from orchestrator import saved
from orchestrator.api.auth import Reading, Writing
from orchestrator.api.models import Out
from orchestrator.api.parts import Cursor, IfMatch, Limit, page_of, place_of, version_of
from orchestrator.api.parts import router as make_router
from orchestrator.api.replies import Reply, problems
from orchestrator.api.shared import skills
from registry.base import Json

router = make_router("agents")

AgentId = Annotated[str, Path(min_length=1, max_length=100)]
CitizenId = Annotated[str, Path(min_length=1, max_length=100, description="As in `ansel-brook`.")]
#: An agent definition is judged by its own checks, which name every fault at its place.
Definition = Annotated[
    dict[str, Json],
    Body(
        description="An agent definition, as in a project file, without an id.",
        examples=[{"name": "Ada", "role": "analyst", "instructions": "Count twice.", "skills": ["math.evaluate"]}],
    ),
]


class AgentView(Out):
    """A definition as it was written, and its row."""

    id: str
    name: str
    being_id: str | None = Field(description="Set: it is a being, which remembers across projects.")
    digest: str = Field(description="Of the definition; quoted it is the `ETag`.")
    created_at: int
    updated_at: int | None


class AgentPage(Out):
    items: list[AgentView]
    next: str | None


class CitizenView(Out):
    """One of the twelve: its definition, and the copy that is yours."""

    id: str
    name: str
    role: str
    avatar: str
    description: str
    voice: str
    backstory: str
    skills: list[str]
    being_id: str = Field(description="Its own id, which every copy keeps: memories are found by it.")
    agent_id: str | None = Field(description="The saved agent that is your copy; null: it is not adopted.")


class CitizenList(Out):
    items: list[CitizenView]


@router.get("/agents", response_model=AgentPage, summary="Your saved agents, the eldest first")
def list_agents(asking: Reading, limit: Limit = 50, cursor: Cursor = None) -> Reply:
    found = saved.agent_list(asking.settings, limit=limit, after=place_of(cursor, int, str))
    return Reply(page_of(found, limit))


@router.post("/agents", response_model=AgentView, status_code=201, summary="Save an agent", responses=problems(409))
def create_agent(asking: Writing, body: Definition) -> Reply:
    """Both levels of its checks have to pass. Hooks take a person's session."""
    return _reply(saved.create_agent(asking.settings, skills(), body, person=asking.who.person), 201)


@router.get("/agents/{agent_id}", response_model=AgentView, summary="One agent")
def show_agent(asking: Reading, agent_id: AgentId) -> Reply:
    return _reply(saved.agent(asking.settings, agent_id))


@router.patch(
    "/agents/{agent_id}", response_model=AgentView, summary="Change fields of an agent", responses=problems(409, 412)
)
def change_agent(asking: Writing, agent_id: AgentId, body: Definition, if_match: IfMatch = None) -> Reply:
    """Null takes a field away. What runs keeps the definition it began with."""
    person = asking.who.person
    return _reply(
        saved.change_agent(asking.settings, skills(), agent_id, body, version=version_of(if_match), person=person)
    )


@router.post(
    "/agents/{agent_id}/promote", response_model=AgentView, summary="Make a being of an agent", responses=problems(412)
)
def promote_agent(asking: Writing, agent_id: AgentId, if_match: IfMatch = None) -> Reply:
    """From now on it remembers across projects, what it has noted for itself so far included. There is no way back;
    one that is a being already stays as it is."""
    return _reply(saved.promote_agent(asking.settings, agent_id, version=version_of(if_match)))


@router.get("/citizens", response_model=CitizenList, summary="The twelve citizens, by name")
def list_citizens(asking: Reading) -> Reply:
    """Beings that every studio has. No team takes one before you adopt it."""
    return Reply({"items": saved.citizen_list(asking.settings)})


@router.get("/citizens/{citizen_id}", response_model=CitizenView, summary="One citizen")
def show_citizen(asking: Reading, citizen_id: CitizenId) -> Reply:
    return Reply(saved.citizen(asking.settings, citizen_id))


@router.post(
    "/citizens/{citizen_id}/adopt",
    response_model=AgentView,
    status_code=201,
    summary="Take a citizen on",
    responses=problems(409) | {200: {"model": AgentView, "description": "It was adopted before; this is your copy."}},
)
def adopt_citizen(asking: Writing, citizen_id: CitizenId) -> Reply:
    """A copy becomes one of your saved agents, taken for projects as they are. It remembers as the being it is, for you
    alone; deleted and adopted again it finds its memory as it was."""
    kept, created = saved.adopt_citizen(asking.settings, skills(), citizen_id)
    return _reply(kept, 201 if created else 200)


@router.delete("/agents/{agent_id}", status_code=204, summary="Delete an agent", responses=problems(412))
def remove_agent(asking: Writing, agent_id: AgentId, if_match: IfMatch = None) -> Empty:
    """Projects at work keep theirs."""
    saved.remove_agent(asking.settings, agent_id, version=version_of(if_match))
    return Empty(status_code=204)


def _reply(agent: dict[str, Json], status: int = 200) -> Reply:
    return Reply(agent, status, {"etag": f'"{agent["digest"]}"'})
