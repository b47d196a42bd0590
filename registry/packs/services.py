"""What an agent with the pack `core` has beside the pack's own tools: `load_tools` and `load_skill` (spec: engine 15).

They are made for a run by its run set and stand in no pack: nobody can switch one off by its pack's `disabledTools`.
"""

from dataclasses import replace
from functools import cache
from typing import Annotated, Final

from pydantic import Field, StringConstraints

from registry.base import Json, Model
from registry.errors import SkillError
from registry.skills.context import SkillContext
from registry.skills.contract import SchemaContract
from registry.skills.skill import Skill, tool

#: The pack that brings them.
PACK: Final = "core"
LOAD_TOOLS: Final = "load_tools"
LOAD_SKILL: Final = "load_skill"
#: Another name of `load_skill`, which models know from elsewhere.
SKILL_ALIAS: Final = "Skill"
#: Every name that is taken by them.
NAMES: Final = frozenset({LOAD_TOOLS, LOAD_SKILL, SKILL_ALIAS})

_ABOUT_TOOLS: Final = (
    "Shows you tools that are listed to you by name only. Give their exact names; you get what each does and takes, "
    "and can call it from your next turn on, for the rest of the run. It calls none of them."
)


@cache
def load_tools(most: int) -> Skill:
    """The service `load_tools`, for at most so many names in one call."""
    names: dict[str, Json] = {
        "type": "array",
        "items": {"type": "string", "minLength": 1, "maxLength": 120},
        "minItems": 1,
        "maxItems": most,
    }
    schema = {"type": "object", "properties": {"names": names}, "required": ["names"], "additionalProperties": False}
    return Skill(LOAD_TOOLS, "Load tools", _ABOUT_TOOLS, SchemaContract(schema), _load_tools, timeout_s=5)


def _load_tools(given: dict[str, Json], context: SkillContext) -> Json:
    if context.shelf is None:
        raise SkillError("tool_failed", "tools are loaded by the run of an agent, and this call is part of none")
    found, unknown = context.shelf.load(given["names"])
    cards = [{"name": one.wire_name, "description": one.description, "input": one.input.schema} for one in found]
    return {"loaded": [one.name for one in found], "unknown": unknown, "tools": cards}


class LoadSkill(Model):
    name: Annotated[str, StringConstraints(min_length=1, max_length=80)]
    file: Annotated[str, StringConstraints(min_length=1, max_length=512)] | None = Field(
        None, description="A supporting file of the document, as `files` names it; left out: its instructions."
    )


@tool(
    LOAD_SKILL,
    title="Read a document",
    timeout_s=10,
    needs=("documents",),
)
def _load_skill(asked: LoadSkill, context: SkillContext) -> Json:
    """Reads one of the documents that are listed to you: instructions for a kind of work, written by people. With a
    file, one of its supporting files. Read a document before you do work that it is about."""
    documents = context.documents
    if documents is None:
        raise SkillError("not_found", "there are no documents here")
    if asked.file is not None:
        return {"file": asked.file, "content": documents.file(asked.name, asked.file)}
    instructions, files = documents.instructions(asked.name)
    return {"instructions": instructions, "files": list(files)}


load_skill: Final = replace(_load_skill, aliases=(SKILL_ALIAS,))
