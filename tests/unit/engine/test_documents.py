"""Documents in a run: what its model is told of them, and that it keeps those it began with (spec: engine 17)."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from orchestrator.limits import Limits
from registry.playbooks import Playbook
from tests.unit.engine.graphs import THINK, ask, looper
from tests.unit.engine.stages import Played, play


def book(name: str, text: str = "Do it well.", about: str = "", when: str = "", **files: str) -> Playbook:
    return Playbook(name, about or f"About {name}.", when, text, files)


def shelf(*books: Playbook) -> dict[str, Playbook]:
    return {one.name: one for one in books}


def played(
    definition: dict[str, Any], turns: list[Any], books: Mapping[str, Playbook] | Callable[[], Any], **more: Any
) -> Played:
    def prepare(stage: Any) -> None:
        stage.services.documents = (lambda _run: books()) if callable(books) else (lambda _run: books)

    return play(definition, turns, prepare=prepare, **more)


def load(name: str, file: str | None = None) -> list[dict[str, Any]]:
    return [{"name": "load_skill", "args": {"name": name} | ({"file": file} if file else {})}]


STYLE = book("house-style", "Short sentences.", when="Before you write.", **{"words.md": "no jargon"})


def test_the_system_text_lists_the_agents_own_documents_and_no_other() -> None:
    run = played(looper(skills=["house-style"]), ["done"], shelf(STYLE, book("secret-plans")))

    text = run.requests[0].system
    assert text.startswith("Do it.") and "- house-style: About house-style. When: Before you write." in text
    assert "secret-plans" not in text and "Short sentences" not in text


def test_load_skill_gives_instructions_and_files_and_then_a_file() -> None:
    turns = [load("house-style"), load("house-style", "words.md"), "done"]

    run = played(looper(skills=["house-style"]), turns, shelf(STYLE))

    assert json.loads(run.said[0]) == {"instructions": "Short sentences.", "files": ["words.md"]}
    assert json.loads(run.said[1]) == {"file": "words.md", "content": "no jargon"}


def test_what_is_not_the_agents_is_not_found() -> None:
    turns = [load("secret-plans"), load("house-style", "../../etc/passwd"), load("house-style", "other.md"), "done"]

    run = played(looper(skills=["house-style"]), turns, shelf(STYLE, book("secret-plans")))

    assert [r["code"] for r in run.events("tool.result")] == ["not_found"] * 3
    assert "house-style" in run.said[0] and "words.md" in run.said[2]


def test_a_run_keeps_the_documents_it_began_with() -> None:
    on_disk = [shelf(book("house-style", "first", "Before."))]

    def now() -> Any:
        return on_disk[-1]

    def edited(stage: Any) -> None:
        stage.services.documents = lambda _run: now()
        answer = stage.services.journal.save

        def save(checkpoint: Any) -> Any:
            if checkpoint.park is not None:  # while it waits for a yes, somebody edits the file
                on_disk.append(shelf(book("house-style", "second", "After.")))
            return answer(checkpoint)

        stage.services.journal.save = save

    turns = [[{"name": "gated", "args": {}}], load("house-style"), "done"]
    made = looper(skills=["house-style"])
    run = play(made, turns, prepare=edited, tools={"gated": ask("process")}, answers=[{"approved": True}])

    assert len(on_disk) == 2 and json.loads(run.said[1])["instructions"] == "first"
    assert all("Before." in request.system for request in run.requests)
    assert "After." in played(looper(skills=["house-style"]), ["done"], now()).requests[0].system


def test_a_document_that_was_taken_away_is_still_the_runs() -> None:
    asked = []

    def now() -> Any:
        asked.append(1)
        return shelf(STYLE) if len(asked) == 1 else {}

    run = played(looper(skills=["house-style"]), [load("house-style"), "done"], now)

    assert json.loads(run.said[0])["instructions"] == "Short sentences."


def test_the_list_keeps_to_its_caps() -> None:
    names = [f"doc-{i:02}" for i in range(50)]
    many = played(looper(skills=names), ["done"], shelf(*[book(n) for n in names]))
    long = played(
        looper(skills=names), ["done"], shelf(*[book(n, about="words " * 160, when="w " * 400) for n in names])
    )
    few = played(
        looper(skills=names[:3]), ["done"], shelf(*[book(n) for n in names]), limits=Limits(skill_catalogue_entries=2)
    )

    listed = many.requests[0].system.partition("\n\n")[2]
    assert listed.count("\n- doc-") == 40 and listed.endswith("- and 10 more")
    cut = long.requests[0].system.partition("\n\n")[2]
    assert len(cut) <= 4000 and cut.count("\n- doc-") == 40
    assert few.requests[0].system.endswith("- and 1 more")


def test_a_node_that_cannot_read_documents_is_not_told_of_them() -> None:
    made = looper(skills=["house-style"])
    made["graph"]["nodes"]["think"] = THINK | {"tools": ["ask_user"]}
    assert played(made, ["done"], shelf(STYLE)).requests[0].system == "Do it."


def test_an_agent_without_documents_never_looks_for_any() -> None:
    def never() -> Any:
        raise AssertionError("nobody asked for documents")

    assert played(looper(), ["done"], never).status == "completed"


def test_a_handoff_brings_the_documents_of_the_new_speaker() -> None:
    reader = looper(skills=["house-style"]) | {"id": "reader"}
    nodes = {"h": {"type": "control:handoff", "agentId": "reader"}}
    edges = [{"from": "start", "to": "h"}, {"from": "h", "to": "end"}]
    ends = {"start": {"type": "core:start"}, "end": {"type": "core:end"}}
    first = {
        "id": "first",
        "instructions": "x",
        "graph": {"nodes": ends | nodes, "edges": edges},
        "budget": {"maxSteps": 9},
    }

    run = played(first, [load("house-style"), "done"], shelf(STYLE), agents={"reader": reader})

    assert json.loads(run.said[0])["instructions"] == "Short sentences." and run.status == "completed"
