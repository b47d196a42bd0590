"""Takes the pictures of docs/flower.md from a real Flower: `make flower-pictures`.

A stack of its own in a new home, two of the examples played by the stand-in, and Debian's Chromium.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.request import urlopen

from desk_pictures import EXAMPLES, chromium_path, open_signal, shoot, status_of, until
from playwright.sync_api import Page, sync_playwright


def main() -> None:
    chromium = chromium_path()
    home = Path(tempfile.mkdtemp(prefix="officina-pictures-"))
    os.environ |= {"OFFICINA_HOME": str(home)}
    officina = str(Path(sys.executable).with_name("officina"))
    with subprocess.Popen([officina, "up", "--no-api", "--workers", "2"], stdout=subprocess.DEVNULL) as stack:
        try:
            with sync_playwright() as play:
                browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
                _take(browser.new_page(viewport={"width": 1600, "height": 700}))
        finally:
            stack.terminate()
    shutil.rmtree(home, ignore_errors=True)


def _take(page: Page) -> None:
    from orchestrator.producer import submit
    from orchestrator.settings import get_settings
    from orchestrator.signals import answer

    at = until(lambda: get_settings().stack.get("flowerUrl"))
    settings = get_settings()
    page.goto(f"{at}/workers")
    names = submit(str(EXAMPLES / "name-a-product" / "project.yaml"), settings=settings).project_id
    until(lambda: status_of(names) == "completed")
    weather = submit(str(EXAMPLES / "seattle-weather" / "project.yaml"), settings=settings).project_id
    answer(settings, until(lambda: open_signal(weather)), option="Do it", by=settings.owner)
    until(lambda: status_of(weather) == "completed")
    time.sleep(3)  # events come in parcels
    shoot(page, f"{at}/workers", "flower-workers", 520)
    shoot(page, f"{at}/tasks", "flower-tasks", 760)
    with urlopen(f"{at}/api/tasks?taskname=officina.run&limit=1") as answered:
        (task_id,) = json.load(answered)
    shoot(page, f"{at}/task/{task_id}", "flower-task", 760)
    shoot(page, f"{at}/broker", "flower-broker", 300)


if __name__ == "__main__":
    main()
