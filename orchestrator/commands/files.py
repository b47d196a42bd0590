"""Files that people hand to a command: JSON or YAML, read safely."""

from pathlib import Path
from typing import Final

from registry.base import Json
from registry.errors import Fault, WrongUse

#: Bytes of a definition (spec: engine 21, `definitionBytes`).
MAX_BYTES: Final = 1024 * 1024


def read_data(path: Path, *, max_bytes: int = MAX_BYTES) -> Json:
    """The data in a file: JSON by its name or its first character, else YAML.

    Raises:
        WrongUse: `not_found`, `too_large`, `invalid_json` or `invalid_yaml`.
    """
    text = _text(path, max_bytes)
    if path.suffix == ".json" or (path.suffix not in (".yaml", ".yml") and text.lstrip()[:1] in ("{", "[")):
        from registry.jsontext import JsonFault, parse

        try:
            return parse(text)
        except JsonFault as fault:
            raise _wrong(path, "invalid_json", str(fault)) from None
    from registry.yamltext import load

    return load(text, name=str(path), max_bytes=max_bytes)


def _text(path: Path, max_bytes: int) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(max_bytes + 1)
    except OSError as error:
        raise _wrong(path, "not_found", f"cannot be read: {error.strerror or error}") from None
    if len(content) > max_bytes:
        raise _wrong(path, "too_large", f"has more than {max_bytes} bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _wrong(path, "invalid_text", f"is not UTF-8 at byte {error.start}") from None


def _wrong(path: Path, code: str, reason: str) -> WrongUse:
    return WrongUse(f"{path} {reason}", code=code, faults=[Fault(str(path), code, reason)])
