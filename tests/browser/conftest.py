"""A studio with a browser before it: the API as a process, Debian's Chromium, a person who has signed in."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator import keys
from orchestrator.settings import Settings
from tests import services
from tests.studio import ApiProcess

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page
    from redis import Redis

Open = Callable[..., "Page"]


@pytest.fixture(scope="session")
def browser() -> "Iterator[Browser]":
    def program() -> str:
        found = shutil.which("chromium")
        if found is None:
            raise services.ServiceMissing("these tests need a browser: apt-get install chromium")
        return found

    path = services.needed(program)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        opened = play.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield opened
        opened.close()


@pytest.fixture
def studio_settings(tmp_path: Path, sqlite_url: str, redis: "Redis", redis_url: str) -> Settings:
    home = tmp_path / "home"
    return Settings(home=home, database_url=sqlite_url, broker_url=redis_url, _env_file=None)  # type: ignore[call-arg]


@pytest.fixture
def api(studio_settings: Settings, tmp_path: Path) -> Iterator[ApiProcess]:
    process = ApiProcess(studio_settings, tmp_path / "api.log").start()
    yield process
    process.close()


@pytest.fixture
def open_desk(browser: "Browser", api: ApiProcess, studio_settings: Settings) -> Iterator[Open]:
    """Opens the desk in a browser of its own, signed in by a link as `officina up` prints it; faults of the page fail
    the test."""
    opened = []
    faults: list[str] = []

    def start(path: str = "/", *, width: int = 1280, scheme: str = "light") -> "Page":
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
        opened.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda said: faults.append(said.text) if "Content Security" in said.text else None)
        page.goto(f"{api.url}/login#{keys.make_code(studio_settings)}")
        page.wait_for_url(f"{api.url}/")
        if path != "/":
            page.goto(api.url + path)
        return page

    yield start
    for context in opened:
        context.close()
    assert faults == []
