"""`studio.author_agent` and `studio.author_generator`: agents and plans that an agent writes and its owner keeps.

Whose they are follows from the caller; what they name stays behind the same gates (spec: skills 7.27, 7.28).
"""

from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, StringConstraints

from registry.base import Model
from registry.errors import Detail, SkillError
from registry.generators import Generator
from registry.skills.bundles import author_skill_bundle
from registry.skills.context import SkillContext
from registry.skills.skill import Skill, skill
from registry.text import one_line

NOT_WIRED: Final = "no studio is wired to this call: nothing was saved"

SkillName = Annotated[str, StringConstraints(min_length=1, max_length=60)]


def _distinct(names: list[str]) -> list[str]:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"{twice} is named twice")
    return names


def _label(text: str) -> str:
    return one_line(text).strip()


class AuthorAgent(Model):
    name: Annotated[str, StringConstraints(min_length=1, max_length=60), AfterValidator(_label)]
    role: Annotated[str, StringConstraints(min_length=1, max_length=40), AfterValidator(_label)]
    description: str = Field(default="", max_length=500)
    skills: Annotated[list[SkillName], Field(min_length=1, max_length=30), AfterValidator(_distinct)]
    tier: Literal["fast", "standard", "deep"] | None = Field(
        default=None, description="at most your own; standard when left out, or yours where that is lower"
    )
    system_prompt: str = Field(default="", max_length=8000, description="the role's own when left out")
    avatar: str = Field(default="", max_length=8)


class AuthoredAgent(Model):
    agent_id: str | None = None
    name: str
    role: str
    skills: list[str]
    created: bool
    wired: bool = True
    note: str | None = None


@skill(
    "studio.author_agent",
    title="Author an agent",
    timeout_s=5,
    operations=("agents",),
    effect="idempotent",
    needs=("studio",),
    documented=False,
)
def author_agent(given: AuthorAgent, context: SkillContext) -> AuthoredAgent:
    """Saves a new agent for your owner: a name, a role, the skills it holds, a prompt. Tasks and other agents can then
    name it. One unknown skill refuses the whole, and names each unknown; a name that is taken is a conflict; an owner
    has at most 100. Skills that act on the world may be named and still ask a person at every call. It is private,
    and only its owner can change or delete it."""
    if context.studio is None:
        return AuthoredAgent(
            name=given.name, role=given.role, skills=given.skills, created=False, wired=False, note=NOT_WIRED
        )
    if unknown := context.studio.unknown(given.skills):
        words = f"there is no skill {', '.join(unknown)}"
        raise SkillError("invalid_input", f"skills: {words}", details=_places(given.skills, unknown))
    from registry.agents import AgentDefinition
    from registry.authored import at_most
    from registry.personas import persona_of, system_prompt

    prompt = given.system_prompt.strip() or system_prompt(persona_of(given.role))
    agent = AgentDefinition.model_validate(
        {
            "id": "new",  # the row's id takes its place
            "name": given.name,
            "role": given.role,
            "description": given.description,
            "avatar": given.avatar,
            # What a model wrote is no template: a brace before a dollar sign would be filled in.
            "instructions": prompt.replace("{$", "{ $"),
            "tier": at_most(given.tier, context.caller.tier if context.caller.kind == "run" else "deep"),
            "skills": given.skills,
        }
    )
    agent_id, created = context.studio.save_agent(context.caller, agent)
    return AuthoredAgent(agent_id=agent_id, name=given.name, role=given.role, skills=given.skills, created=created)


class AuthoredGenerator(Model):
    generator_id: str | None = None
    name: str
    #: Keys of its steps, in order.
    steps: list[str]
    warnings: list[str] = Field(default_factory=list)
    wired: bool = True
    note: str | None = None


@skill(
    "studio.author_generator",
    title="Author a generator",
    timeout_s=5,
    effect="idempotent",
    needs=("studio",),
    documented=False,
)
def author_generator(given: Generator, context: SkillContext) -> AuthoredGenerator:
    """Saves a plan with blanks for your owner, to be run with other inputs each time: at most 12 inputs and 12 steps.
    A step is a task: key, title, role, instruction, catalogue skills, and the keys of the steps it waits for. `{{key}}`
    in a title or an instruction is filled with the input of that key, once; there are no expressions. Inputs that no
    step uses are warned about. A name that is taken is a conflict; an owner has at most 100."""
    steps = [step.key for step in given.steps]
    if context.studio is None:
        return AuthoredGenerator(name=given.name, steps=steps, wired=False, note=NOT_WIRED)
    generator_id = context.studio.save_generator(context.caller, given)
    from registry.generators import unused

    warnings = [f"no step uses the input {key}" for key in unused(given)]
    return AuthoredGenerator(generator_id=generator_id, name=given.name, steps=steps, warnings=warnings)


def _places(names: list[str], unknown: list[str]) -> list[Detail]:
    return [
        Detail(f"skills[{place}]", f"there is no skill {name}") for place, name in enumerate(names) if name in unknown
    ]


SKILLS: tuple[Skill, ...] = (author_agent, author_generator, author_skill_bundle)

__all__ = ["SKILLS", "author_agent", "author_generator"]
