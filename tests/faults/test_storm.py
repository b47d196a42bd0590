"""The storm: many projects, three workers, one of them killed every two seconds, Redis emptied, the database restarted.

make test-faults ARGS="-k storm --seed 7"
"""

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from sqlalchemy import func, select

from orchestrator.producer import submit
from orchestrator.settings import Settings
from orchestrator.signals import answer
from orchestrator.states import PROJECT_ENDED
from orchestrator.store.database import get_database
from orchestrator.store.tables import projects, signals
from registry.errors import OfficinaError, Refused
from tests import services
from tests.faults.company import QUICK, Company
from tests.faults.servers import FragileRedis
from tests.faults.skills import counted, deed
from tests.faults.table import Story
from tests.faults.template import Template
from tests.projects import Watched
from tests.weather import EXAMPLE

#: The pace of the killings.
EVERY_S = 2.0
#: Lease and clock as short as the storm makes them useful.
CALM = {"LIMITS__LEASE_S": "3", "LIMITS__RENEW_S": "1", "LIMITS__CLOCK_TICK_S": "0.3", "WORKER_SLOTS": "16"}


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    given = request.config.getoption("--seed")
    chosen = int(given) if given is not None else random.SystemRandom().randrange(10_000)
    print(f"\nseed {chosen}")
    return chosen


@pytest.fixture
def weather_company(tmp_path: Path, short_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A company on a Redis and a PostgreSQL of its own, which may be broken."""
    redis = FragileRedis(short_folder / "storm")
    server = services.needed(services.PostgresServer)
    server.start()
    url = services.make_database(server.url, "storm", migrate_from=short_folder)
    settings = Settings(home=tmp_path / "home", database_url=url, broker_url=redis.url, _env_file=None)  # type: ignore[call-arg]
    company = Company(settings, tmp_path, monkeypatch)
    template = Template(settings, tmp_path, QUICK | CALM)
    yield company, template, redis, server
    template.dismiss()
    services.close_connections(url)
    server.remove()
    redis.close()


def shaped_like_the_example(folder: Path) -> Path:
    """The example's plan and agents; where it runs a program, a counted once call asks the person instead."""
    project = yaml.safe_load((EXAMPLE / "project.yaml").read_text(encoding="utf-8"))
    script = yaml.safe_load((EXAMPLE / "script.yaml").read_text(encoding="utf-8"))
    for name in ("inputs", "key"):
        project.pop(name, None)
    tasks = []
    for task in project["tasks"]:
        asks = "code.execute" in task.get("skills", [])
        task["skills"] = ["proof.asked" if asks else "proof.once", "proof.again", "files.write"]
        task["deliverables"] = []
        tasks.append(task)
    turns = {
        task["key"]: [
            deed("proof.again", "look-{{ input.text | length }}", ms=20),
            deed("proof.asked" if "proof.asked" in task["skills"] else "proof.once", f"KEY-{task['key']}", ms=30),
            {"say": f"{task['key']} is done"},
        ]
        for task in tasks
    }
    project |= {"tasks": tasks, "script": "script.json"}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "script.json").write_text(json.dumps({"delayMs": 20, "tasks": turns, "otherwise": script["otherwise"]}))
    (folder / "project.json").write_text(json.dumps(project))
    return folder / "project.json"


class Nemesis:
    """Kills a worker every two seconds and starts another; once it empties Redis, once it restarts the database.

    No thread: the kernel ends a process with the thread that started it.
    """

    def __init__(
        self, template: Template, redis: FragileRedis, server: services.PostgresServer, dice: random.Random
    ) -> None:
        self.template, self.redis, self.server, self.dice = template, redis, server, dice
        self.killed = 0
        self.special = {"flush", "restart"}
        self.staff = [template.hire() for _ in range(3)]
        self._next = time.monotonic() + EVERY_S

    def strike(self, *, halfway: bool) -> None:
        """What is due."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + EVERY_S
        self._kill_one()
        if halfway and self.special:
            act = self.dice.choice(sorted(self.special))
            self.special.discard(act)
            if act == "flush":
                self.redis.client.flushall()
            else:
                self.server.stop()
                time.sleep(1)  # how long it is away
                self.server.start()

    def _kill_one(self) -> None:
        """One that takes work, while another one does: a slow machine would otherwise never have any."""
        working = [place for place, worker in enumerate(self.staff) if " ready." in worker.output]
        if len(working) > 1:
            place = self.dice.choice(working)
            self.staff[place].kill()
            self.killed += 1
            self.staff[place] = self.template.hire()


def yes_to_all(company: Company) -> None:
    """A person says yes, and no to doing again what may have happened; unless the database is away just now."""
    open_ones = select(signals.c.id, signals.c.reason).where(signals.c.status == "open", signals.c.kind == "decision")
    try:
        with get_database(company.settings).read() as connection:
            asked = connection.execute(open_ones).all()
        for signal_id, reason in asked:
            try:
                answer(
                    company.settings,
                    signal_id,
                    option="No" if "may have happened" in (reason or "") else "Do it",
                    by="the test",
                )
            except Refused:
                continue
    except OfficinaError:
        return


def ended(company: Company) -> int:
    done = select(func.count()).where(projects.c.status.in_(sorted(PROJECT_ENDED)))
    try:
        with get_database(company.settings).read() as connection:
            return int(connection.execute(done).scalar_one())
    except OfficinaError:
        return 0


@pytest.mark.timeout(5_400)
@pytest.mark.parametrize("count", [2, *(pytest.param(many, marks=pytest.mark.long) for many in (12, 300))])
def test_everything_ends_and_nothing_happens_twice(
    weather_company: Any, story: Story, seed: int, tmp_path: Path, count: int
) -> None:
    company, template, redis, server = weather_company
    words = f"{count} projects, kill -9 of one of 3 workers every 2 s, FLUSHALL, a database restart (seed {seed})"
    story.tells("storm", words, "all complete; each yes has at most one effect, or is unknown")
    file = shaped_like_the_example(tmp_path / "project")
    made = []
    script = (tmp_path / "project" / "script.json").read_text(encoding="utf-8")
    for number in range(count):  # each with keys of its own, so that its effects can be told from all others
        (tmp_path / "project" / "script.json").write_text(script.replace("KEY-", f"{number}-"), encoding="utf-8")
        made.append(submit(file, settings=company.settings).project_id)
    nemesis = Nemesis(template, redis, server, random.Random(seed))

    begun = time.monotonic()
    while (done := ended(company)) < count * 0.9 or nemesis.special:
        assert time.monotonic() - begun < 300 + count * 15, f"{done} of {count} have ended"
        yes_to_all(company)
        nemesis.strike(halfway=done >= count / 3)
        time.sleep(0.25)  # the pace of the person
    with story.recovery():
        while (done := ended(company)) < count:
            assert time.monotonic() - begun < 600 + count * 20, f"{done} of {count} have ended"
            yes_to_all(company)
            time.sleep(0.25)

    print(f"{count} projects in {time.monotonic() - begun:.0f} s, {nemesis.killed} workers killed")
    watched = [Watched(company.settings, project_id) for project_id in made]
    company.projects += watched
    states = {project.id: project.status for project in watched if project.status != "completed"}
    assert not states, f"{states}\n{[t.error for p in watched for t in p.tasks.values() if t.error][:5]}"
    assert not nemesis.special, "both happened"
    effects = counted(company.place, "asked")
    for number, project in enumerate(watched):
        unknown = [s for s in project.signals if s.execution == "unknown"]
        for signal in project.signals:
            key = signal.action["input"]["key"]
            if effects[key] == 0:
                assert unknown, f"project {number}: a yes without an effect stands as unknown"
    company.keeps_its_promises()
