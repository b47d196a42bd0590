"""The pack `plan`: the steps an agent sets itself, and how far it is with them (spec: engine 15).

The plan of a project is its tasks; what this pack keeps is called an agenda everywhere but in the names of its tools.
"""

from collections.abc import Iterator
from typing import Annotated, Final

from pydantic import AfterValidator, Field, StringConstraints

from registry.base import Json, Model
from registry.packs.notes import Kept, wired, within
from registry.packs.pack import Pack
from registry.skills.context import SkillContext
from registry.skills.notebook import Agenda, AgendaItem, AgendaStatus, ItemStatus, NewItem
from registry.skills.secrets import refuse_secrets
from registry.skills.skill import tool
from registry.text import one_line

#: Tokens the note of an open plan may have.
NOTE_TOKENS: Final = 1_500
#: Characters of a result that the note repeats.
NOTED: Final = 120

Title = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(one_line)]


class PlannedItem(Model):
    title: Title
    description: Kept
    role: Annotated[str, StringConstraints(min_length=1, max_length=80), AfterValidator(one_line)] | None = None


class PlanSave(Model):
    overview: Kept
    items: Annotated[list[PlannedItem], Field(min_length=1, max_length=50)]


class SavedItem(Model):
    id: str
    order: int
    title: str


class SavedPlan(Model):
    plan_id: str
    status: AgendaStatus
    items: list[SavedItem]


class PlanItemUpdate(Model):
    item_id: Annotated[str, StringConstraints(min_length=1, max_length=80)] | Annotated[int, Field(ge=0)] = Field(
        description="its id, the first 8 or more characters of it, or its order"
    )
    status: ItemStatus
    result_note: Kept | None = Field(default=None, description="what came of it")


class UpdatedItem(Model):
    item_id: str
    status: ItemStatus
    plan_status: AgendaStatus


class PlanGet(Model):
    pass


class FoundPlan(Model):
    #: Whether there is a plan with something left to do.
    active: bool
    plan: dict[str, Json] | None
    untrusted: bool = False


@tool(
    "plan_save",
    title="Save the plan",
    timeout_s=5,
    effect="once",
    fails=("denied", "not_found"),
)
def plan_save(given: PlanSave, context: SkillContext) -> SavedPlan:
    """Writes down your plan for this task or conversation: an overview and 1 to 50 items in the order of the work.
    There is one plan; saved again it keeps its id and gets the new items, all pending. You are reminded of it as long
    as it is open."""
    numbered = list(enumerate(given.items))
    refuse_secrets(
        [
            ("overview", given.overview),
            *((f"items[{n}].title", item.title) for n, item in numbered),
            *((f"items[{n}].description", item.description) for n, item in numbered),
        ],
        where="a plan",
    )
    items = [NewItem(item.title, item.description, item.role) for item in given.items]
    agenda = wired(context.notebook).agendas.save(context.caller, given.overview, items)
    shown = [SavedItem(id=item.id, order=item.order, title=item.title) for item in agenda.items]
    return SavedPlan(plan_id=agenda.id, status=agenda.status, items=shown)


@tool(
    "plan_item_update",
    title="Tick an item",
    timeout_s=5,
    effect="idempotent",
    fails=("conflict", "denied", "not_found"),
)
def plan_item_update(given: PlanItemUpdate, context: SkillContext) -> UpdatedItem:
    """Says how far an item of your plan is: pending, in_progress, completed, failed or cancelled, with a note of what
    came of it."""
    refuse_secrets([("resultNote", given.result_note)], where="a plan")
    agendas = wired(context.notebook).agendas
    agenda, item = agendas.mark(context.caller, given.item_id, given.status, given.result_note)
    return UpdatedItem(item_id=item.id, status=item.status, plan_status=agenda.status)


@tool("plan_get", title="Read the plan", timeout_s=5)
def plan_get(_given: PlanGet, context: SkillContext) -> FoundPlan:
    """Your plan with all its items; `plan` is null when there is none."""
    agenda = wired(context.notebook).agendas.find(context.caller)
    if agenda is None:
        return FoundPlan(active=False, plan=None)
    shown = {
        "planId": agenda.id,
        "overview": agenda.overview,
        "status": agenda.status,
        "items": [_shown(item) for item in agenda.items],
    }
    return FoundPlan(active=agenda.status != "completed", plan=shown, untrusted=agenda.untrusted)


def _shown(item: AgendaItem) -> dict[str, Json]:
    facts: dict[str, Json] = {"id": item.id, "order": item.order, "title": item.title, "description": item.description}
    return facts | {"role": item.role, "status": item.status, "resultNote": item.result_note}


def _note(context: SkillContext) -> str | None:
    """The open plan. A child cannot work it off, so it does not read it unasked."""
    if context.notebook is None or (context.policy is not None and context.policy.ancestors):
        return None
    agenda = context.notebook.agendas.find(context.caller)
    if agenda is None or agenda.status == "completed":
        return None
    listed = within(((line, agenda.untrusted) for line in _lines(agenda)), NOTE_TOKENS)
    head = f"Your open plan ({agenda.status}); keep it up to date with plan_item_update:"
    return None if listed is None else f"{head}\n{listed}"


def _lines(agenda: Agenda) -> Iterator[str]:
    yield " ".join(agenda.overview.split())[:400]
    for item in agenda.items:
        result = f": {' '.join(item.result_note.split())[:NOTED]}" if item.result_note else ""
        yield f"{item.order}. [{item.status}] {item.title}{result}"


PACK = Pack("plan", "write down a plan and work it off", (plan_save, plan_item_update, plan_get), note=_note)
