"""Presets: agents that ship with the release, and those a person keeps in a folder of their own (spec: engine 16).

    found = load([SHIPPED, Path("~/.officina/presets").expanduser()], known)
    found["coder"].agent                      # an AgentDefinition like any other
    found.faults                              # what is wrong with files that were left out

A file is one preset and its name is the id. A file that cannot be read as a preset is left out and reported; it never
hides the others, nor a preset of the same id from another root. A preset that names a pack or skill nobody has
registered stays in the list and says what it lacks, so that whoever asks for it learns why it cannot run.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from registry.agents import AgentDefinition
from registry.base import Json
from registry.errors import Fault
from registry.graph.findings import Finding, nearest, quoted, shown
from registry.graph.limits import USUAL, GraphLimits
from registry.graph.targets import AgentCard
from registry.graph.validation import Registries, check_registries, parse_agent
from registry.jsontext import JsonFault, parse

#: The folder of the presets that ship.
SHIPPED: Final = Path(__file__).with_suffix("")
#: Bytes of one file, as of any definition.
MAX_BYTES: Final = 1024 * 1024

_ID: Final = re.compile(r"[a-z0-9][a-z0-9-]*")
_REQUIRED: Final = ("name", "role", "instructions")
_OPTIONAL: Final = (
    *("description", "skills", "mcpServers", "budget", "packs", "capabilities"),
    *("permissions", "graph", "tier", "approvals"),
)

_Found = tuple["AgentDefinition | None", Sequence[Fault]]
#: What files held when they were read, with the stamp they had and the limits they were judged by.
_SEEN: dict[Path, tuple[tuple[int, ...], GraphLimits, _Found]] = {}


@dataclass(frozen=True)
class Preset:
    """An agent that can be named wherever an agent is wanted."""

    agent: AgentDefinition
    path: Path
    #: Errors of the second level: what it needs and this installation does not have. Empty: it can run.
    lacks: tuple[Finding, ...] = ()

    @property
    def shipped(self) -> bool:
        return self.path.parent == SHIPPED


class Presets(Mapping[str, Preset]):
    """Presets by id, in the order of their ids, and the faults of the files that were left out."""

    def __init__(self, found: Mapping[str, Preset], faults: Iterable[Fault] = ()) -> None:
        self._found = dict(sorted(found.items()))
        self.faults = tuple(faults)

    @property
    def cards(self) -> tuple[AgentCard, ...]:
        """As much of each as it takes to name it."""
        return tuple(AgentCard(id_, preset.agent.name) for id_, preset in self._found.items())

    def __getitem__(self, id_: str) -> Preset:
        return self._found[id_]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


def load(roots: Iterable[Path], known: Registries | None = None) -> Presets:
    """The presets of several folders; the later folder wins by id. A folder that is not there has none.

    Args:
        roots: the folders, in order.
        known: what presets may name; None leaves the second level out.
    """
    found: dict[str, Preset] = {}
    faults: list[Fault] = []
    for root in roots:
        for file in _files(root, faults):
            agent, wrong = _current(file, known.limits if known is not None else USUAL)
            faults += wrong
            if agent is not None:
                found[agent.id] = Preset(agent, file, _lacks(agent, known))
    return Presets(found, faults)


def _files(root: Path, faults: list[Fault]) -> list[Path]:
    try:
        return sorted(entry for entry in root.iterdir() if entry.name.endswith(".json"))
    except FileNotFoundError:
        return []
    except OSError as error:
        faults.append(Fault(str(root), "unreadable", f"the folder cannot be read: {error.strerror}"))
        return []


def _current(file: Path, limits: GraphLimits) -> _Found:
    """The same as `_read`, which is done once for a file as it is now."""
    try:
        about = file.stat()
    except OSError:
        return _read(file, limits)
    stamp = (about.st_mtime_ns, about.st_ctime_ns, about.st_size, about.st_ino)
    known = _SEEN.get(file)
    if known is None or known[:2] != (stamp, limits):
        known = _SEEN[file] = (stamp, limits, _read(file, limits))
    return known[2]


def _read(file: Path, limits: GraphLimits) -> _Found:
    """The agent of one file, or every fault of it."""
    written, wrong = _document(file)
    if wrong is not None:
        return None, [wrong]
    faults = [Fault(str(file), code, message) for code, message in _key_faults(written)]
    if faults:
        return None, faults
    # Both names mean the same, so only one may stand there; the checks of definitions know `packs`.
    definition = {"packs" if key == "capabilities" else key: value for key, value in written.items()}
    agent, findings = parse_agent({"id": file.stem, **definition}, limits)
    return agent, [
        Fault(str(file), finding.code, f"{finding.path}: {finding.message}" if finding.path else finding.message)
        for finding in findings
        if finding.severity == "error"
    ]


def _document(file: Path) -> tuple[dict[str, Json], Fault | None]:
    def refused(code: str, message: str) -> tuple[dict[str, Json], Fault]:
        return {}, Fault(str(file), code, message)

    if not _ID.fullmatch(file.stem):
        return refused("preset_id", "the name of the file is the preset's id: lower-case letters, digits and -")
    if not file.is_file():  # a pipe would be waited for
        return refused("unreadable", "is no regular file")
    try:
        with file.open("rb") as reader:
            content = reader.read(MAX_BYTES + 1)
    except OSError as error:
        return refused("unreadable", f"cannot be read: {error.strerror}")
    if len(content) > MAX_BYTES:
        return refused("too_large", f"has more than {MAX_BYTES} bytes")
    try:
        document = parse(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        return refused("invalid_json", f"not UTF-8 at byte {error.start}")
    except JsonFault as fault:
        return refused("invalid_json", str(fault))
    if not isinstance(document, dict):
        return refused("definition_shape", f"a preset is an object, found {shown(document)}")
    return document, None


def _key_faults(written: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    """Code and message of every key that is missing, unknown, or there in two ways."""
    for key in _REQUIRED:
        value = written.get(key)
        if key not in written:
            yield "required", f"{key} is required"
        elif not isinstance(value, str) or not value.strip():
            yield "definition_shape", f"{key} must be a text that says something, found {shown(value)}"
    if "packs" in written and "capabilities" in written:
        yield "unknown_field", "packs and capabilities are two names of one key: keep packs"
    known = (*_REQUIRED, *_OPTIONAL)
    for key in written:
        if key == "tools":
            yield "unknown_field", "tools removed; use packs"
        elif key not in known:
            yield "unknown_field", f"no preset has a key {quoted(key)}{nearest(key, known)}"


def _lacks(agent: AgentDefinition, known: Registries | None) -> tuple[Finding, ...]:
    findings = check_registries(agent, known) if known is not None else []
    return tuple(finding for finding in findings if finding.severity == "error")


__all__ = ["SHIPPED", "Preset", "Presets", "load"]
