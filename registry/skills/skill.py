"""A skill: a typed function an agent may call. A pack's tool and a catalogue skill are this one type.

    @skill("math.evaluate", title="Evaluate", operations=(), effect="pure", timeout_s=1)
    def evaluate(arguments: Evaluate, context: SkillContext) -> Evaluated:
        '''What the model reads about it.'''

The function gets its checked input and a context that carries who is calling, how long it may take, and the ports it
needs. It returns its output model, or raises `SkillError` with a code of the catalogue (spec: skills 3).
"""

import contextlib
import importlib
import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, get_type_hints

from pydantic import BaseModel

from registry.base import Json
from registry.skills.context import SkillContext
from registry.skills.contract import Contract, ModelContract
from registry.skills.metering import Rate

Effect = Literal["pure", "idempotent", "once"]

DOTTED = re.compile(r"^[a-z][a-z0-9]*\.[a-z][a-z0-9_]*$")
#: Pack tools and stub tools carry plain names.
PLAIN = re.compile(r"^[A-Za-z][A-Za-z0-9_-]*$")
#: Characters of a name: a server's tool has its server's id in front, and a model API takes no more than the second.
MAX_NAME, MAX_SERVED = 60, 64


@dataclass(frozen=True)
class Skill:
    """What the registry holds; made by `@skill`, or by hand for tools with a schema of someone else's."""

    name: str
    title: str
    #: What the model reads: the effect, the limits, and what it does not do.
    description: str
    input: Contract
    run: Callable[[Any, SkillContext], Any]
    #: None: any JSON comes back as it is.
    output: Contract | None = None
    #: What it does to the world; a function of the checked input where that differs.
    operations: frozenset[str] | Callable[[Any], Iterable[str]] = frozenset()
    effect: Effect | Callable[[Any], Effect] = "pure"
    #: Seconds one call may take.
    timeout_s: float = 120
    #: Which of its owner's rates a call counts against.
    rate: Rate | None = None
    #: Ports of the context it uses; a missing one gives a "not wired" answer, never a crash.
    needs: frozenset[str] = frozenset()
    catalogued: bool = False
    documented: bool = False
    cost_bearing: bool = False
    #: Its output is text from outside: `untrusted`, fenced as data for the model.
    open_world: bool = False
    #: Modules it imports at its first call: before its time begins, for a slow disk is not the call's fault.
    loads: tuple[str, ...] = ()
    #: Other names a call may have.
    aliases: tuple[str, ...] = ()
    #: Hidden from the model until `load_tools` names it, unless its agent says otherwise.
    deferred: bool = False
    #: The MCP server whose tool it is: `<server>__<tool>`.
    server: str | None = None
    #: The plugin whose tool it is: `<plugin>.<function>`.
    plugin: str | None = None
    #: Digest of the code behind it, where that may change while a person thinks: a yes is for this release alone.
    release: str | None = None
    #: Codes of its own faults, for the reference; those of every call (`invalid_input`, `timeout` ...) are left out.
    fails: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        own = "__" not in self.name and len(self.name) <= MAX_NAME
        served = self.server is not None and len(self.name) <= MAX_SERVED
        if not (DOTTED.match(self.name) or PLAIN.match(self.name)) or not (own or served):
            raise ValueError(f"{self.name!r} is no skill name: two lower-case parts with a dot, at most 60 characters")
        if len(self.description) > 1000:
            raise ValueError(f"{self.name}: a description has at most 1,000 characters")

    @property
    def wire_name(self) -> str:
        """The name a model API accepts; mapped back by table, never by replacing text."""
        return self.name.replace(".", "__")

    @property
    def world_acting(self) -> bool:
        return not callable(self.operations) and "world" in self.operations

    def load(self) -> None:
        """Imports what its calls need; what is not installed is left for the call to name."""
        for module in self.loads:
            with contextlib.suppress(ImportError):
                importlib.import_module(module)

    def operations_of(self, checked: Any) -> list[str]:
        found = self.operations(checked) if callable(self.operations) else self.operations
        return sorted(found)

    def effect_of(self, checked: Any) -> Effect:
        return self.effect(checked) if callable(self.effect) else self.effect

    def definition(self, *, wired: bool = True) -> dict[str, Json]:
        """SkillDef of the HTTP surface and `officina skills --json`.

        Args:
            wired: whether everything it needs is here; else it answers that nothing happened.
        """
        return {
            "name": self.name,
            "wireName": self.wire_name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.input.schema,
            "outputSchema": self.output.schema if self.output else {},
            "operations": ["varies"] if callable(self.operations) else sorted(self.operations),
            "effect": "varies" if callable(self.effect) else self.effect,
            "worldActing": self.world_acting,
            "catalogued": self.catalogued,
            "documented": self.documented,
            "costBearing": self.cost_bearing,
            "openWorld": self.open_world,
            "timeoutS": self.timeout_s,
            "wired": wired,
        }


def skill(
    name: str,
    *,
    title: str,
    timeout_s: float,
    operations: Iterable[str] | Callable[[Any], Iterable[str]] = (),
    effect: Effect | Callable[[Any], Effect] = "pure",
    rate: Rate | None = None,
    needs: Iterable[str] = (),
    catalogued: bool = True,
    documented: bool = True,
    cost_bearing: bool = False,
    open_world: bool = False,
    loads: Iterable[str] = (),
    fails: Iterable[str] = (),
) -> Callable[[Callable[[Any, SkillContext], Any]], Skill]:
    """Makes a `Skill` of a function: models from its annotations, the description from its docstring."""

    def decorate(function: Callable[[Any, SkillContext], Any]) -> Skill:
        hints = get_type_hints(function)
        given, made = hints[next(iter(inspect.signature(function).parameters))], hints["return"]
        return Skill(
            name=name,
            title=title,
            description=" ".join(inspect.cleandoc(function.__doc__ or "").split()),
            input=ModelContract(given),
            output=ModelContract(made) if isinstance(made, type) and issubclass(made, BaseModel) else None,
            run=function,
            operations=operations if callable(operations) else frozenset(operations),
            effect=effect,
            timeout_s=timeout_s,
            rate=rate,
            needs=frozenset(needs),
            catalogued=catalogued,
            documented=documented,
            cost_bearing=cost_bearing,
            open_world=open_world,
            loads=tuple(loads),
            fails=tuple(fails),
        )

    return decorate


#: `skill` for a tool of a pack: who holds the pack has it, so no list and no page of skills shows it.
tool = partial(skill, catalogued=False, documented=False)
