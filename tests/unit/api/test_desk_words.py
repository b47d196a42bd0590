"""Whatever anybody wrote is text: every column that others' words may stand in, on every page of the desk."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient
from starlette.routing import compile_path

from orchestrator.api.app import create_app
from orchestrator.settings import Settings
from tests.poison import CHECKED, NOT_SHOWN, TAIL, UNSEEN, poison, written
from tests.showroom import Showroom
from tests.studio import asked, session_of

#: Routes that give no page of words: what pages are made of, what moves, and pictures.
_PICTURES = {f"/{of}/pictures/{{path:path}}" for of in ("projects/{project_id}", "threads/{thread_id}")}
_NO_PAGES = {"/static/{of}/{name:path}", "/pulse", *_PICTURES}


class Tags(HTMLParser):
    """What a page is made of, beside its words."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.bad: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.bad += [f"<{tag} {name}>" for name, _ in attrs if name.startswith("on") or name == "style"]
        self.bad += [f"{name}={value}" for name, value in attrs if name in ("href", "src") and _runs(value or "")]
        if tag == "script" and not dict(attrs).get("src", "").startswith("/static/"):  # type: ignore[union-attr]
            self.bad.append("a script of somebody else's")


def _runs(address: str) -> bool:
    return address.strip().lower().startswith(("javascript:", "data:", "//", "http:", "https:"))


@pytest.fixture
def room(settings: Settings) -> Iterator[tuple[Showroom, TestClient]]:
    made = Showroom(settings)
    folder = settings.workspaces / made.workspace
    folder.mkdir(parents=True)
    for end in ("md", "csv", "txt", "json"):
        (folder / f"{CHECKED}.{end}").write_text(f"# {TAIL},{TAIL}\n\n[{TAIL}](javascript:alert(1)) {TAIL},2\n")
    with asked(settings, session_of(settings, settings.owner), follow_redirects=False) as client:
        yield made, client


def test_every_column_that_others_may_write_is_text_on_every_page(
    settings: Settings, room: tuple[Showroom, TestClient]
) -> None:
    made, client = room
    poison(settings)
    pages = [*made.pages(), *made.lines(), "/knowledge?q=open owned", "/memories?q=owned"]
    pages += [f"/projects/{made.busy.id}/files/{quote(CHECKED)}.{end}" for end in ("md", "csv", "txt", "json")]
    shown: set[str] = set()

    for path in pages:
        page = client.get(path)
        assert page.status_code == (303 if path == "/login" else 200), f"{path} {page.status_code}"
        text = page.text
        assert not set(text) & UNSEEN, path
        assert "<img src=x" not in text and "<b>bold" not in text and "<script>d" not in text, path
        if page.headers.get("content-type", "").startswith("text/html"):
            assert Tags(text).bad == [], path
        shown |= set(re.findall("«([a-z_.]+)»", text))

    assert shown == set(written()) - NOT_SHOWN, "columns that are shown, or not, against what tests/poison.py says"


def test_the_showroom_has_every_page_of_the_desk(settings: Settings, room: tuple[Showroom, TestClient]) -> None:
    made, _ = room
    routes: list[Any] = [
        route for route in create_app(settings).routes if not getattr(route, "include_in_schema", True)
    ]
    pages = {route.path for route in routes if "GET" in (route.methods or ())} - _NO_PAGES
    visited = [path.partition("?")[0] for path in (*made.pages(), *made.lines())]
    visited += [f"/projects/{made.busy.id}/files/a.md"]

    missed = {page for page in pages if not any(compile_path(page)[0].match(path) for path in visited)}

    assert {page for page in missed if not page.startswith(("/openapi", "/docs"))} == set()
