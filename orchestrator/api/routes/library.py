"""What comes with the installation: presets and personas."""

from pydantic import Field

from orchestrator.api.auth import Reading
from orchestrator.api.models import Out
from orchestrator.api.parts import router as make_router
from orchestrator.api.replies import Detail, Reply
from orchestrator.api.shared import skills
from orchestrator.known import load_presets, registries
from registry.base import Json
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
