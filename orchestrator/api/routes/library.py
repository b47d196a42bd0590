"""What comes with the installation: presets, personas, skills."""

from typing import Any

from pydantic import Field

from orchestrator import calls, plugins
from orchestrator.api.auth import Asking, Invoking, Reading
from orchestrator.api.models import Out
from orchestrator.api.parts import router as make_router
from orchestrator.api.replies import Detail, Reply, problems
from orchestrator.api.shared import skills
from orchestrator.known import load_presets, registries
from orchestrator.wiring import unwired
from registry.base import Json, Model
from registry.errors import Refused
from registry.personas import PERSONAS, Persona
from registry.presets import Preset

router = make_router("library")


class PresetView(Out):
    id: str
    name: str
    runnable: bool = Field(description="Whether everything it names is there.")
    shipped: bool


class PresetList(Out):
    items: list[PresetView]
    faults: list[Detail] = Field(description="What is wrong with files that were left out.")


class PersonaView(Out):
    role: str
    name: str
    avatar: str
    voice: str
    values: list[str]
    skills: list[str] = Field(description="Beyond the baseline.")


class PersonaList(Out):
    items: list[PersonaView]


class SkillView(Out):
    """What an agent can use."""

    name: str
    title: str
    description: str
    input_schema: dict[str, Any]
    operations: list[str]
    wired: bool = Field(description="Whether everything it needs is there; else it answers that nothing happened.")


class Call(Model):
    """A call of a skill."""

    name: str = Field(min_length=1, max_length=80, examples=["math.evaluate"])
    input: dict[str, Json] = Field(default_factory=dict, examples=[{"expression": "2^10"}])
    project_id: str | None = Field(None, max_length=36, description="The project it is made for.")


class CallResult(Out):
    """How a call came out. A fault of the call is its result, with 200."""

    ok: bool
    output: Json = None
    error: str | None = None
    code: str | None = None
    retryable: bool | None = None
    signal_id: str | None = Field(None, description="The decision that waits for a person.")
    details: list[Detail] | None = None
    duration_ms: int


@router.get("/presets", response_model=PresetList, summary="Agents that can be named as they are")
def presets(asking: Reading) -> Reply:
    settings = asking.settings
    known = registries(settings, skills(), stand_in=settings.stand_in or not settings.has_model)
    found = load_presets(settings, known)
    faults = [
        {"path": fault.path.rpartition("/")[2], "code": fault.code, "message": fault.message} for fault in found.faults
    ]
    return Reply({"items": [_preset(id_, one) for id_, one in found.items()], "faults": faults})


@router.get("/personas", response_model=PersonaList, summary="The nine people a team is made of")
def personas(asking: Reading) -> Reply:
    return Reply({"items": [_persona(one) for one in PERSONAS.values()]})


@router.get(
    "/skills",
    response_model=list[SkillView],
    summary="Every registered skill, and those of your plugins, with their schemas",
)
def list_skills(asking: Reading) -> Reply:
    found = list(skills())
    missing = unwired(asking.settings, found)
    shown = [skill.definition(wired=skill.name not in missing) for skill in found]
    return Reply([*shown, *plugins.definitions(asking.settings)])


@router.post(
    "/skills/invoke",
    response_model=CallResult,
    summary="Call a skill once",
    responses=problems(408, 409, 413, 415, 429),
)
def invoke(asking: Invoking, body: Call) -> Reply:
    """In a session it is a person's own act; with a key it is an agent's call, and what acts on the world waits for a
    person: with a project the decision is put on the desk."""
    if body.name not in skills():
        raise Refused(f"there is no skill {body.name[:80]!r}", code="unknown_skill")
    return Reply(_call(asking, body))


def _call(asking: Asking, body: Call) -> dict[str, Json]:
    return calls.made_here(
        asking.settings,
        skills(),
        body.name,
        body.input,
        as_agent=not asking.who.person,
        project=body.project_id,
    ).to_json()


def _preset(id_: str, preset: Preset) -> dict[str, Json]:
    agent = preset.agent
    return {
        "id": id_,
        "name": agent.name,
        "role": agent.role,
        "description": agent.description,
        "tier": agent.tier,
        "skills": list(agent.skills),
        "packs": list(agent.enabled_packs()),
        "permissions": dict(agent.permissions),
        "budget": agent.budget.to_json() if agent.budget else None,
        "shipped": preset.shipped,
        "runnable": not preset.lacks,
        "lacks": [finding.to_json() for finding in preset.lacks],
    }


def _persona(persona: Persona) -> dict[str, Json]:
    return {
        "role": persona.role,
        "name": persona.name,
        "avatar": persona.avatar,
        "voice": persona.voice,
        "values": list(persona.values),
        "skills": list(persona.skills),
    }
