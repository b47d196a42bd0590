"""Who answers for the model of a project: a real one, or the stand-in where it was asked for."""

from orchestrator.settings import Settings
from registry.base import Json
from workers.models.model import ModelClient
from workers.models.spans import traced
from workers.models.standin import NAME, StandIn


def stands_in(settings: Settings, *, script: Json = None, rehearsal: bool = False) -> bool:
    """Whether the stand-in plays the model: the settings or a rehearsal ask for it, or a script does and no model is
    configured. With a model the script waits for a rehearsal."""
    return settings.stand_in or rehearsal or (script is not None and not settings.has_model)


def client_for(settings: Settings, *, script: Json = None, rehearsal: bool = False) -> ModelClient:
    """The model client of a project; cheap, safe from any thread.

    Args:
        script: The stand-in script of the project, as read; None: it has none.
        rehearsal: The project was submitted with `--rehearse`.

    Without a model and without a stand-in the client is the real one, whose calls say what is missing.
    """
    if stands_in(settings, script=script, rehearsal=rehearsal):
        return traced(StandIn(), NAME, "officina")
    from workers.models.client import OpenAIClient

    return OpenAIClient(settings)
