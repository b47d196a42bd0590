"""Plugins as tests write them: a folder with a manifest and one Python file."""

import json
from pathlib import Path
from typing import Any

from orchestrator import plugins
from orchestrator.settings import Settings
from orchestrator.store.database import get_database
from registry.packs.names import taken
from registry.skills import catalogue
from registry.skills.context import Caller, SkillContext
from registry.skills.registry import SkillRegistry, SkillResult
from workers.plugins.tools import PluginTools
from workers.sandbox.process import find_sandbox

SKILLS = catalogue.build()
TAKEN = taken(SKILLS)
GREET = "def greet(given, officina):\n    return {'words': 'Hello ' + given['name']}\n"
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
WORDS = {"type": "object", "properties": {"words": {"type": "string"}}, "required": ["words"]}


def skill(name: str = "hello.greet", **fields: Any) -> dict[str, Any]:
    return {"name": name, "description": "Greets.", "inputSchema": NAME, "outputSchema": WORDS} | fields


def manifest(**fields: Any) -> dict[str, Any]:
    about = {"id": "hello", "name": "Hello", "version": "1.0.0", "entry": "hello.py", "skills": [skill()]}
    return about | fields


def written(folder: Path, code: str = GREET, files: dict[str, str] | None = None, **fields: Any) -> Path:
    """The folder of a plugin."""
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in {"hello.py": code, "manifest.json": json.dumps(manifest(**fields)), **(files or {})}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


class Workshop:
    """An owner's plugins, and calls of them."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings.model_copy(update={"plugins": settings.plugins.model_copy(update={"run": True})})
        self.database = get_database(settings)
        self.tools = PluginTools(self.settings, SKILLS, find_sandbox)
        self.left_out: list[tuple[str, str | None, str]] = []
        self.events: list[tuple[str, dict[str, Any]]] = []

    def install(self, source: Path, *grant: str, **options: Any) -> dict[str, Any]:
        return plugins.install(self.settings, source, grant, taken=TAKEN, **options)

    def registry(self, *ids: str, owner: str = "local") -> SkillRegistry:
        def told(plugin: str, tool: str | None, why: str) -> None:
            self.left_out.append((plugin, tool, why))

        return SkillRegistry(self.tools.skills(owner, ids or ("hello",), told))

    def call(self, given: dict[str, Any] | None = None, name: str = "hello.greet", **context: Any) -> SkillResult:
        about: dict[str, Any] = {
            "emit": lambda kind, data: self.events.append((kind, data)),
            "caller": Caller("run", run_id="r"),
        }
        return self.registry().invoke(name, given or {"name": "Ada"}, SkillContext(**(about | context)))

    @property
    def folder(self) -> Path:
        """Where the files of the plugin `hello` lie."""
        return plugins.folder(self.settings) / str(plugins.one(self.settings, "hello")["digest"])
