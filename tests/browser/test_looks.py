"""Every page of the desk for everybody: by the rules of axe, on small and large screens, whatever is written there."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from orchestrator.settings import Settings
from tests.browser.conftest import Open
from tests.poison import NOT_SHOWN, UNSEEN, poison, written
from tests.showroom import Showroom

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]

#: Pages whose words come from most places; the short form looks at these.
_TELLING = ("/inbox", "/threads/ID", "/projects/ID", "/projects/ID/trace?show=all", "/memories", "/generators/ID")
_ALL = [(width, scheme) for width in (400, 1000, 1600) for scheme in ("light", "dark")]


def axe(page: "Page") -> list[str]:
    """What keeps somebody from using this page, by the rules of axe."""
    from axe_playwright_python.sync_playwright import Axe

    # Its script is put in by the debugger's door, which the page's policy does not guard.
    found = Axe().run(page).response["violations"]
    return [f"{page.url} {one['id']}: {[node['target'] for node in one['nodes']][:3]}" for one in found]


def kinds(room: Showroom) -> dict[str, str]:
    """One page of each kind: its address with ids left out, and its address."""
    found: dict[str, str] = {}
    for path in room.pages():
        kind = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "ID", re.sub(r"/tasks/.*", "/tasks/KEY", path))
        found.setdefault(kind, path)
    return found


def faults(page: "Page", path: str, width: int) -> Iterator[str]:
    page.goto(path)
    yield from axe(page)
    wide = page.evaluate("document.documentElement.scrollWidth")
    if wide > width:
        yield f"{path} is {wide} wide"


@pytest.fixture
def room(studio_settings: Settings) -> Showroom:
    return Showroom(studio_settings)


@pytest.mark.parametrize(("width", "scheme", "half"), [(400, "dark", 0), (1600, "light", 1)])
def test_everybody_can_use_every_kind_of_page(
    open_desk: Open, room: Showroom, width: int, scheme: str, half: int
) -> None:
    page = open_desk(width=width, scheme=scheme)
    home = page.url.rstrip("/")
    some = [*kinds(room).values(), "/projects/000000"][half::2]
    assert [fault for path in some for fault in faults(page, home + path, width)] == []


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("width", "scheme"), _ALL)
def test_everybody_can_use_every_page(open_desk: Open, room: Showroom, width: int, scheme: str) -> None:
    page = open_desk(width=width, scheme=scheme)
    home = page.url.rstrip("/")
    assert [fault for path in room.pages() for fault in faults(page, home + path, width)] == []


@pytest.mark.long
@pytest.mark.parametrize("path", ["/", "/inbox", "/threads", "/memories", "/knowledge", "/connections", "/schedules"])
def test_everybody_can_use_a_page_on_which_nothing_is(open_desk: Open, path: str) -> None:
    for width, scheme in _ALL:
        page = open_desk(path, width=width, scheme=scheme)
        expect(page.locator(".empty h2")).to_have_count(1)
        assert list(faults(page, page.url, width)) == []


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("width", "scheme"), [look for look in _ALL if look[0] != 1000])
def test_everybody_can_use_a_page_that_loads_that_was_refused_and_that_lost_its_server(
    open_desk: Open, room: Showroom, width: int, scheme: str
) -> None:
    page = open_desk(f"/projects/{room.busy.id}/trace?show=all", width=width, scheme=scheme)
    held: list[Route] = []
    page.route("**/events/*", lambda route: held.append(route))
    page.locator(".trace summary").first.click()
    page.get_by_text("Loading…").first.wait_for()
    found = axe(page)
    held[0].continue_()
    page.locator(".trace details[open] pre").wait_for()
    page.unroute("**/events/*")

    page.goto(f"{page.url.partition('/projects')[0]}/threads/{room.thread_id}")
    page.get_by_label("Your message").fill("Are you there?")
    page.get_by_role("button", name="Send").click()
    page.locator(".say.refused").wait_for()
    found += axe(page)

    page.route("**/*", lambda route: route.abort())
    page.evaluate("document.body.dispatchEvent(new CustomEvent('desk:changed', { bubbles: true }))")
    page.locator("#lost").wait_for()
    found += axe(page)
    assert found == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def harmless(page: "Page", path: str) -> set[str]:
    """A page on which everything others wrote is text, in the browser that would run it: which columns it shows."""
    page.goto(path)
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    text = page.locator("main").inner_text()
    assert not set(text) & UNSEEN, path
    assert "owned" not in re.sub(r"document\.title='owned'", "", page.title()), path
    assert page.locator("img[src=x], main script, main b, [onerror]").count() == 0, path
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= page.viewport_size["width"], f"{path} is {wide} wide"  # type: ignore[index]
    return set(re.findall("«([a-z_.]+)»", page.content()))


def test_hostile_words_are_text_in_a_browser(open_desk: Open, room: Showroom, studio_settings: Settings) -> None:
    poison(studio_settings)
    page = open_desk(width=400)
    home = page.url.rstrip("/")
    for kind, path in kinds(room).items():
        if kind in _TELLING:
            harmless(page, home + path)
            expect(page.locator("main"), kind).to_contain_text("<img src=x")
    page.goto(f"{home}/projects/{room.busy.id}/trace?show=all")
    page.locator(".trace summary", has_text="«events.data»").first.click()
    page.locator(".trace details[open] pre").wait_for()
    expect(page.locator(".trace details[open] pre")).to_contain_text("⟦U+202E⟧")


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("width", [400, 1000])
def test_hostile_words_are_text_on_every_page(
    open_desk: Open, room: Showroom, studio_settings: Settings, width: int
) -> None:
    poison(studio_settings)
    page = open_desk(width=width)
    page.on("dialog", lambda dialog: pytest.fail(f"{page.url} said {dialog.message}"))
    home = page.url.rstrip("/")
    seen: set[str] = set()
    for path in (*room.pages(), "/memories?q=owned", "/knowledge?q=open owned"):
        seen |= harmless(page, home + path)
    assert seen == set(written()) - NOT_SHOWN, "columns that a browser shows, against what tests/poison.py says"


def test_a_plan_runs_from_top_to_bottom_where_the_screen_is_narrow(open_desk: Open, room: Showroom) -> None:
    page = open_desk(f"/projects/{room.busy.id}", width=400)
    column = page.locator(".plan.narrow")
    expect(column).to_be_visible()
    expect(page.locator(".plan.broad")).to_be_hidden()
    tops = {
        card.get_attribute("aria-label").split(":")[0]: card.bounding_box()["y"]  # type: ignore[union-attr,index]
        for card in column.locator(".task").all()
    }
    assert tops["Profile the data"] < tops["Monthly figures"] < tops["Write the brief"]
    assert column.evaluate("one => one.scrollWidth <= one.clientWidth"), "nothing of it lies beside the screen"
    page.set_viewport_size({"width": 1000, "height": 900})
    expect(page.locator(".plan.broad")).to_be_visible()
    expect(column).to_be_hidden()
