"""Tools of the packs that keep something, called as an agent's run calls them, over real rows."""

from typing import Any

from orchestrator.ports.notebook import notebook
from orchestrator.sections import Keeping
from orchestrator.store.database import Database
from registry.packs import PACKS
from registry.skills.context import Caller, SkillContext
from registry.skills.notebook import Embeddings, Notebook
from registry.skills.registry import SkillRegistry, SkillResult

KEPT = ("plan", "episodic-memory", "semantic-memory", "knowledge-memory", "pin-memory")
TOOLS = SkillRegistry(tool for name in KEPT for tool in PACKS[name].tools)


class Shelf:
    """What agents keep in one database."""

    def __init__(self, database: Database, embeddings: Embeddings | None = None, **keeping: Any) -> None:
        self.database = database
        self.notebook: Notebook = notebook(database, Keeping(**keeping), outside=["web.fetch"], embeddings=embeddings)

    def call(self, name: str, caller: Caller, /, specs: Any = None, **arguments: Any) -> SkillResult:
        return TOOLS.invoke(name, arguments, self.context(caller, specs))

    def does(self, name: str, caller: Caller, /, specs: Any = None, **arguments: Any) -> Any:
        """The output of a call that goes well."""
        result = self.call(name, caller, specs, **arguments)
        assert result.ok, f"{name}: {result.code}: {result.error}"
        return result.output

    def note(self, pack: str, caller: Caller, specs: Any = None) -> str | None:
        """What a pack says at a model call."""
        say = PACKS[pack].note
        assert say is not None
        return say(self.context(caller, specs))

    def context(self, caller: Caller, specs: Any = None) -> SkillContext:
        settings = {type(spec): spec for spec in ([] if specs is None else [specs])}
        return SkillContext(caller, notebook=self.notebook, specs=settings)


def agent(name: str = "ada", /, **about: Any) -> Caller:
    """An agent's run."""
    return Caller("run", **({"agent_id": name, "run_id": "r"} | about))
