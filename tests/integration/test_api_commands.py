"""The command line on a studio elsewhere: the same words do the same, and print the same (OFFICINA_API_URL)."""

import json
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from orchestrator import keys
from orchestrator.settings import Settings
from tests.commands import Run
from tests.studio import API, ApiProcess, asked, bearer, key_of
from tests.unit.api.test_projects import PLAN


@pytest.fixture
def there(settings: Settings, tmp_path: Path) -> Iterator[ApiProcess]:
    """A studio with the home that `officina` has in these tests, so that both sides see one set of rows."""
    server = ApiProcess(settings, tmp_path / "api.log")
    yield server.start()
    server.close()


def test_both_ways_print_the_same(officina: Run, there: ApiProcess, settings: Settings, tmp_path: Path) -> None:
    far = {"OFFICINA_API_URL": there.url, "OFFICINA_API_KEY": key_of(settings)}
    (tmp_path / "notes.txt").write_text("what was said")
    (tmp_path / "script.json").write_text(json.dumps({"tasks": {}}))
    project = {"title": "Far away", "brief": "b", "tasks": PLAN, "inputs": ["notes.txt"], "script": "script.json"}
    (tmp_path / "project.json").write_text(json.dumps(project))

    made = officina("submit", "project.json", "--key", "k", "--json", **far)
    again = officina("submit", "project.json", "--key", "k", **far)

    assert (made.returncode, made.stderr) == (0, "")
    id_ = json.loads(made.stdout)["id"]
    assert again.stdout == id_ + "\n"
    assert "was there already" in again.stderr
    assert (settings.workspaces / id_ / "inputs" / "notes.txt").read_text() == "what was said"
    for words in (["show", id_], ["show", id_[-8:], "--json"], ["list"], ["list", "--json"], ["signals"]):
        assert officina(*words, **far) == officina(*words), words
    for words in (["trace", id_, "--json"], ["trace", id_], ["trace", id_, "--task", "write"]):
        near, away = officina(*words), officina(*words, **far)
        assert away.stdout == near.stdout, words
        assert away.returncode == 0
    cancelled = officina("cancel", id_, **far)
    assert cancelled.stdout == f"{id_} cancelled\n"
    watched = officina("watch", id_, **far)
    assert (watched.returncode, watched.stdout) == (1, officina("watch", id_).stdout)
    task = json.loads(made.stdout)["tasks"]["sort"]
    assert officina("retry", task, **far).stdout == f"{task} queued again\n"


GENERATOR = {
    "name": "Note",
    "description": "A note.",
    "inputs": [{"key": "topic", "label": "Topic", "type": "text", "required": True}],
    "steps": [{"key": "a", "title": "On {{topic}}", "role": "writer", "instruction": "Write on {{topic}}."}],
}


def test_both_ways_see_and_change_one_shelf(
    officina: Run, there: ApiProcess, settings: Settings, tmp_path: Path
) -> None:
    """Generators, schedules, webhooks, plugins, what agents look things up in, and skills."""
    far = {"OFFICINA_API_URL": there.url, "OFFICINA_API_KEY": key_of(settings)}
    (tmp_path / "note.json").write_text(json.dumps(GENERATOR))

    def done(*words: str) -> str:
        ended = officina(*words, **far)
        assert (ended.returncode, ended.stderr) == (0, ""), words
        return ended.stdout.strip()

    generator = done("generators", "save", "note.json")
    project = done("generators", "run", generator, "--input", "topic=bees", "--rehearse")
    assert json.loads(officina("show", project, "--json").stdout)["tasks"][0]["title"] == "On bees"
    hook = json.loads(done("hooks", "add", "Door", "--agent", "assistant", "--projects"))
    assert hook["secret"] != done("hooks", "rotate", hook["id"])
    assert done("hooks", "pause", hook["id"]) == f"{hook['id']} paused"
    with asked(settings, bearer(far["OFFICINA_API_KEY"])) as studio:
        text = {"name": "bees.md", "text": "A hive keeps its brood warm."}
        source = studio.post(f"{API}/knowledge", json=text).json()["id"]
        prompt = {"title": "Daily", "everyMinutes": 60, "action": {"kind": "prompt", "text": "Look."}}
        schedule = studio.post(f"{API}/schedules", json=prompt).json()["id"]
    assert done("schedules", "pause", schedule[-6:]) == f"{schedule} paused"

    for words in (
        ["generators", "list"],
        ["generators", "show", generator],
        ["hooks", "list", "--json"],
        ["schedules", "show", schedule, "--json"],
        ["schedules", "list"],
        ["knowledge", "--json"],
        ["knowledge", "search", "brood", "--json"],
        ["plugins", "list", "--json"],
        ["skills", "show", "math.evaluate", "--json"],
        ["hooks", "pause", "nobody"],
        ["generators", "show", "nobody"],
        ["schedules", "delete", "nobody"],
        ["knowledge", "remove", "nobody"],
    ):
        near, away = officina(*words), officina(*words, **far)
        assert (away.returncode, away.stdout, away.stderr) == (near.returncode, near.stdout, near.stderr), words

    counted = officina("skills", "invoke", "math.evaluate", "--input", '{"expression": "2^10"}', **far)
    assert (counted.returncode, json.loads(counted.stdout)["output"]["value"]) == (0, 1024)
    done("generators", "remove", generator)
    done("hooks", "remove", hook["id"])
    done("schedules", "delete", schedule)
    done("knowledge", "remove", source)
    assert officina("knowledge", "--json").stdout == officina("hooks", "list", "--json").stdout == "[]\n"


def test_both_ways_refuse_the_same(officina: Run, there: ApiProcess, settings: Settings, tmp_path: Path) -> None:
    far = {"OFFICINA_API_URL": there.url, "OFFICINA_API_KEY": key_of(settings)}
    bad = [{"key": "a", "role": "writer", "instruction": "x", "dependsOn": ["b"]}]
    (tmp_path / "bad.json").write_text(json.dumps({"title": "t", "brief": "b", "tasks": bad, "colour": "red"}))
    (tmp_path / "gone.json").write_text(json.dumps({"title": "t", "brief": "b", "inputs": ["none.txt"]}))
    officina("submit", "something to do", "--rehearse")

    for words in (
        ["submit", "bad.json"],
        ["submit", "gone.json"],
        ["show", "0194c5d2"],
        ["cancel", "0194c5d2-7c1e-7a60-8000-000000000000"],
        ["answer", "0194c5d2", "Do it"],
        ["answer", "0194c5d2"],
        ["fork", "0194c5d2", "--at", "1"],
    ):
        near, away = officina(*words), officina(*words, **far)
        assert (away.returncode, away.stderr) == (near.returncode, near.stderr), words
        assert away.returncode in (1, 2), words


def test_a_key_never_approves_and_a_session_does(
    officina: Run, there: ApiProcess, settings: Settings, tmp_path: Path
) -> None:
    from orchestrator import outside
    from orchestrator.store.database import get_database
    from registry.skills.registry import Pending

    project = json.loads(officina("submit", "send a letter", "--rehearse", "--json").stdout)["id"]
    where = outside.place(settings, project, "local")
    call = {"to": ["a@example.com"], "subject": "s", "body": "b"}
    signal = outside.ask(settings, where, "call-1", Pending("email.send", call, "d" * 64, "world", "it acts outside"))
    url = {"OFFICINA_API_URL": there.url}

    refused = officina("answer", signal, "Do it", **url, OFFICINA_API_KEY=key_of(settings))
    unknown = officina("answer", signal, "Do it", **url)
    code = keys.make_code(settings)
    get_database(settings).dispose()
    joined = officina("login", code, **url)
    answered = officina("answer", signal, "Do it", **url)

    assert (refused.returncode, "not_a_person" in refused.stderr) == (1, True)
    assert (unknown.returncode, "no_key" in unknown.stderr) == (2, True)
    assert (joined.returncode, joined.stdout) == (0, f"in as local at {there.url}\n")
    assert (answered.returncode, answered.stdout) == (0, f"{signal} answered\n")
    assert (settings.home / "sessions.json").stat().st_mode & 0o077 == 0
    again = officina("answer", signal, "No", **url)
    assert (again.returncode, "already_answered" in again.stderr) == (1, True)


def test_a_plugin_is_installed_out_of_the_plugin_folder_of_the_studio(
    officina: Run, there: ApiProcess, settings: Settings, tmp_path: Path
) -> None:
    from orchestrator import plugins
    from tests.integration.test_plugins import of_the_page

    far = {"OFFICINA_API_URL": there.url}
    source = of_the_page(tmp_path)
    plugins.folder(settings).mkdir(parents=True)
    source.rename(plugins.folder(settings) / "laid")
    digest = plugins.review(plugins.folder(settings) / "laid")["digest"]
    officina("login", keys.make_code(settings), **far)

    here = officina("plugins", "install", str(source), **far)
    by_a_key = officina("plugins", "install", "laid", **far, OFFICINA_API_KEY=key_of(settings))
    other = officina("plugins", "install", "laid", "--expect", "0" * 64, **far)
    made = officina("plugins", "install", "laid", "--grant", "files:read", "--expect", digest, "--json", **far)

    assert (here.returncode, "takes nothing from this machine" in here.stderr) == (2, True)
    assert (by_a_key.returncode, "not_a_person" in by_a_key.stderr) == (1, True)
    assert (other.returncode, "changed" in other.stderr) == (1, True)
    assert (made.returncode, json.loads(made.stdout)["granted"]) == (0, ["files:read"])
    assert f"in the plugin folder of {there.url}, not from this machine" in made.stderr
    assert [one["id"] for one in plugins.listed(settings)] == ["wordcount"]


def test_a_key_is_given_an_end_on_the_command_line(officina: Run, settings: Settings) -> None:
    made = officina("keys", "add", "ci", "--expires", "90d", "--json")
    wrong = officina("keys", "add", "ci", "--expires", "soon")

    expires = json.loads(made.stdout)["expiresAt"]
    assert abs(expires - (time.time() + 90 * 86_400) * 1000) < 600_000
    assert (wrong.returncode, "--expires: invalid_expiry" in wrong.stderr) == (2, True)
    assert [one["expiresAt"] for one in keys.listed(settings, "local")] == [expires]
    assert f"{datetime.fromtimestamp(expires / 1000).astimezone():%Y-%m-%d}" in officina("keys", "list").stdout


def test_a_studio_that_is_away_is_said_to_be(officina: Run) -> None:
    away = officina("list", OFFICINA_API_URL="http://127.0.0.1:9", OFFICINA_API_KEY="ofk_x")

    assert away.returncode == 1
    assert away.stderr.startswith("unavailable: the studio at 127.0.0.1 does not answer")


@pytest.mark.slow
def test_the_stack_serves_the_api_and_brings_it_back(tmp_path: Path) -> None:
    import os
    import signal

    import httpx2

    from orchestrator.local import EmbeddedStack
    from tests.support import eventually

    home = tmp_path / "home"
    settings = Settings(home=home, api={"port": 0}, _env_file=None)  # type: ignore[call-arg]
    with EmbeddedStack(
        settings, workers=0, worker_command=lambda _: [], flower=False, say=lambda _: None, api=True
    ) as stack:

        def answers() -> bool:
            try:
                return httpx2.get(f"{stack.api_url}/health/ready", timeout=20).status_code == 200
            except httpx2.TransportError:
                return False

        eventually(answers, 40)
        assert settings.stack["apiUrl"] == stack.api_url
        os.kill(int(settings.stack["pids"]["api"]), signal.SIGKILL)  # type: ignore[index]
        eventually(answers, 40)
    assert not answers()
