"""Templates become pages here. Everything that people, models, pages or files wrote is text.

One place sees to it: whatever a template prints is made visible (controls, bidi marks and half characters are written
out as ⟦U+202E⟧) and escaped, unless it is markup that a template itself or the cleaner of Markdown made.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import Response

from orchestrator.api.desk import assets
from orchestrator.api.desk.icons import icon
from orchestrator.terminal import wording
from orchestrator.terminal.desk import age

#: Nothing from elsewhere, nothing written into the page itself: no inline script, no inline style.
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


def page(template: str, facts: Mapping[str, Any], *, status: int = 200) -> Response:
    """A template as an answer."""
    text = _environment().get_template(template).render(**facts)
    headers = {"content-security-policy": _POLICY, "vary": "hx-request"}
    return Response(text.encode(), status, headers, "text/html; charset=utf-8")


def said(words: str, *, status: int = 200, go: str | None = None) -> Response:
    """The answer to something a person did: words for the corner of their page, which renews itself.

    Args:
        status: 4xx: it was refused, and nothing happened.
        go: another page to go on with.
    """
    # Aimed at the body: what was pressed may be gone by now, because the page has renewed itself.
    told = {"target": "body", "text": wording.visible(words), "refused": status >= 400}
    headers = {"hx-trigger": json.dumps({"desk:said": told, "desk:changed": {"target": "body"}})}
    if go is not None:
        headers["hx-redirect"] = go
    return Response(status_code=status if status >= 400 else 200, headers=headers)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader(__package__, "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {
        "line": lambda text, most=500: wording.one_line(wording.visible(str(text)), most),
        "word": wording.word,
        "money": lambda usd, incomplete=False: wording.money(usd, incomplete=incomplete),
        "duration": wording.duration,
        "size": wording.size,
        "several": wording.several,
        "age": age,
        "segment": lambda text: quote(str(text), safe=""),
        "path": lambda text: quote(str(text), safe="/"),
        "shown_json": shown_json,
        "unseen": wording.unseen,
    }
    made.globals |= {"asset": assets.url, "icon": icon}
    return made


def _visible(value: Any) -> Any:
    """What is printed: plain text with everything in it that cannot be seen written out; markup as it is."""
    return wording.visible(value) if type(value) is str else value


def shown_json(value: Any) -> str:
    """A value as people read JSON."""
    return json.dumps(value, ensure_ascii=False, indent=2)
