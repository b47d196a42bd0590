"""`officina agents` and `officina memories`: citizens adopted, what is remembered seen and forgotten; the same at a
studio elsewhere."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.settings import Settings
from orchestrator.store import memories
from orchestrator.store.database import get_database
from orchestrator.store.memories import Space
from tests.commands import Run
from tests.studio import ApiProcess, key_of

UNSAFE = "two lines\n\x1b[2Jand a bell\x07"


@pytest.fixture
def kept(settings: Settings) -> list[str]:
    """Memories of a being, of the person, and of somebody else."""

    def keep(owner: str, namespace: str, content: str, being: str | None, kind: str = "note") -> str:
        row = {"content": content, "kind": kind, "being_id": being, "tags": [], "importance": 0.5, "untrusted": False}
        space = Space(owner, namespace)
        more = {"key": None, "project_id": None, "source_task_id": None, "call_key": None}
        return get_database(settings).write(lambda c: memories.keep(c, space, row | more, None))

    return [
        keep("local", "being:ivo-larch", "Bees dance.", "ivo-larch", "fact"),
        keep("local", "being:ivo-larch", UNSAFE, "ivo-larch"),
        keep("local", "owner", "Mine.", None, "fact"),
        keep("ann", "being:ivo-larch", "Hers.", "ivo-larch"),
    ]


@pytest.fixture
def there(settings: Settings, tmp_path: Path) -> Iterator[dict[str, str]]:
    server = ApiProcess(settings, tmp_path / "api.log").start()
    yield {"OFFICINA_API_URL": server.url, "OFFICINA_API_KEY": key_of(settings)}
    server.close()


def contents(officina: Run, *words: str, **more: str) -> list[str]:
    ended = officina("memories", "list", "--json", *words, **more)
    assert ended.returncode == 0, ended.stderr
    return [one["content"] for one in json.loads(ended.stdout)]


def test_memories_are_listed_by_what_they_are_of(officina: Run, kept: list[str]) -> None:
    assert contents(officina) == ["Bees dance.", UNSAFE, "Mine."]
    assert contents(officina, "--being", "ivo-larch", "--kind", "fact") == ["Bees dance."]
    assert contents(officina, "--project", "nobody") == []
    few = officina("memories", "list", "--limit", "2")
    assert few.stdout.splitlines()[0] == f"{kept[0]}  fact        being ivo-larch  Bees dance."
    assert len(few.stdout.splitlines()) == 2 and "--limit" in few.stderr
    assert "\x1b" not in few.stdout and "\x07" not in few.stdout and "Hers" not in few.stdout


def test_forgetting_takes_a_name_a_filter_or_the_word_all(officina: Run, kept: list[str]) -> None:
    for words, code in (
        ((), 2),
        ((kept[0], "--all"), 2),
        (("--being", "ivo-larch", "--all"), 2),
        ((kept[0], "--kind", "fact"), 2),
        (("nobody",), 1),
        ((kept[3],), 1),
    ):
        assert officina("memories", "forget", *words).returncode == code, words
    assert len(contents(officina)) == 3

    assert officina("memories", "forget", kept[0]).stdout == "1 forgotten\n"
    assert json.loads(officina("memories", "forget", "--being", "ivo-larch", "--json").stdout) == {"forgotten": 1}
    assert contents(officina) == ["Mine."]
    assert officina("memories", "forget", "--all").stdout == "1 forgotten\n"
    assert officina("memories", "list").stdout == "nothing is remembered\n"


def test_looking_makes_no_database(officina: Run) -> None:
    for words in (("memories", "list"), ("memories", "forget", "--all"), ("agents", "list")):
        assert officina(*words).returncode == 1


def test_a_citizen_is_adopted_and_removed(officina: Run) -> None:
    listed = officina("agents", "citizens").stdout.splitlines()
    made = officina("agents", "adopt", "ivo-larch")
    again = officina("agents", "adopt", "ivo-larch")

    assert len(listed) == 12 and listed[8].startswith("Ivo Larch       ivo-larch       writer      Something of")
    assert (made.returncode, made.stderr) == (0, "")
    assert again.stdout == made.stdout and "adopted before" in again.stderr
    id_ = made.stdout.strip()
    assert officina("agents", "list").stdout == f"{id_}  Ivo Larch (writer)  being ivo-larch\n"
    assert f"yours: {id_}" in officina("agents", "citizens").stdout
    assert json.loads(officina("agents", "promote", id_, "--json").stdout)["beingId"] == "ivo-larch"
    nobody = officina("agents", "adopt", "wren-hollis")
    assert nobody.returncode == 1 and "unknown_citizen" in nobody.stderr and "ivo-larch" in nobody.stderr
    assert officina("agents", "remove", id_).stdout == f"{id_} removed\n"
    assert officina("agents", "remove", id_).returncode == 1


def test_both_ways_do_and_print_the_same(officina: Run, there: dict[str, str], kept: list[str]) -> None:
    made = officina("agents", "adopt", "gideon-pell", **there)
    assert (made.returncode, made.stderr) == (0, "")
    for words in (
        ("agents", "list", "--json"),
        ("agents", "citizens", "--json"),
        ("agents", "adopt", "gideon-pell"),
        ("agents", "adopt", "nobody"),
        ("agents", "promote", "nobody"),
        ("agents", "remove", "nobody"),
        ("memories", "list"),
        ("memories", "list", "--json", "--limit", "1"),
        ("memories", "list", "--being", "ivo-larch", "--kind", "fact"),
        ("memories", "forget"),
        ("memories", "forget", "nobody"),
    ):
        assert officina(*words, **there) == officina(*words), words
    assert officina("memories", "forget", kept[0], **there).stdout == "1 forgotten\n"
    assert officina("memories", "forget", "--kind", "note", **there).stdout == "1 forgotten\n"
    assert contents(officina) == ["Mine."]
    assert officina("agents", "remove", made.stdout.strip(), **there).returncode == 0
