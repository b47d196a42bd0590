"""A project that arrives in one piece: the document, and the files it names, with no folder they lie in."""

import base64
import binascii
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from orchestrator import producer
from orchestrator.producer import Submitted
from orchestrator.settings import Settings
from registry.base import Json
from registry.errors import Fault, SkillError, WrongUse
from registry.projects import reading
from registry.skills.paths import normalise
from registry.skills.registry import SkillRegistry

MAX_FILES: Final = 2_000
#: Why a program writes no hooks.
NOT_A_PERSON: Final = "hooks call programs: only a person writes them, in a session; keys are for programs"


@dataclass(frozen=True)
class Upload:
    """A file that comes along."""

    path: str
    content: bytes


def submit(
    settings: Settings,
    skills: SkillRegistry,
    document: dict[str, Json],
    files: list[Upload],
    *,
    key: str | None = None,
    mode: str | None = None,
    rehearse: bool = False,
    plan_only: bool = False,
    generator_id: str | None = None,
    person: bool = True,
) -> Submitted:
    """Stores and starts a project as `producer.submit` would, had its files lain in one folder.

    Args:
        document: the project file; its `script` may be the script itself instead of a path.
        generator_id: the generator it is made of, for the audit log.
        person: whether a person submits it, who alone may bring hooks along.

    Raises:
        WrongUse: with every fault found; nothing was written.
    """
    with tempfile.TemporaryDirectory(prefix="officina-submit-") as name:
        folder = Path(name).resolve()
        _lay(folder, files)
        # A script that comes as it is becomes no file: it could lie where one of the others does, or among the inputs.
        script = document["script"] if isinstance(document.get("script"), dict) else None
        named_only = {field: one for field, one in document.items() if field != "script" or script is None}
        found, named = producer.checked(
            lambda known, limits: reading.project_of(named_only, folder, known, limits, script=script),
            settings,
            skills,
        )
        if not person and (hooked := [id_ for id_, one in found.agents.items() if one.hooks]):
            faults = [Fault(f"agents.{id_}.hooks", "not_a_person", NOT_A_PERSON) for id_ in hooked]
            raise WrongUse(str(faults[0]), code="project_invalid", faults=faults)
        return producer.store(
            settings,
            skills,
            found,
            named,
            key=key,
            mode=mode,
            rehearse=rehearse,
            plan_only=plan_only,
            generator_id=generator_id,
        )


def uploads(given: list[dict[str, Json]]) -> list[Upload]:
    """The files of a request: each with a `path` and either `text` or `base64`.

    Raises:
        WrongUse: with every fault found.
    """
    found, faults = [], []
    for place, one in enumerate(given):
        try:
            found.append(Upload(normalise(str(one["path"])), _content(one)))
        except SkillError as error:
            faults.append(Fault(f"files[{place}].path", error.code, error.message))
        except (ValueError, binascii.Error):
            faults.append(Fault(f"files[{place}]", "invalid_file", "give text, or base64 that is base64"))
    paths = [one.path.casefold() for one in found]
    if len(set(paths)) != len(paths):
        faults.append(Fault("files", "duplicate_file", "two files have one path"))
    if faults:
        raise WrongUse(str(faults[0]), code="project_invalid", faults=faults)
    return found


def _content(one: dict[str, Json]) -> bytes:
    text, packed = one.get("text"), one.get("base64")
    if (text is None) == (packed is None):
        raise ValueError("one of the two")
    return str(text).encode() if packed is None else base64.b64decode(str(packed), validate=True)


def _lay(folder: Path, files: list[Upload]) -> None:
    for file in files:
        target = folder / file.path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.content)
        except OSError:  # one file's path is another's folder
            fault = Fault("files", "conflict", f"{file.path[:200]!r} cannot lie beside the others")
            raise WrongUse(str(fault), code="project_invalid", faults=[fault]) from None
