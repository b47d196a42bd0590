"""Links between pages, to their headings, and from README: each leads somewhere."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pages import DOCS, ROOT

PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    *sorted(DOCS.rglob("*.md")),
    *sorted(ROOT.glob("examples/*/README.md")),
]
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def links(page: Path) -> Iterator[str]:
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    yield from _LINK.findall(re.sub(r"`[^`\n]*`", "", text))


def anchors(page: Path) -> set[str]:
    """Names of the headings, as both the site and code hosts make them."""
    found = set()
    for heading in re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        found.add(re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", plain.lower()).strip()))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    lost = []
    for link in links(page):
        if link.startswith(("http://", "https://", "mailto:")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            lost.append(link)
    assert lost == []


def test_pages_of_the_site_link_only_to_pages_and_pictures_of_it() -> None:
    outside = {
        f"{page.relative_to(DOCS)}: {link}"
        for page in DOCS.rglob("*.md")
        for link in links(page)
        if "://" not in link
        and DOCS not in (page.parent / link.partition("#")[0]).resolve().parents
        and link.partition("#")[0]
    }
    assert outside == set()
