"""Takes the pictures of docs/desk.md from real pages: `make docs-pictures`.

A stack of its own in a new home, two of the examples played by the stand-in, and Debian's Chromium.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

HERE = Path(__file__).parent
EXAMPLES = HERE.parent / "examples"
#: Seconds anything may take.
PATIENCE = 180


def main() -> None:
    chromium = chromium_path()
    home = Path(tempfile.mkdtemp(prefix="officina-pictures-"))
    os.environ |= {"OFFICINA_HOME": str(home), "OFFICINA_API__PORT": "0"}
    officina = str(Path(sys.executable).with_name("officina"))
    with subprocess.Popen([officina, "up", "--no-flower"], stdout=subprocess.DEVNULL) as stack:
        try:
            with sync_playwright() as play:
                browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
                _take(browser)
        finally:
            stack.terminate()
    shutil.rmtree(home, ignore_errors=True)


def chromium_path() -> str:
    """Where the browser is; without one it ends here."""
    found = shutil.which("chromium")
    if found is None:
        raise SystemExit("the pictures need a browser: apt-get install chromium")
    return found


def _take(browser: Browser) -> None:
    from orchestrator.producer import submit
    from orchestrator.settings import get_settings
    from orchestrator.signals import answer

    at = until(lambda: get_settings().stack.get("apiUrl"))
    settings = get_settings()
    names = submit(str(EXAMPLES / "name-a-product" / "project.yaml"), settings=settings).project_id
    until(lambda: status_of(names) == "completed")
    weather = submit(str(EXAMPLES / "seattle-weather" / "project.yaml"), settings=settings).project_id
    light, dark, small = (_desk(browser, at, *look) for look in (("light", 1280), ("dark", 1280), ("dark", 400)))

    def both(path: str, name: str, height: int) -> None:
        shoot(light, f"{at}{path}", name, height)
        shoot(dark, f"{at}{path}", f"{name}-dark", height)

    signal = until(lambda: open_signal(weather))
    time.sleep(2)
    both(f"/projects/{weather}", "desk-plan", 720)
    shoot(small, f"{at}/projects/{weather}", "desk-small", 860)
    both("/inbox", "desk-inbox", 860)
    answer(settings, signal, option="Do it", by=settings.owner)
    until(lambda: status_of(weather) == "completed")
    both("/", "desk-projects", 330)
    both(f"/projects/{names}/runs", "desk-runs", 760)
    both(f"/projects/{names}/timeline", "desk-timeline", 760)
    both(f"/projects/{weather}/trace", "desk-trace", 760)
    both(f"/projects/{names}/cost", "desk-cost", 620)
    both(f"/projects/{weather}/files/brief.md", "desk-file", 900)
    both(f"/threads/{_talk()}", "desk-talk", 760)
    both("/generators/data-report", "desk-generator", 760)
    both("/memories", "desk-memory", 560)
    both("/agents/assistant", "desk-agent", 900)
    both("/library", "desk-library", 700)


def _talk() -> str:
    """A conversation with a file, a scripted end, and something that was remembered in it."""
    from orchestrator import attachments, threads
    from orchestrator.settings import get_settings

    settings = get_settings()
    due = "Reports are due on Fridays before noon."
    turns: list[dict[str, Any]] = [
        {"calls": [{"name": "memory_write", "args": {"scope": "long", "text": due, "key": "reports-due"}}]},
        {"say": "Noted. So this week:\n\n- the **chart for March** on Wednesday\n- the *draft* on Thursday"},
    ]
    voice = threads.find_agent(settings, "assistant")
    talk = threads.create(settings, voice, title="The weekly report", script={"agents": {"assistant": turns}})
    week = attachments.Attachment("week-49.csv", b"day,what\nWednesday,chart for March\nThursday,draft\n")
    text = f"Remember: {due} What does that leave us this week?"
    run = attachments.send(settings, talk, text, [week]).run_id
    until(lambda: run_status(run) in ("completed", "failed", "needs_input"))
    return talk


def run_status(run_id: str | None) -> str:
    """How a run stands."""
    from sqlalchemy import select

    from orchestrator.settings import get_settings
    from orchestrator.store.database import get_database
    from orchestrator.store.tables import runs

    with get_database(get_settings()).read() as connection:
        return str(connection.scalar(select(runs.c.status).where(runs.c.id == run_id)))


def _desk(browser: Browser, at: str, scheme: Any, width: int) -> Page:
    from orchestrator import keys
    from orchestrator.settings import get_settings

    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
    page = context.new_page()
    page.goto(f"{at}/login#{keys.make_code(get_settings())}")
    page.wait_for_url(f"{at}/")
    return page


def shoot(page: Page, url: str, name: str, height: int) -> None:
    """The page at this address as a picture of docs/images; only those that are named, where any are."""
    if sys.argv[1:] and not name.startswith(tuple(sys.argv[1:])):
        return
    page.set_viewport_size({"width": page.viewport_size["width"], "height": height})  # type: ignore[index]
    page.goto(url)
    page.wait_for_load_state("load")
    page.evaluate("document.fonts.ready")
    page.wait_for_timeout(600)
    file = HERE / "images" / f"{name}.png"
    page.screenshot(path=file, animations="disabled")
    Image.open(file).convert("RGB").save(file, optimize=True)
    print(file.name)  # noqa: T201


def status_of(project_id: str) -> str:
    """How a project stands."""
    from sqlalchemy import select

    from orchestrator.settings import get_settings
    from orchestrator.store.database import get_database
    from orchestrator.store.tables import projects

    with get_database(get_settings()).read() as connection:
        return str(connection.scalar(select(projects.c.status).where(projects.c.id == project_id)))


def open_signal(project_id: str) -> str | None:
    """The id of a question that waits for a person."""
    from orchestrator import views
    from orchestrator.settings import get_settings
    from orchestrator.store.database import get_database

    with get_database(get_settings()).read() as connection:
        found = views.signals_of(connection, project_id, status="open")
    return str(found[0]["id"]) if found else None


def until(condition: Callable[[], Any]) -> Any:
    """What the condition gives once that is something."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.3)
    raise SystemExit("it took too long")


if __name__ == "__main__":
    main()
