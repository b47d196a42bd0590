"""Files of a project from templates, in which no text can leave the place it was meant for.

A value gets into a file only by way of a filter that writes it in the language it lands in; one that comes without is
an error of ours, and nothing is written.
"""

import html
import json
import re
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from jinja2 import FileSystemLoader, StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

from registry.base import Json

_TEMPLATES: Final = Path(__file__).parent / "templates"
_NAME: Final = re.compile(r"[A-Z][A-Za-z0-9]{0,60}")


class Written(str):
    """Text that a filter has written for where it stands."""


def render(template: str, **values: Any) -> str:
    """The text of a file."""
    return _environment().get_template(f"{template}.j2").render(values)


def js(value: Json) -> Written:
    """A value as JavaScript, also inside of HTML and of JSX braces."""
    text = json.dumps(value, ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Written(text)


def markdown(text: str) -> Written:
    """A text as Markdown that says the text: on one line, no character of it a mark."""
    line = " ".join(text.split())
    return Written(re.sub(r"([\\`*_{}\[\]()#+.!|<>~&=:-])", r"\\\1", line))


def _name(text: str) -> Written:
    if not _NAME.fullmatch(text):
        raise ValueError(f"{text!r} is no name of a component")
    return Written(text)


def _finalize(value: Any) -> Any:
    if isinstance(value, Written):
        return value
    raise TypeError(f"a template writes {type(value).__name__} without a filter")


@lru_cache(maxsize=1)
def _environment() -> ImmutableSandboxedEnvironment:
    made = ImmutableSandboxedEnvironment(
        loader=FileSystemLoader(_TEMPLATES),
        undefined=StrictUndefined,
        autoescape=False,  # which knows HTML only; every value passes a filter of ours instead
        finalize=_finalize,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters["js"] = js
    made.filters["html"] = lambda text: Written(html.escape(text, quote=True))
    made.filters["md"] = markdown
    made.filters["name"] = _name
    made.filters["number"] = lambda value: Written(str(int(value)))
    return made
