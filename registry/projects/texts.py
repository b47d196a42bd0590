"""What texts written by people have to be, beyond their length."""

from typing import Final

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError


def _not_blank(text: str) -> str:
    if not text.strip():
        raise PydanticCustomError("blank", "must not be blank")
    return text


def _one_line(text: str) -> str:
    if any(ord(c) < 32 or 127 <= ord(c) < 160 or c in "\u2028\u2029" for c in text):
        raise PydanticCustomError("invalid_value", "must be one line without control characters")
    return _not_blank(text)


#: A text that says something.
NOT_BLANK: Final = AfterValidator(_not_blank)
#: A title, a name: no line breaks and no control characters, and not blank.
ONE_LINE: Final = AfterValidator(_one_line)
