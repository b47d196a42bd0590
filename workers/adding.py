"""A file that somebody gave over HTTP to be looked things up in: opened, cut into passages, placed, kept."""

from pydantic import Field

from orchestrator import knowledge
from orchestrator.knowledge import ADD
from orchestrator.settings import Settings
from registry.base import Json, Model
from registry.errors import Refused, SkillError
from registry.skills.context import Caller, SkillContext
from registry.skills.contract import ModelContract
from registry.skills.notebook import Embeddings
from registry.skills.registry import SkillRegistry, SkillResult
from registry.skills.skill import Skill
from workers import reading


class Given(Model):
    name: str = Field(min_length=1, max_length=400)
    agent_id: str | None = None
    #: It is text, whatever its name says.
    plain: bool = False


def add(settings: Settings, given: Json, content: bytes) -> SkillResult:
    """Adds a file for the settings' owner; the same file twice is one source."""

    def run(file: Given, _context: SkillContext) -> Json:
        try:
            text, title = (content.decode(), file.name) if file.plain else reading.read(file.name, content)
            source = knowledge.Source(file.name, text, title, content)
            added = knowledge.add(
                settings, settings.owner, source, agent_id=file.agent_id, embeddings=embeddings_of(settings)
            )
        except Refused as refused:
            raise SkillError(refused.code, refused.message) from None
        return {"id": added.id, "how": added.how, "passages": added.passages}

    skill = Skill(
        name=ADD,
        title="Add a file",
        description="Reads a file and keeps its text to be looked up in.",
        input=ModelContract(Given),
        run=run,
        operations=frozenset(),
        effect="idempotent",
        timeout_s=reading.SECONDS + knowledge.EMBED_S,
    )
    return SkillRegistry([skill]).invoke(ADD, given, SkillContext(Caller("person", settings.owner)))


def embeddings_of(settings: Settings) -> Embeddings | None:
    """What places texts by their meaning, where something does."""
    if settings.embeddings is None:
        return None
    from workers.models.embedding import embeddings_for
    from workers.net.wiring import guard_for

    return embeddings_for(settings, guard_for(settings))
