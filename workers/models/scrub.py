"""Text that no database, file or API takes: lone surrogates and NUL become the replacement character."""

import re

from registry.base import Json

_BAD = re.compile("[\x00\ud800-\udfff]")


def scrub(value: Json) -> Json:
    """The value with every text and key in it fit to be stored and sent."""
    if isinstance(value, str):
        return _BAD.sub("\ufffd", value)
    if isinstance(value, list):
        return [scrub(item) for item in value]
    if isinstance(value, dict):
        return {scrub(key): scrub(item) for key, item in value.items()}
    return value
