"""Plugins over HTTP: a person's session installs, a key only looks (spec: skills 17, 20)."""

import shutil
from pathlib import Path

import pytest

from orchestrator import plugins
from orchestrator.settings import Settings
from tests.plugins import skill, written
from tests.studio import API, asked, bearer, key_of, session_of

WHERE = "/api/plugins"


def test_a_person_installs_what_lies_in_the_plugin_folder_and_a_key_only_looks(settings: Settings) -> None:
    written(plugins.folder(settings) / "hello-1", capabilities=["llm"])
    body = {"dir": "hello-1", "grant": ["llm"]}
    with asked(settings, session_of(settings)) as person, asked(settings, bearer(key_of(settings))) as program:
        refused = program.post(WHERE, json=body)
        assert (refused.status_code, refused.json()["code"]) == (403, "not_a_person")
        made = person.post(WHERE, json=body)
        assert (made.status_code, made.json()["granted"]) == (201, ["llm"])
        assert [one["id"] for one in program.get(WHERE).json()["items"]] == ["hello"]
        shown = {one["name"]: one for one in program.get(f"{API}/skills").json()}
        assert (len(shown), shown["hello.greet"]["wired"]) == (31, False), "plugins do not run here"
        for move in ("disable", "enable"):
            assert program.post(f"{WHERE}/hello/{move}").status_code == 403
            assert person.post(f"{WHERE}/hello/{move}").json()["status"] == f"{move}d"
        assert program.delete(f"{WHERE}/hello").status_code == 403
        assert (person.delete(f"{WHERE}/hello").status_code, person.delete(f"{WHERE}/hello").status_code) == (204, 404)
    assert (plugins.folder(settings) / "hello-1").exists(), "what its owner laid there is theirs"


@pytest.mark.parametrize("name", ["../outside", "/etc", "a/b", ".new-x", "", "gone", "..", "hello\0"])
def test_nothing_else_of_the_machine_can_be_named(settings: Settings, tmp_path: Path, name: str) -> None:
    written(settings.home / "outside")
    plugins.folder(settings).mkdir(parents=True, exist_ok=True)
    with asked(settings, session_of(settings)) as person:
        refused = person.post(WHERE, json={"dir": name, "grant": []})
        assert refused.status_code == 400, refused.text
        assert person.get(WHERE).json()["items"] == []


def test_a_refusal_names_every_fault_and_a_changed_one_shows_as_disabled(settings: Settings) -> None:
    bad = written(plugins.folder(settings) / "bad", skills=[skill("hello.wave"), skill("hello.jump")])
    with asked(settings, session_of(settings)) as person:
        refused = person.post(WHERE, json={"dir": "bad", "grant": []}).json()
        assert (refused["code"], len(refused["details"])) == ("plugin_invalid", 2)
        shutil.rmtree(bad)
        made = person.post(WHERE, json={"dir": written(bad).name, "grant": []}).json()
        (plugins.folder(settings) / made["digest"] / "hello.py").write_text("x = 1\n")
        (seen,) = person.get(WHERE).json()["items"]
        assert seen["status"] == "disabled" and "hello.py" in seen["reason"]
        again = person.post(f"{WHERE}/hello/enable")
        assert (again.status_code, again.json()["code"]) == (409, "changed")
