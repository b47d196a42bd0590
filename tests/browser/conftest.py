"""A studio with a browser before it: the API as a process, Debian's Chromium, a person who has signed in."""

import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator import keys
from orchestrator.settings import Settings
from tests import services
from tests.studio import ApiProcess

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

Open = Callable[..., "Page"]
_numbers = count(1)


@pytest.fixture(scope="package")
def browser() -> "Iterator[Browser]":
    """Closed after the last test of this folder: Playwright keeps an event loop running in this thread while it is
    open, and no test of another folder could run one of its own."""

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


@pytest.fixture(scope="module")
def home(
    _migrated_sqlite: Path, redis_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Settings, ApiProcess]]:
    """One installation for all tests of a module: each is an owner of its own, who sees nothing of the others."""
    folder = tmp_path_factory.mktemp("studio")
    shutil.copy(_migrated_sqlite, folder / "officina.db")
    url = f"sqlite:///{folder / 'officina.db'}"
    settings = Settings(home=folder, database_url=url, broker_url=redis_url, _env_file=None)
    process = ApiProcess(settings, folder / "api.log", API__HEARTBEAT_S="2").start()
    yield settings, process
    process.close()
    services.close_connections(url)


@pytest.fixture
def studio_settings(home: tuple[Settings, ApiProcess]) -> Settings:
    return home[0].model_copy(update={"owner": f"owner-{next(_numbers)}"})


@pytest.fixture
def api(home: tuple[Settings, ApiProcess]) -> ApiProcess:
    return home[1]


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
        page.on("console", lambda said: faults.append(said.text) if "script-src" in said.text else None)
        page.goto(f"{api.url}/login#{keys.make_code(studio_settings)}")
        page.wait_for_url(f"{api.url}/")
        if path != "/":
            page.goto(api.url + path)
        return page

    yield start
    for context in opened:
        context.close()
    assert faults == []
