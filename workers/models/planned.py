"""The plan the stand-in makes where a planner is wanted: research, then write, then edit."""

from collections.abc import Mapping

from registry.base import Json
from registry.jsontext import compact
from workers.models.smallest import fits

MAX_BRIEF = 1_500


def is_plan(schema: dict[str, Json]) -> bool:
    """Whether a structured answer with tasks is wanted."""
    properties = schema.get("properties")
    return isinstance(properties, Mapping) and "tasks" in properties


def plan(given: Json, schema: dict[str, Json]) -> Json | None:
    """The fixed plan for a brief, in as many words as the schema takes; None when it takes none of them."""
    brief = _brief(given)
    tasks = _tasks(brief)
    bare = [{key: task[key] for key in ("key", "title", "role", "instruction", "dependsOn")} for task in tasks]
    head = {"goal": brief, "summary": "[stand-in] Research, write, edit: a fixed plan, made by rule."}
    for candidate in (
        {**head, "tasks": tasks},
        {**head, "tasks": bare},
        {"goal": brief, "tasks": bare},
        {"tasks": bare},
    ):
        if fits(schema, candidate):
            return candidate
    return None


def _brief(given: Json) -> str:
    """What the project is for, from the planner's input: a text, or its field of that meaning."""
    if isinstance(given, Mapping) and isinstance(given.get("data"), Mapping):
        given = given["data"]
    if isinstance(given, Mapping):
        given = next((given[key] for key in ("brief", "goal", "text") if isinstance(given.get(key), str)), dict(given))
    words = given if isinstance(given, str) else compact(given)
    return words.strip()[:MAX_BRIEF] or "Nothing was asked."


def _tasks(brief: str) -> list[dict[str, Json]]:
    return [
        _task("research", "Research", "researcher", f"Collect what is known about: {brief}", "docs/notes.md"),
        _task("write", "Write", "writer", f"Write the first draft for: {brief}", "docs/draft.md", after=["research"]),
        _task("edit", "Edit", "editor", f"Check and finish the draft of: {brief}", "docs/final.md", after=["write"]),
    ]


def _task(
    key: str, title: str, role: str, instruction: str, deliverable: str, after: list[str] | None = None
) -> dict[str, Json]:
    return {
        "key": key,
        "title": title,
        "role": role,
        "instruction": instruction,
        "skills": ["docs.write_markdown"],
        "dependsOn": after or [],
        "deliverables": [deliverable],
    }
