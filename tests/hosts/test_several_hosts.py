"""Several hosts for real: one is cut off and healed, Redis goes away, all workers are replaced; and two are twice one.

`make test-hosts` runs the long form. Everything that agents do here waits (the stand-in's pauses) and each host has few
slots, so that the speed of two hosts says how the work spreads, and not how many cores this machine has.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.faults.skills import counted, deed
from tests.faults.table import Story
from tests.hosts.fleet import SLOTS, Desk, Fleet, pause, seconds_of
from tests.hosts.network import VOLUME
from tests.integration.test_fanout import agent
from tests.projects import Watched, task
from tests.support import eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3_600)]

Tell = Callable[..., Story]

#: Two hosts do at least so many times what one does.
AT_LEAST = 1.7
#: How long each task of that comparison waits for its model, in milliseconds.
WAIT_MS = 4_000

MAPPER = agent(
    "mapper",
    {
        "start": {"type": "core:start"},
        "fixed": {"type": "tool:call", "name": "proof.once", "args": {"key": "$input.data.key", "ms": 200}},
        "map": {"type": "control:map", "items": ["a", "b", "c"], "enter": "item", "body": ["item", "give"]},
        "item": {"type": "llm:generate", "tools": []},
        "give": {"type": "control:yield", "value": "$output"},
        "end": {"type": "core:end"},
    },
    [("start", "fixed"), ("fixed", "map"), ("map", "end"), ("item", "give")],
    skills=["proof.once"],
)


def project_of(number: int, delay_ms: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """A counted once call and a map; a call that waits for a yes; and a last task that waits for both."""
    plan = [
        task("maps", agent="mapper", input={"key": f"{number}-fixed"}, retries=0),
        task("asks", skills=["proof.asked"], retries=0),
        task("last", skills=["proof.once"], after=["maps", "asks"], retries=0),
    ]
    turns = {
        "asks": [deed("proof.asked", f"{number}-asked", ms=100), {"say": "asked"}],
        "last": [deed("proof.once", f"{number}-last"), {"say": "done"}],
    }
    script = {"delayMs": delay_ms, "tasks": turns, "otherwise": "rule"}
    return {"title": f"Project {number}", "brief": "b", "tasks": plan, "agents": {"mapper": MAPPER}}, script


class Course:
    """The projects of one test, submitted in parts so that there is work under way whenever something breaks."""

    def __init__(self, fleet: Fleet, desk: Desk, number: int, delay_ms: int) -> None:
        self.fleet, self.desk, self.number, self._delay_ms = fleet, desk, number, delay_ms
        self.projects: list[Watched] = []
        self._before = fleet.ended()

    def submit(self, part: float) -> None:
        """Submits as many as make this part of all."""
        self.more(round(self.number * part) - len(self.projects))

    def more(self, number: int) -> None:
        """Submits so many, whatever part of all that is."""
        first = len(self.projects)
        files = [self.desk.write(*project_of(n, self._delay_ms), f"p{n}") for n in range(first, first + number)]
        made = self.desk.submit(files)
        self.projects += made
        self.fleet.company.projects += made

    def has_work(self) -> bool:
        """Sees to it that there is some left: the others may have been fast."""
        if self.ended == len(self.projects):
            self.more(2)
        return True

    @property
    def ended(self) -> int:
        return self.fleet.ended() - self._before

    def waits_for(self, condition: Callable[[], Any], seconds: float) -> None:
        """Waits; in vain, it says what the hosts printed."""
        try:
            eventually(condition, seconds, 0.1)
        except AssertionError as error:
            raise AssertionError(f"{error}; {self.ended} of {len(self.projects)} ended\n{self.fleet.output}") from None


LONG = pytest.mark.long


@pytest.mark.parametrize(
    "number, cut_s, away_s, rolled",
    [pytest.param(12, 1, 5, "b", id="short", marks=LONG), pytest.param(500, 20, 20, "bc", id="long", marks=LONG)],
)
def test_nothing_is_lost_and_nothing_happens_twice(
    fleet: Fleet, desk: Desk, tell: Tell, number: int, cut_s: float, away_s: float, rolled: str
) -> None:
    fleet.staff("b", "c")
    course = Course(fleet, desk, number, delay_ms=300)
    most = 120 + number * 4

    _cut_off(fleet, course, tell, cut_s)
    _redis_away(fleet, course, tell, away_s)
    _rolled(fleet, course, tell, rolled)

    row = tell("4", f"all of it, while {number} projects run", "all complete, no effect twice, events in order")
    with row.recovery():
        course.waits_for(lambda: course.ended == len(course.projects), most)
    states = {project.id: project.status for project in course.projects if project.status != "completed"}
    assert not states, f"{states}\n{[t.error for p in course.projects for t in p.tasks.values() if t.error][:5]}"
    fleet.company.keeps_its_promises()
    _every_effect_is_accounted_for(fleet, course)
    assert "every row keeps them" in fleet.officina("d", "doctor", "--deep")


def _cut_off(fleet: Fleet, course: Course, tell: Tell, cut_s: float) -> None:
    """C carries runs; then no packet reaches it."""
    row = tell("1", f"host C cut off for {cut_s:g} s in the middle of its runs", "B goes on with them")
    course.submit(1 / 3)
    course.waits_for(lambda: fleet.held_by("c"), 30)
    fleet.hosts["c"].unplug()
    with row.recovery():
        course.waits_for(lambda: not fleet.held_by("c"), 60)
    pause(cut_s)

    fleet.hosts["c"].plug()
    row = tell("1b", "host C joined again", "it works again, and writes nothing that is B's by now")
    with row.recovery():
        course.submit(1 / 2)
        course.waits_for(lambda: course.has_work() and fleet.held_by("c"), 120)


def _redis_away(fleet: Fleet, course: Course, tell: Tell, away_s: float) -> None:
    """Everything in Redis is gone, and it is away for a while."""
    row = tell("2", f"Redis stopped for {away_s:g} s, empty afterwards", "work goes on")
    course.submit(2 / 3)
    fleet.redis.stop()
    pause(away_s)
    fleet.redis.start()
    with row.recovery():
        course.has_work()
        before = course.ended
        course.waits_for(lambda: course.ended > before, 120)


def _rolled(fleet: Fleet, course: Course, tell: Tell, hosts: str) -> None:
    """The schema of a newer release comes first, as the pages say; then each worker is replaced, host by host."""
    done = f"a newer schema under work, then workers of {' and '.join(hosts)} replaced, one by one (SIGTERM)"
    row = tell("3", done, "each leaves; others go on")
    course.submit(1)
    with row.recovery():
        fleet.upgrade()
        for host in hosts:
            fleet.roll(host)


def _every_effect_is_accounted_for(fleet: Fleet, course: Course) -> None:
    """Each call happened once; one that is missing stands as unknown in its project."""
    effects = counted(fleet.company.place)
    for number, project in enumerate(course.projects):
        missing = [name for name in ("fixed", "asked", "last") if effects[f"{number}-{name}"] == 0]
        if missing:
            told = json.dumps([event.data for event in project.trace], default=str)
            assert "unknown" in told, f"project {number}: {missing} did not happen, and nobody says so"


@LONG
def test_two_hosts_do_twice_the_work_of_one(fleet: Fleet, desk: Desk, tell: Tell) -> None:
    tasks = 12 * SLOTS
    row = tell("5", f"{tasks} tasks that wait, on one worker host and on two", f"at least {AT_LEAST} times as fast")
    assert row.row is not None
    took = {}
    for hosts in (["b"], ["b", "c"]):
        fleet.staff(*hosts)
        plan = [task(f"t{n}", retries=0) for n in range(tasks)]
        script = {"delayMs": WAIT_MS, "tasks": {f"t{n}": [{"say": "waited"}] for n in range(tasks)}}
        body = {"title": "Waiting", "brief": "b", "tasks": plan, "budget": {"maxParallel": tasks}}
        (project,) = desk.submit([desk.write(body, script, f"waits-on-{len(hosts)}")])
        assert project.ended(300) == "completed"
        took[len(hosts)] = seconds_of(project)
    ratio = took[1] / took[2]
    row.row["injected"] += f": {took[1]:.1f} s and {took[2]:.1f} s, {ratio:.2f} times"
    assert ratio >= AT_LEAST, took


@LONG
def test_doctor_tells_whether_a_host_has_all_it_needs(fleet: Fleet, desk: Desk) -> None:
    for host in ("b", "c", "d"):
        found = {one["part"]: one for one in json.loads(fleet.officina(host, "doctor", "--json"))["findings"]}
        assert {found[part]["verdict"] for part in ("database", "broker", "redis", "workspaces")} == {"ok"}
        assert "all hosts work in" in found["workspaces"]["words"]


@pytest.mark.long
@pytest.mark.parametrize("looks", ["missing", "empty"])
def test_a_host_whose_volume_is_not_mounted_takes_no_work(fleet: Fleet, desk: Desk, tell: Tell, looks: str) -> None:
    tell("6", f"a worker host without the volume: its root is {looks}", "no worker starts; doctor says why")
    with fleet.guest(volume=False) as guest:
        if looks == "empty":
            guest.run("mkdir", "-p", f"{VOLUME}/workspaces", env={}).check_returncode()
        looked, started = fleet.try_officina("e", "doctor", "--json"), fleet.try_officina("e", "worker")

    found = {one["part"]: one for one in json.loads(looked.stdout)["findings"]}
    assert found["database"]["verdict"] == "ok"
    assert found["workspaces"]["verdict"] == "broken"
    assert "is the volume mounted?" in found["workspaces"]["words"]
    assert looked.returncode == 1
    assert started.returncode == 1
    assert "is the volume mounted?" in started.stderr
