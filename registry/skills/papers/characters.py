"""Characters that no document can hold."""

import re
from typing import Final

#: Control characters other than tab and line breaks, and the two code points that are no characters in XML.
_UNPRINTABLE: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff]")


def cleaned(text: str) -> str:
    return _UNPRINTABLE.sub("", text)


def warnings_of(*texts: str) -> list[str]:
    """What to say about the characters that `cleaned` takes out of some texts; nothing when there are none."""
    removed = sum(len(_UNPRINTABLE.findall(text)) for text in texts)
    if not removed:
        return []
    return [f"{removed} control character{'s were' if removed > 1 else ' was'} removed"]
