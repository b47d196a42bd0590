"""Plugins: skills, agents and hooks that others wrote, as a person reviews them (spec: skills 17).

    bundle = bundle_of(read(Path("weather")))  # a folder, a .zip or a .tar.gz (registry.archives); nothing is run
    bundle.review()                            # what a person should know
    granted(bundle.manifest, ["llm"])          # what they grant, of what it asks for

A bundle is a handful of texts and a `manifest.json`. Whatever it says of itself is data: what it may do is what a
person grants in their own hand, out of what it asks for.
"""

import ast
import hashlib
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Final, Literal

from pydantic import Field, StringConstraints, model_validator

from registry.agents import ROW_COLUMNS
from registry.base import Json, Model
from registry.errors import Fault, WrongUse
from registry.jsontext import JsonFault, digest, parse
from registry.skills.bundles import Capability, Line, PluginId, Version, judged_name
from registry.skills.reviews import findings

#: What the programs here offer a plugin; one that needs more says so in `minApi`.
API: Final = 1
MANIFEST: Final = "manifest.json"
MAX_SKILLS: Final = 20
#: What each capability lets a plugin's skill do to the world, as the gate judges it.
_OPERATIONS: Final = {
    "net": ("network", "world"),
    "secret": ("network", "world"),
    "files:read": ("fs.read",),
    "files:write": ("fs.write",),
}
#: Capabilities whose use leaves nothing behind.
_LEAVES_NOTHING: Final = frozenset({"files:read"})

FunctionName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,40}$")]


class PluginSkill(Model):
    """A skill of a plugin: `<plugin>.<function>`, where the function stands in the entry file."""

    name: Annotated[str, StringConstraints(min_length=3, max_length=60)]
    description: Annotated[str, StringConstraints(min_length=1, max_length=1000)]
    input_schema: dict[str, Json]
    output_schema: dict[str, Json] = Field(default_factory=dict)
    world_acting: bool = False
    timeout_s: float = Field(default=60, ge=1, le=120)

    @property
    def function(self) -> str:
        return self.name.partition(".")[2]


class Manifest(Model):
    """`manifest.json`. What a proposal writes about itself beside this (hashes, grants) counts for nothing."""

    id: PluginId
    name: Line
    version: Version
    description: Annotated[str, StringConstraints(max_length=500)] = ""
    skills: list[PluginSkill] = Field(default_factory=list, max_length=MAX_SKILLS)
    #: The Python file whose functions these are.
    entry: str | None = None
    capabilities: list[Capability] = Field(default_factory=list, max_length=20)
    #: Functions of the entry that agents may bind as `{"plugin": "<plugin>.<function>"}`.
    hooks: list[FunctionName] = Field(default_factory=list, max_length=20)
    #: Agents that can be spawned, each a definition with an id that begins with `<plugin>-`.
    agents: list[dict[str, Json]] = Field(default_factory=list, max_length=20)
    min_api: int = Field(default=1, ge=1)
    files: dict[str, str] | None = None
    installed: Literal[False] | None = None
    granted: list[str] | None = None

    @model_validator(mode="after")
    def _belongs_together(self) -> "Manifest":
        for one in self.skills:
            judged_name(one.name, self.id)
        for what, names in (("skill", [s.name for s in self.skills]), ("capability", self.capabilities)):
            if twice := next((name for name in names if names.count(name) > 1), None):
                raise ValueError(f"the {what} {twice} is there twice")
        if (self.skills or self.hooks) and self.entry is None:
            raise ValueError("skills and hooks need an entry: the Python file with their functions")
        if not (self.skills or self.hooks or self.agents):
            raise ValueError("it brings nothing: no skill, no hook, no agent")
        if self.granted:
            raise ValueError("granted has to be empty: a plugin grants itself nothing")
        return self


@dataclass(frozen=True)
class Bundle:
    """A plugin as it was read: its manifest, and its files by path."""

    manifest: Manifest
    files: Mapping[str, bytes]
    #: What lies there and is no part of it.
    left_out: tuple[str, ...] = ()

    @cached_property
    def hashes(self) -> dict[str, str]:
        """The sha256 of each file."""
        return {path: hashlib.sha256(content).hexdigest() for path, content in sorted(self.files.items())}

    @property
    def digest(self) -> str:
        """What tells this plugin's files from any others."""
        return digest(self.hashes)

    def review(self) -> dict[str, Json]:
        """What a person should know before they grant anything; facts only."""
        texts = {path: content.decode() for path, content in self.files.items()}
        found = findings(texts)
        return {
            "id": self.manifest.id,
            "name": self.manifest.name,
            "version": self.manifest.version,
            "description": self.manifest.description,
            "digest": self.digest,
            "skills": [
                {"name": one.name, "worldActing": "world" in operations(self.manifest.capabilities, one)}
                for one in self.manifest.skills
            ],
            "hooks": [f"{self.manifest.id}.{name}" for name in self.manifest.hooks],
            "agents": [str(agent.get("id")) for agent in self.manifest.agents],
            "capabilities": list(self.manifest.capabilities),
            "files": [
                {"path": path, "bytes": len(self.files[path]), "sha256": sha} for path, sha in self.hashes.items()
            ],
            "leftOut": list(self.left_out),
            "findings": [{"path": path, "line": line, "what": what} for path, line, what in found],
        }


def bundle_of(files: Mapping[str, bytes], left_out: Iterable[str] = ()) -> Bundle:
    """The bundle of these files.

    Raises:
        WrongUse: `plugin_invalid`: there is no manifest, or it cannot be read, or the entry lacks a function.
    """
    from registry.projects.faults import check

    if MANIFEST not in files:
        raise refused([Fault(MANIFEST, "missing", f"there is no {MANIFEST} at the top: that is no plugin")])
    try:
        document = parse(files[MANIFEST])
    except JsonFault as fault:
        raise refused([Fault(MANIFEST, "invalid_json", str(fault))]) from None
    manifest, faults = check(Manifest, document)
    if manifest is None or faults:
        raise refused([Fault(f"{MANIFEST}: {fault.path}", fault.code, fault.message) for fault in faults])
    bundle = Bundle(manifest, dict(files), tuple(left_out))
    if found := list(_unsound(bundle)):
        raise refused(found)
    return bundle


def granted(manifest: Manifest, grant: Iterable[str]) -> list[str]:
    """The grant a person wrote, in the order the plugin asks.

    Raises:
        WrongUse: `grant_invalid`: it grants what was not asked for.
    """
    given = list(grant)
    extra = [
        Fault(f"grant[{place}]", "not_asked_for", f"{one!r} is nothing that {manifest.id} asks for")
        for place, one in enumerate(given)
        if one not in manifest.capabilities
    ]
    if extra:
        raise WrongUse(str(extra[0]), code="grant_invalid", faults=extra)
    return [one for one in manifest.capabilities if one in given]


def operations(capabilities: Iterable[str], one: PluginSkill | None = None) -> frozenset[str]:
    """What a skill with these capabilities does to the world, whatever its manifest says of it."""
    found = {"world"} if one is not None and one.world_acting else set()
    for capability in capabilities:
        found.update(_OPERATIONS.get(capability, _OPERATIONS.get(capability.partition(":")[0], ())))
    return frozenset(found)


def effect(capabilities: Iterable[str], one: PluginSkill) -> Literal["pure", "once"]:
    """Whether a call may run again after a crash: only where nothing it can do leaves a trace."""
    return "once" if one.world_acting or set(capabilities) - _LEAVES_NOTHING else "pure"


def refused(faults: list[Fault]) -> WrongUse:
    first = f"{faults[0]}" + (f" (and {len(faults) - 1} more)" if len(faults) > 1 else "")
    return WrongUse(f"this plugin cannot be installed: {first}", code="plugin_invalid", faults=faults)


def _unsound(bundle: Bundle) -> Iterator[Fault]:
    """What the files lack of what the manifest says."""
    from registry.skills.structured import schema_faults

    manifest = bundle.manifest
    if manifest.min_api > API:
        yield Fault(
            "minApi", "too_new", f"it needs the plugin interface {manifest.min_api}, and this release has {API}"
        )
    for place, one in enumerate(manifest.skills):
        for name, schema in (("inputSchema", one.input_schema), ("outputSchema", one.output_schema)):
            for detail in schema_faults(closed_form(schema)):
                yield Fault(f"skills[{place}].{name}", "invalid_schema", f"{detail.path}: {detail.message}")
    for place, agent in enumerate(manifest.agents):
        if not str(agent.get("id", "")).startswith(f"{manifest.id}-"):
            yield Fault(f"agents[{place}].id", "foreign_name", f"has to begin with {manifest.id}-")
        if agent.get("hooks"):
            yield Fault(f"agents[{place}].hooks", "not_allowed", "an agent of a plugin binds no hooks")
        for name in ROW_COLUMNS:
            if agent.get(name) is not None:
                words = "an agent of a plugin is nobody's being and nobody's own"
                yield Fault(f"agents[{place}].{name}", "not_allowed", words)
    if manifest.entry is not None:
        yield from _functions(bundle, manifest.entry)


def _functions(bundle: Bundle, entry: str) -> Iterator[Fault]:
    if entry not in bundle.files or not entry.endswith(".py"):
        yield Fault("entry", "missing", f"{entry[:100]!r} is no Python file of it")
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(bundle.files[entry])
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        yield Fault(entry, "invalid_python", f"cannot be read as Python: {str(error)[:200]}")
        return
    there = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    wanted = [(f"skills[{place}].name", one.function) for place, one in enumerate(bundle.manifest.skills)]
    wanted += [(f"hooks[{place}]", name) for place, name in enumerate(bundle.manifest.hooks)]
    for path, name in wanted:
        if name not in there:
            yield Fault(path, "no_function", f"{entry} has no function {name} at its top level")


def closed_form(schema: dict[str, Any]) -> dict[str, Json]:
    """A schema as it is checked: of an object, whether it says so or not."""
    return {"type": "object"} | {key: value for key, value in schema.items() if key not in ("$schema", "$id")}


__all__ = [
    "API",
    "MANIFEST",
    "Bundle",
    "Manifest",
    "PluginSkill",
    "bundle_of",
    "closed_form",
    "effect",
    "granted",
    "operations",
    "refused",
]
