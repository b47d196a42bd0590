"""Plugins of an owner: reviewed, installed with a grant, kept from running, removed (spec: skills 17).

The files lie in a folder that is called by their digest; the row says which folder counts, with the hash of every
file and the grant. So an install that dies half-way leaves a folder that nobody looks at, and a new version takes the
old one's place in one statement. Whoever runs a plugin reads its files through here: bytes that are not those a person
reviewed are never handed out, and disable it.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Row

from orchestrator.settings import Settings
from orchestrator.store import audit
from orchestrator.store import plugins as moves
from orchestrator.store.database import get_database, is_new
from registry import archives
from registry.base import Json
from registry.errors import Fault, Refused, WrongUse
from registry.ids import new_id
from registry.plugins import Bundle, Manifest, closed_form, effect, granted, operations, refused
from registry.skills.contract import SchemaContract
from registry.skills.skill import Skill

#: Plugins one owner may have.
MAX_PLUGINS: Final = 50
_NEW: Final = ".new-"
#: What a changed plugin is disabled with.
CHANGED: Final = "its files are not those that were installed"


class Changed(Exception):
    """The files of a plugin are not those that were reviewed; the message says which."""


@dataclass(frozen=True)
class Installed:
    """A plugin of an owner that may run."""

    owner_id: str
    id: str
    digest: str
    document: Mapping[str, Json]
    files: Mapping[str, str]
    granted: tuple[str, ...]

    @cached_property
    def manifest(self) -> Manifest:
        return Manifest.model_validate(dict(self.document))

    @property
    def tools(self) -> frozenset[str]:
        return frozenset(str(one["name"]) for one in self.document.get("skills") or ())


def folder(settings: Settings) -> Path:
    return (settings.plugins.root or settings.home / "plugins").expanduser()


def review(source: Path) -> dict[str, Json]:
    """What a person should know of a plugin before they install it; nothing of it is run.

    Raises:
        WrongUse: `plugin_invalid`.
    """
    return archives.read(source).review()


def install(
    settings: Settings, source: Path, grant: Sequence[str], *, taken: frozenset[str], expect: str | None = None
) -> dict[str, Json]:
    """Installs a plugin with what a person grants it, or another version in its place.

    Args:
        taken: names of tools, as models see them, that no plugin may have.
        expect: the digest that was reviewed; None: whatever is there.

    Raises:
        WrongUse: `plugin_invalid`, `grant_invalid`: with every fault, and nothing was installed.
        Refused: `quota`; `changed` when these are not the files that were reviewed.
    """
    bundle = archives.read(source)
    if expect is not None and expect != bundle.digest:
        raise Refused(f"these are not the files that were reviewed: their digest is {bundle.digest}", code="changed")
    manifest = bundle.manifest
    given = granted(manifest, grant)
    if faults := [*_taken(manifest, taken), *_agents(settings, manifest)]:
        raise refused(faults)
    values = {
        "version": manifest.version,
        "digest": bundle.digest,
        "manifest": manifest.to_json(),
        "files": bundle.hashes,
        "granted": given,
    }

    def write(connection: Connection) -> Row[Any] | None:
        there = {row.plugin_id for row in moves.all_of(connection, settings.owner)}
        if manifest.id not in there and len(there) >= MAX_PLUGINS:
            raise Refused(f"{MAX_PLUGINS} plugins are installed already; remove one first", code="quota")
        moves.save(connection, settings.owner, manifest.id, values)
        audit.record(
            connection, settings.owner, settings.by, "plugin.installed", manifest.id, digest=values.get("digest")
        )
        return moves.get(connection, settings.owner, manifest.id)

    with _alone(settings) as root:
        _lay(root, bundle)
        row = get_database(settings).write(write)
        _sweep(settings, root)
    assert row is not None
    return _view(row)


def listed(settings: Settings) -> list[dict[str, Json]]:
    """The owner's plugins; one whose files changed is disabled when it is looked at."""
    found = []
    for row in _rows(settings):
        if row.status == "enabled":
            try:
                read(settings, _installed(row))
            except Changed:
                row = _one(settings, row.plugin_id)
        found.append(_view(row))
    return found


def one(settings: Settings, plugin_id: str) -> dict[str, Json]:
    """
    Raises:
        Refused: `unknown_plugin`.
    """
    return _view(_one(settings, plugin_id))


def disable(settings: Settings, plugin_id: str) -> dict[str, Json]:
    """Keeps a plugin from running; calls under way end by themselves.

    Raises:
        Refused: `unknown_plugin`.
    """
    _one(settings, plugin_id)

    def write(connection: Connection) -> None:
        if moves.disable(connection, settings.owner, plugin_id, "its owner disabled it"):
            audit.record(connection, settings.owner, settings.by, "plugin.disabled", plugin_id)

    get_database(settings).write(write)
    return one(settings, plugin_id)


def enable(settings: Settings, plugin_id: str) -> dict[str, Json]:
    """Lets a plugin run again whose files are those that were installed.

    Raises:
        Refused: `unknown_plugin`; `changed`: it has to be reviewed and installed anew.
    """
    row = _one(settings, plugin_id)
    try:
        read(settings, _installed(row))
    except Changed as changed:
        raise Refused(f"{changed}: review and install it anew", code="changed") from None

    def write(connection: Connection) -> None:
        if moves.enable(connection, settings.owner, plugin_id, row.digest):
            audit.record(connection, settings.owner, settings.by, "plugin.enabled", plugin_id, digest=row.digest)

    get_database(settings).write(write)
    return one(settings, plugin_id)


def remove(settings: Settings, plugin_id: str) -> None:
    """Forgets a plugin and deletes its files.

    Raises:
        Refused: `unknown_plugin`.
    """

    def write(connection: Connection) -> str | None:
        gone = moves.remove(connection, settings.owner, plugin_id)
        if gone is not None:
            audit.record(connection, settings.owner, settings.by, "plugin.removed", plugin_id)
        return gone

    with _alone(settings) as root:
        if get_database(settings).write(write) is None:
            raise _unknown(plugin_id)
        _sweep(settings, root)


def enabled(settings: Settings, owner_id: str) -> dict[str, Installed]:
    """The plugins of an owner that may run, by id; none where there is no database yet."""
    return {row.plugin_id: _installed(row) for row in _rows(settings, owner_id) if row.status == "enabled"}


def skills(settings: Settings) -> list[Skill]:
    """The skills of the owner's plugins, as they are described; none of them can be run here."""
    return [
        Skill(
            name=one.name,
            title=one.name,
            description=one.description,
            input=SchemaContract(closed_form(one.input_schema)),
            output=SchemaContract(one.output_schema) if one.output_schema else None,
            run=lambda _given, _context: None,
            operations=operations(plugin.granted, one),
            effect=effect(plugin.granted, one),
            timeout_s=one.timeout_s,
            open_world=any(capability.startswith("net:") for capability in plugin.granted),
            plugin=plugin.id,
            release=plugin.digest,
        )
        for plugin in enabled(settings, settings.owner).values()
        for one in plugin.manifest.skills
    ]


def skill(settings: Settings, name: str) -> Skill | None:
    """The owner's plugin skill of this dotted or wire name."""
    if not any(mark in name for mark in (".", "__")):
        return None
    return next((one for one in skills(settings) if name in (one.name, one.wire_name)), None)


def definitions(settings: Settings) -> list[dict[str, Json]]:
    """The skills of the owner's plugins as SkillDef, beside those of the catalogue."""
    return [one.definition(wired=settings.plugins.run) for one in skills(settings)]


def why_not(settings: Settings, owner_id: str, plugin_id: str) -> str:
    """Why a plugin cannot be used, in words."""
    row = next((row for row in _rows(settings, owner_id) if row.plugin_id == plugin_id), None)
    if row is None:
        return "it is not installed"
    return f"it is disabled: {row.reason}" if row.status == "disabled" else "it does not run"


def read(settings: Settings, plugin: Installed) -> dict[str, bytes]:
    """The files of a plugin, exactly those that were installed; else it is disabled.

    Raises:
        Changed: they are others, or not there.
    """
    try:
        bundle = archives.read(folder(settings) / plugin.digest)
    except WrongUse as error:
        fault = error.faults[0] if error.faults else None
        where = f"{fault.path}: {fault.message}" if fault and fault.path else str(fault.message if fault else error)
    else:
        hashes, left = bundle.hashes, bundle.left_out
        if hashes == dict(plugin.files) and bundle.digest == plugin.digest and not left:
            return dict(bundle.files)
        odd = sorted({path for path, _ in set(hashes.items()) ^ set(plugin.files.items())} | set(left))
        where = odd[0] if odd else "its digest"
    words = f"{CHANGED} ({where})"[:300]
    get_database(settings).write(lambda c: moves.disable(c, plugin.owner_id, plugin.id, words, digest=plugin.digest))
    raise Changed(words)


def _lay(root: Path, bundle: Bundle) -> None:
    """Writes the files beside their place and moves them there in one step."""
    place = root / bundle.digest
    if place.exists():  # of another owner, of an install that did not end, or changed since
        with suppress(WrongUse):
            there = archives.read(place)
            if there.digest == bundle.digest and not there.left_out:
                return
        shutil.rmtree(place)
    fresh = root / f"{_NEW}{new_id()}"
    fresh.mkdir(mode=0o700)
    for path, content in bundle.files.items():
        file = fresh / path
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with file.open("xb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        file.chmod(0o600)
    fresh.rename(place)
    _sync(root)


def _sweep(settings: Settings, root: Path) -> None:
    """Takes away what no row speaks of: old versions, installs that did not end."""
    with get_database(settings).read() as connection:
        used = moves.digests(connection)
    for entry in root.iterdir():
        ours = entry.name.startswith(_NEW) or (len(entry.name) == 64 and entry.name.isalnum())
        if ours and entry.name not in used and entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)


@contextmanager
def _alone(settings: Settings) -> Iterator[Path]:
    """The plugin folder, with nobody else at work in it."""
    root = folder(settings)
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle = os.open(root / ".lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield root
    finally:
        os.close(handle)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _taken(manifest: Manifest, taken: frozenset[str]) -> Iterator[Fault]:
    for place, skill in enumerate(manifest.skills):
        if skill.name.replace(".", "__") in taken:
            yield Fault(f"skills[{place}].name", "name_taken", f"there is a tool called {skill.name} already")


def _agents(settings: Settings, manifest: Manifest) -> Iterator[Fault]:
    """What keeps its agents from being agents here; that they may name its own tools is known."""
    from dataclasses import replace

    from orchestrator.known import registries
    from registry.graph.validation import check_registries, parse_agent

    if not manifest.agents:
        return
    known = registries(settings, stand_in=settings.stand_in or not settings.has_model)
    known = replace(known, plugins={manifest.id: frozenset(skill.name for skill in manifest.skills)})
    seen: set[str] = set()
    for place, body in enumerate(manifest.agents):
        agent, found = parse_agent(body, known.limits)
        if agent is not None:
            found = [*found, *check_registries(agent, known)]
            if agent.id in seen:
                yield Fault(f"agents[{place}].id", "twice", f"two agents are called {agent.id}")
            seen.add(agent.id)
        for one in found:
            if one.severity == "error":
                yield Fault(f"agents[{place}].{one.path}", one.code, one.message)


def _rows(settings: Settings, owner_id: str | None = None) -> list[Row[Any]]:
    database = get_database(settings)
    if is_new(database):
        return []
    with database.read() as connection:
        return moves.all_of(connection, owner_id or settings.owner)


def _one(settings: Settings, plugin_id: str) -> Row[Any]:
    row = next((row for row in _rows(settings) if row.plugin_id == plugin_id), None)
    if row is None:
        raise _unknown(plugin_id)
    return row


def _unknown(plugin_id: str) -> Refused:
    return Refused(f"you have no plugin {plugin_id[:80]!r}", code="unknown_plugin")


def _installed(row: Row[Any]) -> Installed:
    return Installed(row.owner_id, row.plugin_id, row.digest, row.manifest, row.files, tuple(row.granted))


def _view(row: Row[Any]) -> dict[str, Json]:
    manifest = row.manifest
    return {
        "id": row.plugin_id,
        "name": manifest["name"],
        "version": row.version,
        "description": manifest.get("description") or "",
        "status": row.status,
        "reason": row.reason,
        "digest": row.digest,
        "skills": [skill["name"] for skill in manifest.get("skills") or ()],
        "hooks": [f"{row.plugin_id}.{name}" for name in manifest.get("hooks") or ()],
        "agents": [agent["id"] for agent in manifest.get("agents") or ()],
        "capabilities": manifest.get("capabilities") or [],
        "granted": row.granted,
        "installedAt": row.installed_at,
    }


__all__ = [
    "Changed",
    "Installed",
    "definitions",
    "disable",
    "enable",
    "enabled",
    "folder",
    "install",
    "listed",
    "one",
    "read",
    "remove",
    "review",
    "skill",
    "skills",
    "why_not",
]
