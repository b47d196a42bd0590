"""Skills whose effects are counted outside every process: one for each class of effect, and one that a person gates.

A deed may also do what hostile or broken tools do: kill its process, fall asleep for ever, hold the interpreter.
`install()` puts them into the catalogue of the process that calls it.
"""

import ctypes
import json
import os
import signal
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from registry.base import Model
from registry.skills import catalogue
from registry.skills.context import SkillContext
from registry.skills.skill import Skill, skill

#: The file that holds a line for each effect.
PLACE = "PROOF_OF_EFFECTS"


class Deed(Model):
    """What a call does."""

    key: str
    #: Milliseconds it takes.
    ms: int = 0
    then: Literal["return", "die", "die once", "sleep", "seize"] = "return"


class Done(Model):
    """What it says afterwards."""

    key: str
    pid: int


def _do(kind: str, deed: Deed, context: SkillContext) -> Done:
    time.sleep(deed.ms / 1000)
    again = any(one.key == deed.key for one in effects(Path(os.environ[PLACE])))
    line = {"kind": kind, "key": deed.key, "run": context.caller.run_id, "pid": os.getpid(), "at": time.time()}
    log = os.open(os.environ[PLACE], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.write(log, (json.dumps(line) + "\n").encode())
    os.close(log)
    if deed.then == "die" or (deed.then == "die once" and not again):
        os.kill(os.getpid(), signal.SIGKILL)
    while deed.then == "sleep":
        time.sleep(3600)  # looks at nothing, as a call into foreign code does
    if deed.then == "seize":
        ctypes.PyDLL(None).sleep(3600)  # keeps the interpreter to itself: no other thread runs
    return Done(key=deed.key, pid=os.getpid())


@skill("proof.once", title="Once", effect="once", timeout_s=2, catalogued=False)
def once(deed: Deed, context: SkillContext) -> Done:
    """Does something that must never happen twice."""
    return _do("once", deed, context)


@skill("proof.asked", title="Asked", operations={"process"}, effect="once", timeout_s=30, catalogued=False)
def asked(deed: Deed, context: SkillContext) -> Done:
    """Does something that must never happen twice, and only when a person said yes."""
    return _do("asked", deed, context)


@skill("proof.again", title="Again", effect="idempotent", timeout_s=2, catalogued=False)
def again(deed: Deed, context: SkillContext) -> Done:
    """Does something that may be done again."""
    return _do("again", deed, context)


@skill("proof.look", title="Look", effect="pure", timeout_s=2, catalogued=False)
def look(deed: Deed, context: SkillContext) -> Done:
    """Only looks."""
    return _do("look", deed, context)


SKILLS: list[Skill] = [once, asked, again, look]


def install() -> None:
    """Adds the skills to the catalogue of this process."""
    shipped = catalogue.catalogue
    if getattr(shipped, "with_proofs", False):
        return

    def extended() -> list[Skill]:
        return [*shipped(), *SKILLS]

    extended.with_proofs = True  # type: ignore[attr-defined]
    catalogue.catalogue = extended


@dataclass(frozen=True)
class Effect:
    """One effect that happened."""

    kind: str
    key: str
    run: str
    pid: int
    at: float


def effects(place: Path) -> list[Effect]:
    """Everything that has happened so far; a line that is being written just now does not count yet."""
    try:
        lines = place.read_text(encoding="utf-8").split("\n")[:-1]
    except FileNotFoundError:
        return []
    return [Effect(**json.loads(line)) for line in lines]


def counted(place: Path, *kinds: str) -> Counter[str]:
    """How often each key's effect happened."""
    return Counter(one.key for one in effects(place) if not kinds or one.kind in kinds)


def deed(name: str, key: str, **more: Any) -> dict[str, Any]:
    """A model turn that makes one call."""
    return {"calls": [{"name": name, "args": {"key": key, **more}}]}
