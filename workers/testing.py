"""For tests of skills, ours and other people's: a bench that calls one as the engine does, with a real workspace."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orchestrator.workspaces.jail import JailedWorkspace
from registry.base import Json
from registry.skills.context import Authority, Caller, SkillContext
from registry.skills.registry import SkillRegistry, SkillResult
from registry.skills.skill import Skill


class SkillBench:
    """Calls a skill through the one `invoke`: input, gate, time and output are judged as in a run.

    Args:
        skill: what is tried.
        folder: where its workspace lies; `tmp_path` of a test.
        caller: who calls; a run of an agent when left out.
        ports: further ports of the context by name (`net`, `memory`, `llm` ...): real ones, or a stub of a test.

    Attributes:
        events: (kind, data) of every event it wrote, in order.
    """

    def __init__(self, skill: Skill, folder: Path, *, caller: Caller | None = None, **ports: Any) -> None:
        self.skill = skill
        self.folder = folder
        self.workspace = JailedWorkspace(folder)
        self.events: list[tuple[str, dict[str, Json]]] = []
        self._caller = caller or Caller("run", run_id="run", call_id="call", agent_name="Bench")
        self._ports = ports
        self._registry = SkillRegistry([skill])

    def call(self, arguments: Mapping[str, Json] | None = None, /, **more: Json) -> SkillResult:
        """One call; `arguments` are camelCase, as a model writes them. A person's yes stands behind it."""
        context = SkillContext(
            self._caller,
            workspace=self.workspace,
            emit=lambda kind, data: self.events.append((kind, data)),
            **self._ports,
        )
        return self._registry.invoke(self.skill.name, {**(arguments or {}), **more}, context, Authority(None))

    def output(self, arguments: Mapping[str, Json] | None = None, /, **more: Json) -> Json:
        """The output of a call that has to succeed.

        Raises:
            AssertionError: it did not; with what it said.
        """
        result = self.call(arguments, **more)
        assert result.ok, f"{result.code}: {result.error}"
        return result.output

    def write(self, path: str, text: str) -> None:
        """Puts a file into the workspace."""
        self.workspace.write(path, text.encode(), max_bytes=len(text.encode()))

    def read(self, path: str) -> str:
        """The text of a file of the workspace."""
        return (self.folder / path).read_text(encoding="utf-8")

    def check(self, example: Mapping[str, Json]) -> None:
        """Holds the skill to the rules every skill keeps.

        Args:
            example: an input that is good.

        Raises:
            AssertionError: it breaks one; the message says which.
        """
        definition = self.skill.definition()
        assert self.skill.description, "a skill says what it does: give its function a docstring"
        assert definition["inputSchema"].get("additionalProperties") is False, "its input has to refuse unknown fields"
        assert self.skill.output is not None, "its function has to name the model it returns"
        refused = self.call({**example, "approved": True})
        assert refused.code == "invalid_input", "no input can approve anything"
        bare = self._registry.invoke(self.skill.name, dict(example), SkillContext(self._caller), Authority(None))
        assert bare.code != "tool_failed", "a port that is missing must not make it crash"
        if bare.ok and self.skill.needs:
            assert isinstance(bare.output, dict), "its output is an object"
            assert bare.output.get("wired") is False, "without its ports it says `wired: false`"


__all__ = ["SkillBench"]
