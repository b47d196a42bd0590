"""`make docs`: the pages become a site, without a warning and without a word to another host."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import DOCS, ROOT

pytest.importorskip("mkdocs", reason="`make docs` brings it: it is in the development lock")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    # A proxy that nobody listens at: a build that asks another host would fail.
    nowhere = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9")
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | nowhere | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert (done.returncode, done.stderr + done.stdout) == (0, "")
    return folder


def test_every_page_is_in_the_site(site: Path) -> None:
    for page in DOCS.rglob("*.md"):
        name = page.relative_to(DOCS).with_suffix(".html")
        if name.name == "README.html":
            name = name.with_name("index.html")
        assert (site / name).exists(), name
    assert not list(site.rglob("*.py")) and not list(site.rglob("*.yaml"))


def test_no_page_loads_anything_from_another_host(site: Path) -> None:
    loads = re.compile(
        r"<(?:script|img|iframe)[^>]*\ssrc=[\"']?(?:https?:)?//[^\"' >]+|<link[^>]*href=[\"']?(?:https?:)?//[^ >]+"
    )
    styles = re.compile(r"(?:url\(|@import )[\"']?(?:https?:)?//[^)\"' ]+")

    asked = {found for page in site.rglob("*.html") for found in loads.findall(page.read_text(encoding="utf-8"))}
    asked |= {found for sheet in site.rglob("*.css") for found in styles.findall(sheet.read_text(encoding="utf-8"))}

    assert asked == set()


def test_the_search_knows_every_page(site: Path) -> None:
    index = (site / "search" / "search_index.json").read_text(encoding="utf-8")
    assert "tutorial/first-project.html" in index and "reference/codes.html" in index


def test_the_pictures_of_the_pages_are_those_this_release_draws() -> None:
    import runpy

    for name, picture in runpy.run_path(str(DOCS / "draw.py"))["more"]().items():
        assert (DOCS / "images" / name).read_text(encoding="ascii") == picture, f"{name}: make pictures"
