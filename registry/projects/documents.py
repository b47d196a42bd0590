"""Project files, scripts and agent files as JSON: YAML or JSON texts, of a bounded size."""

import os
from pathlib import Path
from typing import Final

from registry import jsontext, yamltext
from registry.base import Json
from registry.errors import Fault, WrongUse
from registry.graph.findings import quoted
from registry.projects.beside import Beside, Unusable, open_regular

MAX_BYTES: Final = 8 * 1024 * 1024


def parse(text: str, *, name: str) -> Json:
    """The document of a text; a name that ends in `.json` is read as JSON.

    Raises:
        WrongUse: `invalid_yaml` or `invalid_json`; the fault's path begins with `name`.
    """
    if not name.lower().endswith(".json"):
        return yamltext.load(text, name=name, max_bytes=MAX_BYTES)
    try:
        return jsontext.parse(text)
    except jsontext.JsonFault as error:
        raise _refused(name, "invalid_json", str(error)) from None


def read_text(path: Path) -> str:
    """The text of a file that a person named.

    Raises:
        WrongUse: `missing`, `unreadable`, `too_long` or `not_text`.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise _refused(path.name, "missing", f"there is no file {quoted(str(path))}") from None
    except OSError as error:
        raise _refused(path.name, "unreadable", f"cannot be read: {error.strerror}") from None
    return _decoded(content, path.name)


def read_beside(file: Beside) -> Json:
    """The document in a file beside the project file.

    Raises:
        WrongUse: as `parse` and `read_text`.
    """
    try:
        handle = open_regular(file)
    except Unusable as error:
        raise WrongUse(str(error), faults=[error.at(file.name)]) from None
    with os.fdopen(handle, "rb") as reader:
        content = reader.read(MAX_BYTES + 1)
    return parse(_decoded(content, file.name), name=file.name)


def _decoded(content: bytes, name: str) -> str:
    if len(content) > MAX_BYTES:
        raise _refused(name, "too_long", f"more than {MAX_BYTES} bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _refused(name, "not_text", f"not UTF-8 at byte {error.start}") from None


def _refused(name: str, code: str, message: str) -> WrongUse:
    return WrongUse(f"{name}: {message}", code=code, faults=[Fault(name, code, message)])


__all__ = ["MAX_BYTES", "parse", "read_beside", "read_text"]
