"""Kept outputs: texts too long for a model, which Officina lays into the workspace (spec: skills 5).

They lie under `.officina/outputs/`, the one part of our own folder that a caller may read. Nobody but the engine writes
there.
"""

from typing import Annotated, Final

from pydantic import AfterValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from registry.errors import SkillError
from registry.skills.paths import RESERVED, normalise

OUTPUTS: Final = f"{RESERVED}/outputs"


def readable(path: str, *, folder: bool = False) -> str:
    """The stored form of a path that is only read: a workspace file (with `folder`, a folder too), or a kept output.

    Raises:
        SkillError: `path_escape` or `invalid_input`, as for any workspace path.
    """
    if path.startswith(f"{OUTPUTS}/"):
        return f"{OUTPUTS}/{normalise(path[len(OUTPUTS) + 1 :].lstrip('/'))}"
    return normalise(path, folder=folder)


def _validate(path: str) -> str:
    return _judged(path, folder=False)


def _validate_either(path: str) -> str:
    return _judged(path, folder=True)


def _judged(path: str, *, folder: bool) -> str:
    try:
        return readable(path, folder=folder)
    except SkillError as error:
        raise PydanticCustomError(error.code, "{reason}", {"reason": error.message}) from None


#: A file to read: one of the workspace, or a kept output.
ReadablePath = Annotated[
    str,
    AfterValidator(_validate),
    WithJsonSchema({"type": "string", "minLength": 1, "description": "a file, relative to the workspace"}),
]

#: A folder to look through, `.` is the workspace itself; or a file, a kept output among them.
SearchablePath = Annotated[
    str,
    AfterValidator(_validate_either),
    WithJsonSchema({"type": "string", "minLength": 1, "description": "a folder or a file, relative to the workspace"}),
]

__all__ = ["OUTPUTS", "ReadablePath", "SearchablePath", "readable"]
