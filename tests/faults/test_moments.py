"""Rows 25 to 29, 33, 37, 40, 41: timers, joins, answers, expiries and cancels at the worst moment."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from orchestrator import control
from orchestrator.signals import answer
from registry.errors import Refused
from tests.faults.company import Company
from tests.faults.skills import counted, deed
from tests.faults.table import Story
from tests.integration.test_fanout import agent, spawner, speaker
from tests.projects import Watched, task

SKILLS = ["proof.once", "proof.asked", "proof.again", "proof.look"]


def asking(company: Company, count: int = 1) -> list[Watched]:
    turns = {"tasks": {"a": [deed("proof.asked", "KEY"), {"say": "{{ results[0].ok }}"}]}}
    made = []
    for number in range(count):
        script = {"tasks": {"a": [deed("proof.asked", f"k{number}"), turns["tasks"]["a"][1]]}}
        made.append(company.submit([task("a", skills=SKILLS, retries=0)], script))
    return made


@pytest.mark.long
def test_a_timer_wakes_once_though_nobody_was_there(company: Company, story: Story) -> None:
    story.tells("29", "every worker killed while a run sleeps, past its time", "it wakes once, as soon as one is there")
    first, second = company.hire(), company.understudy()
    nodes: dict[str, Any] = {
        "s": {"type": "core:start"},
        "w": {"type": "control:wait", "delayMs": 2_000},
        "t": {"type": "llm:generate", "tools": []},
        "e": {"type": "core:end"},
    }
    sleeper = agent("sleeper", nodes, [("s", "w"), ("w", "t"), ("t", "e")])
    project = company.submit([task("a", agent="sleeper")], {"otherwise": "rule"}, agents={"sleeper": sleeper})
    company.waits_for(lambda: any(run.waiting_on == "timer" for run in project.runs))
    parked = time.monotonic()

    first.kill()
    time.sleep(max(0, 2.5 - (time.monotonic() - parked)))  # its time passes
    second.enter()
    with story.recovery():
        company.waits_for(lambda: project.status == "completed")

    assert [r["by"] for r in project.kinds("run.resumed")] == ["timer"]
    company.keeps_its_promises()


@pytest.mark.long
def test_a_join_waits_for_every_child_whatever_becomes_of_it(company: Company, story: Story) -> None:
    story.tells(
        "26", "children that fail, kill their worker, are cut by a budget, and one that is fine", "the join ends"
    )
    first, second = company.hire(), company.understudy()
    doer = {"id": "doer", "instructions": "Do.", "skills": SKILLS}
    kids = {name: doer | {"id": name} for name in ("fine", "fails", "kills")}
    kids["short"] = doer | {"id": "short", "budget": {"maxSteps": 3, "policy": "error"}}
    calls = [{"agentId": name, "input": name} for name in ("fine", "fails", "kills", "short", "ghost")]
    agents = kids | {"boss": spawner("boss", calls)}
    script = {
        "agents": {
            "fine": [deed("proof.once", "fine"), {"say": "fine"}],
            "fails": [deed("proof.look", "f")],  # and then its turns are used up
            "kills": [deed("proof.again", "bang", ms=500, then="die"), {"say": "never"}],
            "short": [deed("proof.look", f"s{n}") for n in range(6)],
        },
        "otherwise": "rule",
    }
    plan = [task("a", agent="boss", retries=0), *(task(f"use-{k}", agent=k, retries=0) for k in kids)]
    script["tasks"] = {f"use-{k}": [{"say": "here"}] for k in kids}
    project = company.submit(plan, script, agents=agents)

    company.died(first)
    second.enter()
    with story.recovery():
        company.waits_for(lambda: project.tasks["a"].status == "completed", 90)

    codes = [(r.get("error") or {}).get("code") for r in project.tasks["a"].output["results"]]
    assert codes[0] is None
    assert codes[2] == "poison"
    assert None not in codes[1:]
    company.waits_for(lambda: project.status == "completed")
    company.keeps_its_promises()


def test_fifty_people_answer_one_question(company: Company, story: Story) -> None:
    story.tells("37", "50 answers to one question at once, half yes and half no", "one counts, it alone is acted on")
    (project,) = asking(company)
    company.hire().ready()
    asked = project.open_signal(60)
    barrier = threading.Barrier(50)

    def say(number: int) -> str:
        barrier.wait()
        try:
            answer(company.settings, asked.id, option="Do it" if number % 2 else "No", by=f"person {number}")
        except Refused as refused:
            return refused.code
        return "yes" if number % 2 else "no"

    with ThreadPoolExecutor(50) as pool:
        said = list(pool.map(say, range(50)))

    won = [word for word in said if word in ("yes", "no")]
    assert len(won) == 1
    assert said.count("already_answered") == 49
    with story.recovery():
        company.waits_for(lambda: project.status == "completed")
    assert counted(company.place, "asked")["k0"] == (1 if won == ["yes"] else 0)
    company.keeps_its_promises()


@pytest.mark.long
def test_a_yes_after_its_time_is_no_yes(company: Company, story: Story) -> None:
    story.tells("40", "answers around the moment a question expires, while its worker is killed", "late is refused")
    made = asking(company, 6)
    first, second = company.hire(), company.understudy()
    asked = [project.open_signal(60) for project in made]
    first.kill()
    company.expire_everything()

    refused = 0
    for signal in asked[:3]:  # the rows still say that they are open
        with pytest.raises(Refused):
            answer(company.settings, signal.id, option="Do it", by="too late")
        refused += 1
    second.enter()
    with story.recovery():
        company.waits_for(lambda: all(project.status == "completed" for project in made))

    assert refused == 3
    assert not counted(company.place, "asked")
    assert {s.status for project in made for s in project.signals} == {"expired"}
    company.keeps_its_promises()


def test_a_cancel_and_a_yes_at_once_tell_one_story(company: Company, story: Story) -> None:
    story.tells("41", "a cancel and a yes at the same moment, in 12 projects", "acted on or cancelled, never half")
    made = asking(company, 12)
    company.hire(WORKER_SLOTS="12").ready()
    asked = {project.id: project.open_signal(60) for project in made}

    def both(project: Watched) -> None:
        barrier = threading.Barrier(2)

        def yes() -> None:
            barrier.wait()
            with suppress(Refused):  # the cancel was faster
                answer(company.settings, asked[project.id].id, option="Do it", by="the test")

        other = threading.Thread(target=yes)
        other.start()
        barrier.wait()
        with suppress(Refused):  # the project was faster
            control.cancel(company.settings, project.id, by="the test")
        other.join()

    for project in made:
        both(project)
    with story.recovery():
        company.waits_for(lambda: all(project.status in ("completed", "cancelled") for project in made))
    company.waits_for(lambda: not any(run.status == "running" for project in made for run in project.runs))

    effects = counted(company.place, "asked")
    for number, project in enumerate(made):
        if project.status == "completed":
            assert effects[f"k{number}"] == 1
    before = len(company.effects)
    time.sleep(0.5)  # nothing starts after a cancel has returned
    assert len(company.effects) == before
    company.keeps_its_promises()


@pytest.mark.parametrize("when", ["working", pytest.param("dead", marks=pytest.mark.long)])
def test_a_cancel_holds_whatever_its_worker_does(company: Company, story: Story, when: str) -> None:
    story.tells("33", f"a cancel while its worker is {when}, with children and a sleeper", "nothing begins any more")
    kids = [{"agentId": "kid", "input": f"n{n}"} for n in range(4)]
    agents = {"kid": speaker("kid"), "boss": spawner("boss", kids)}
    turns = {"works": [*(deed("proof.once", f"w{n}", ms=300) for n in range(10)), {"say": "worked"}]}
    plan = [
        task("works", skills=SKILLS, retries=0),
        task("joins", agent="boss", retries=0),
        task("k", agent="kid", retries=0),
        task("later", after=["works"]),
    ]
    first, second = company.hire(), company.understudy()
    project = company.submit(plan, {"delayMs": 400, "tasks": turns, "otherwise": "rule"}, agents=agents)
    company.waits_for(lambda: len(project.kinds("tool.result")) >= 2)
    if when == "dead":
        first.kill()

    control.cancel(company.settings, project.id, by="the test")
    done = len(company.effects)
    second.enter()

    with story.recovery():
        company.waits_for(
            lambda: project.status == "cancelled" and not any(r.status == "running" for r in project.runs)
        )
    second.ready(60)
    time.sleep(1)  # time in which something could begin
    assert len(company.effects) <= done + 1, "at most the call it stood in"
    assert {r.status for r in project.runs} <= {"cancelled", "completed"}
    company.keeps_its_promises()
