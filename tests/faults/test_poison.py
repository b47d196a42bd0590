"""Rows 3 and 14, and what follows from threads: a run that kills or blocks its worker ends, its neighbours complete."""

from collections import Counter
from typing import Any

import pytest

from orchestrator.store.database import get_database
from tests.faults.company import Company
from tests.faults.skills import deed
from tests.faults.table import Story
from tests.projects import task

SKILLS = ["proof.once", "proof.asked", "proof.again", "proof.look"]


def neighbours(count: int, ms: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Tasks that make two steps each, and their turns."""
    plan = [task(f"n{n}", skills=SKILLS, retries=0) for n in range(count)]
    return plan, {
        f"n{n}": [deed("proof.again", f"n{n}", ms=ms), deed("proof.look", f"n{n}b"), {"say": "done"}]
        for n in range(count)
    }


@pytest.mark.parametrize("count", [12, pytest.param(63, marks=pytest.mark.long)])
def test_a_run_that_kills_its_worker_ends_as_poison_and_its_neighbours_complete(
    company: Company, story: Story, count: int
) -> None:
    story.tells(
        "3", f"a call that kills its process, with {count} neighbours in it", "it ends as poison, they complete"
    )
    first, second = company.hire(WORKER_SLOTS=str(count + 1)), company.understudy(WORKER_SLOTS=str(count + 1))
    plan, turns = neighbours(count, ms=1_000)
    killer = task("killer", skills=SKILLS, retries=0)
    turns["killer"] = [deed("proof.look", "before"), deed("proof.again", "bang", ms=400, then="die"), {"say": "never"}]
    project = company.submit([killer, *plan], {"tasks": turns}, budget={"maxParallel": count + 1})

    company.died(first)
    second.enter()
    with story.recovery():
        company.waits_for(lambda: project.tasks["killer"].status == "failed", 60)
    company.waits_for(lambda: project.status == "partial", 90)

    assert project.tasks["killer"].error["code"] == "poison"
    assert {row.status for key, row in project.tasks.items() if key != "killer"} == {"completed"}
    assert Counter(e.key for e in company.effects)["bang"] == 3, "begun three times, then never again"
    assert second.process.running, "from the second time on it died alone"
    company.keeps_its_promises()


def test_a_bystander_of_a_death_proves_innocent_and_is_never_poison(company: Company, story: Story) -> None:
    story.tells("3b", "a call that kills its process once", "it is tried again, alone, and completes")
    first, second = company.hire(), company.understudy()
    turns = [deed("proof.again", "bang", then="die once"), deed("proof.once", "after"), {"say": "done"}]
    project = company.submit([task("a", skills=SKILLS, retries=0)], {"tasks": {"a": turns}})

    company.died(first)
    second.enter()
    with story.recovery():
        company.waits_for(lambda: project.status == "completed")

    pids = {e.key: e.pid for e in company.effects}
    assert pids["bang"] != second.pid, "the suspect step ran in a process of its own"
    assert pids["after"] == second.pid, "and the next one with everybody else"
    company.keeps_its_promises()


@pytest.mark.long
def test_a_once_call_that_kills_its_process_is_unknown_and_never_repeated(company: Company, story: Story) -> None:
    story.tells("3c", "a once call that kills its process", "its outcome is unknown; the run goes on")
    first, second = company.hire(), company.understudy()
    turns = [deed("proof.once", "bang", then="die"), {"say": "{{ results[0].ok }}"}]
    project = company.submit([task("a", skills=SKILLS, retries=0)], {"tasks": {"a": turns}})

    company.died(first)
    second.enter()
    with story.recovery():
        company.waits_for(lambda: project.status == "completed")

    assert [r["outcome"] for r in project.kinds("tool.result")] == ["unknown"]
    company.keeps_its_promises()


@pytest.mark.long
def test_a_call_that_never_comes_back_holds_neither_its_run_nor_its_worker(company: Company, story: Story) -> None:
    story.tells(
        "14", "a call that sleeps for ever in foreign code", "its run ends, others go on, its worker is replaced"
    )
    worker = company.hire(LIMITS__STUCK_CALLS="2", WORKER_SLOTS="6")
    plan, turns = neighbours(6, ms=300)
    for n in range(2):
        turns[f"stuck{n}"] = [deed("proof.again", f"stuck{n}", then="sleep"), {"say": "never"}]
    turns["unknown"] = [deed("proof.once", "u", then="sleep"), {"say": "{{ results[0].ok }}"}]
    keys = ["stuck0", "stuck1", "unknown"]
    project = company.submit([*(task(k, skills=SKILLS, retries=0) for k in keys), *plan], {"tasks": turns})

    company.waits_for(lambda: not worker.process.running, 60)
    assert worker.process.outcome == "exit 0", "it left in an orderly way"
    company.hire(LIMITS__STUCK_CALLS="2", WORKER_SLOTS="6")
    with story.recovery():
        company.waits_for(lambda: project.status == "partial", 90)

    assert {project.tasks[k].error["code"] for k in ("stuck0", "stuck1")} == {"poison"}
    assert project.tasks["unknown"].output == "false"
    assert {row.status for key, row in project.tasks.items() if key.startswith("n")} == {"completed"}
    company.keeps_its_promises()


@pytest.mark.long
def test_a_suspect_that_seizes_the_interpreter_is_ended_by_its_worker(company: Company, story: Story) -> None:
    story.tells("14b", "a call that lets no other thread of its process run", "only the first worker is lost to it")
    first, second = company.hire(), company.understudy()
    turns = [deed("proof.again", "mine", then="seize"), {"say": "never"}]
    project = company.submit([task("a", skills=SKILLS, retries=0)], {"tasks": {"a": turns}})
    company.waits_for(lambda: company.effects)
    if supervised := get_database(company.settings).sqlite:  # it may have been writing; its lock would stay
        first.kill()

    second.enter()
    with story.recovery():
        company.waits_for(lambda: project.status == "failed", 120)

    assert first.process.running != supervised
    assert project.tasks["a"].error["code"] == "poison"
    company.keeps_its_promises()
