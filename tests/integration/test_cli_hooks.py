"""`officina hooks`: a door is made, its secret is printed once, and it is closed again."""

import json

from tests.commands import Run


def test_a_webhook_is_made_listed_paused_given_a_new_secret_and_removed(officina: Run) -> None:
    assert officina("hooks", "list").returncode == 1, "looking makes no database"
    made = json.loads(officina("hooks", "add", "builds", "--agent", "explorer", "--detail", "Say it.").stdout)
    assert (made["name"], made["mode"], made["agentId"], len(made["secret"])) == ("builds", "ask", "explorer", 43)
    (listed,) = json.loads(officina("hooks", "list", "--json").stdout)
    assert listed["endpoint"] == f"/api/studio/hooks/{made['id']}" and "secret" not in listed
    again = officina("hooks", "secret", made["id"])
    assert again.returncode == 1 and made["secret"] not in again.stdout + again.stderr
    rotated = officina("hooks", "rotate", made["id"]).stdout.strip()
    assert len(rotated) == 43 and rotated != made["secret"]
    assert officina("hooks", "pause", made["id"]).stdout == f"{made['id']} paused\n"
    assert officina("hooks", "remove", made["id"]).returncode == 0
    for words in (("remove",), ("rotate",), ("resume",)):
        gone = officina("hooks", *words, made["id"])
        assert gone.returncode == 1 and "unknown_hook" in gone.stderr


def test_what_makes_no_webhook_is_said(officina: Run) -> None:
    officina("hooks", "add", "first", "--agent", "explorer")
    nobody = officina("hooks", "add", "builds", "--agent", "nobody")
    assert nobody.returncode == 1 and "nobody" in nobody.stderr
    assert officina("hooks", "add", "builds", "--agent", "explorer", "--mode", "plan").returncode == 2
