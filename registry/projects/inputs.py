"""The inputs of a project: which files they are, and their copy into the workspace (spec: project 1)."""

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from registry.errors import Fault, SkillError, WrongUse
from registry.graph.findings import quoted
from registry.projects.beside import Beside, Unusable, find, open_regular
from registry.projects.model import Input
from registry.skills.paths import normalise

#: The folder of the workspace that inputs are copied to.
FOLDER: Final = "inputs"
_CHUNK: Final = 1 << 20


@dataclass(frozen=True)
class InputFile:
    """A file to copy, and its path in the workspace."""

    source: Beside
    target: str


@dataclass(frozen=True)
class Copied:
    path: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class InputLimits:
    """What a workspace may hold."""

    files: int = 2_000
    bytes: int = 200 * 1024 * 1024


def plan_inputs(
    folder: Path, inputs: Sequence[Input | None], limits: InputLimits | None = None
) -> tuple[list[InputFile], list[Fault]]:
    """The files that the inputs of a project file mean, and what is wrong with them; a None is passed over."""
    limits = limits or InputLimits()
    planned: dict[str, InputFile] = {}
    faults: list[Fault] = []
    for index, one in enumerate(inputs):
        try:
            for file in _files(folder, one) if one else ():
                # Folded: on a file system that ignores case they would be one file.
                if planned.setdefault(file.target.casefold(), file) is not file:
                    raise Unusable("duplicate_input", f"{quoted(file.target)} would be written twice; rename one by as")
        except Unusable as error:
            faults.append(error.at(f"inputs[{index}]"))
    return list(planned.values()), [*faults, *_excess(planned.values(), limits)]


def copy_inputs(files: Iterable[InputFile], workspace: Path) -> list[Copied]:
    """Copies inputs into a new workspace, which nobody else writes to yet.

    Raises:
        WrongUse: when a file changed into something else since it was planned.
    """
    copied = []
    for file in files:
        try:
            source = open_regular(file.source)
        except Unusable as error:
            raise WrongUse(f"an input changed meanwhile: {error}", faults=[error.at("inputs")]) from None
        target = workspace / file.target
        target.parent.mkdir(parents=True, exist_ok=True)
        copied.append(_copy(source, target, file.target))
    return copied


def _files(folder: Path, one: Input) -> list[InputFile]:
    found = find(folder, one.path)
    prefix = "/".join(segment for segment in one.path.split("/") if segment not in ("", "."))
    name = one.as_ if one.as_ is not None else prefix.rpartition("/")[2]
    return [InputFile(file, _target(name, file.name[len(prefix) :].lstrip("/"))) for file in found]


def _target(name: str, below: str) -> str:
    """Where a file goes, as `files.read` will name it."""
    try:
        if name:
            normalise(name)  # on its own too: `as` may not begin like a path from the root
        return normalise("/".join(part for part in (FOLDER, name, below) if part))
    except SkillError as error:
        raise Unusable(error.code, f"{quoted(below or name)} cannot be an input: {error.message}") from None


def _excess(planned: Iterable[InputFile], limits: InputLimits) -> list[Fault]:
    sizes = [file.source.bytes for file in planned]
    faults = []
    if len(sizes) > limits.files:
        faults.append(Fault("inputs", "quota", f"{len(sizes)} files, and a workspace holds {limits.files} at most"))
    if sum(sizes) > limits.bytes:
        faults.append(Fault("inputs", "quota", f"{sum(sizes)} bytes, and a workspace holds {limits.bytes} at most"))
    return faults


def _copy(source: int, target: Path, name: str) -> Copied:
    size, sha256 = 0, hashlib.sha256()
    with os.fdopen(source, "rb") as reader, target.open("xb") as writer:
        while piece := reader.read(_CHUNK):
            size += len(piece)
            sha256.update(piece)
            writer.write(piece)
        writer.flush()
        os.fsync(writer.fileno())
    return Copied(name, size, sha256.hexdigest())


__all__ = ["FOLDER", "Copied", "InputFile", "InputLimits", "copy_inputs", "plan_inputs"]
