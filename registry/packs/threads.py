"""The pack `threads`: which conversations there are (spec: engine 15)."""

from registry.base import Json, Model
from registry.errors import SkillError
from registry.packs.pack import Pack
from registry.skills.context import SkillContext
from registry.skills.skill import tool


class ListThreads(Model):
    """Nothing to say."""


@tool("thread_list", title="List threads", timeout_s=10)
def list_threads(_asked: ListThreads, context: SkillContext) -> list[dict[str, Json]]:
    """Lists the conversations of your owner, the latest first: who speaks in each, and which one this is."""
    if context.threads is None:
        raise SkillError("not_wired", "there are no conversations here")
    return context.threads.rows(context.caller)


PACK = Pack("threads", "see which conversations there are", (list_threads,))
