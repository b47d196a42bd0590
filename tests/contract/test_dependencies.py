"""What is installed beside ours: every file by its hash, and under a licence that lets people use the whole."""

import re
from importlib import metadata
from pathlib import Path

import pytest

LOCK = Path(__file__).parents[2] / "requirements.lock"

#: Licences that ask for no more than their text and, where the library itself is changed, its source.
ALLOWED = {
    *("0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "CNRI-Python", "ISC", "MIT", "MIT-0", "MIT-CMU"),
    *("MPL-1.1", "MPL-2.0", "PSF-2.0", "Unlicense", "Zlib", "LGPL-2.1-or-later", "LGPL-3.0-only"),
}
#: What older packages call them.
OLDER = {
    "Apache Software License": "Apache-2.0",
    "3-Clause BSD License": "BSD-3-Clause",
    "BSD License": "BSD-3-Clause",
    "GNU Library or Lesser General Public License (LGPL)": "LGPL-2.1-or-later",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
    "The Unlicense (Unlicense)": "Unlicense",
}
#: Said only in their own words, and read by a person.
READ: dict[str, str] = {}


def pins() -> dict[str, str]:
    """Each pin of the lock with the lines that belong to it."""
    parts = re.split(r"^(?=[A-Za-z0-9_.-]+(?:\[[^]]*\])?==)", LOCK.read_text(encoding="utf-8"), flags=re.M)
    return {re.split(r"[\[=]", part)[0]: part for part in parts if "==" in part.split("\n")[0]}


def _there(name: str) -> bool:
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:  # for another system
        return False
    return True


def licences(name: str) -> str:
    """An expression of SPDX ids, from whichever place the package says it in."""
    found = metadata.metadata(name)
    if expression := found.get("License-Expression"):
        return str(expression)
    said = [c.rsplit(" :: ", 1)[1] for c in found.get_all("Classifier") or [] if c.startswith("License :: ")]
    said = [one for one in said if one != "OSI Approved"]
    said = said or [str(found.get("License") or "nothing").split("\n")[0]]
    return " OR ".join(OLDER.get(one, one) for one in said)


def is_allowed(expression: str) -> bool:
    """One choice of an OR is enough; of an AND, all have to be."""
    choices = re.split(r"\s+OR\s+", expression.replace("(", "").replace(")", ""))
    return any(all(part in ALLOWED for part in re.split(r"\s+AND\s+", choice)) for choice in choices)


@pytest.mark.parametrize("expression", ["GPL-3.0-only", "MIT AND AGPL-3.0-only", "Proprietary", "nothing"])
def test_a_licence_that_asks_for_more_would_be_seen(expression: str) -> None:
    assert not is_allowed(expression)
    assert is_allowed(f"{expression} OR MIT")


def test_every_pin_is_held_by_hashes() -> None:
    bare = [name for name, part in pins().items() if not re.search(r"--hash=sha256:[0-9a-f]{64}\b", part)]
    assert len(pins()) > 60
    assert bare == []


def test_every_licence_is_one_that_lets_people_use_the_whole() -> None:
    there = [name for name in pins() if _there(name)]
    assert len(there) > 60
    assert {name: licences(name) for name in there if name not in READ and not is_allowed(licences(name))} == {}
