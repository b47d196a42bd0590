"""What a person does on the desk: each button does what it says, and says why when it comes too late."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import insert, select

from orchestrator.settings import Settings
from orchestrator.store.database import get_database
from orchestrator.store.tables import checkpoints, projects, repairs, runs, tasks
from tests.browser.conftest import Open
from tests.rows import BEGAN, Project
from tests.studio import ApiProcess

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]

FAR = 4_000_000_000_000


@dataclass(frozen=True)
class Deed:
    """A button, and what comes of pressing it first and second."""

    path: str
    button: str
    told: str
    refused: str
    #: Of the rows, after the first.
    done: Callable[[], Any]
    #: What has to be opened before the button can be pressed.
    unfold: str | None = field(default=None)


@pytest.fixture
def made(studio_settings: Settings) -> Project:
    """A project in which there is something to do for every button."""
    project = Project(studio_settings)
    project.task("slept", "waiting", run={"waiting_on": "timer", "due_at": FAR, "started_at": BEGAN})
    error = {"code": "model_failed", "message": "no answer"}
    project.task("failed", "failed", error=error, run={"error": error, "ended_at": BEGAN + 1})
    project.task("ended", "completed", run={"ended_at": BEGAN + 1})
    project.task("unsure", "running")
    project.call("unsure", "c1", outcome="unknown", name="email.send", input={"to": "ada@example.com"})
    project.event("run.started", {"attempt": 1}, "ended")
    cut = {"run_id": project.run_ids["ended"], "number": 1, "event_seq": 1, "node_id": "think", "snapshot": True}
    counters = {"steps": 1, "turns": 1, "messages": 0}
    row = cut | {"counters": counters, "patch": {"set": {}}, "at": BEGAN}
    get_database(studio_settings).write(lambda connection: connection.execute(insert(checkpoints).values(row)))
    return project


def deeds(settings: Settings, project: Project) -> Iterator[Deed]:
    def one(column: Any, *where: Any) -> Any:
        with get_database(settings).read() as connection:
            return connection.execute(select(column).where(*where)).scalars().all()

    at = f"/projects/{project.id}"
    slept, failed, ended = project.run_ids["slept"], project.task_ids["failed"], project.task_ids["ended"]
    yield Deed(
        f"{at}/runs",
        "Wake",
        "It goes on now",
        "does not sleep",
        lambda: one(runs.c.status, runs.c.id == slept) == ["queued"],
    )
    yield Deed(
        f"{at}/tasks/failed",
        "Try again",
        "It runs again",
        "only a failed or cancelled task",
        lambda: one(tasks.c.status, tasks.c.id == failed) == ["queued"],
    )
    yield Deed(
        f"{at}/tasks/ended",
        "Fork",
        "the task goes on from there",
        "only once it has ended",
        lambda: len(one(runs.c.id, runs.c.task_id == ended)) == 2,
        unfold="Go on from an earlier point",
    )
    yield Deed(
        at,
        "It happened",
        "the run goes on with it",
        "somebody was faster",
        lambda: one(repairs.c.how, repairs.c.run_id == project.run_ids["unsure"]) == ["result"],
    )
    yield Deed(
        at,
        "Cancel",
        "What runs stops",
        "has ended already",
        lambda: one(projects.c.status, projects.c.id == project.id) == ["cancelled"],
    )


def test_every_button_acts_once_and_tells_whoever_comes_too_late(
    open_desk: Open, studio_settings: Settings, made: Project
) -> None:
    first, second = open_desk(), open_desk()
    home = first.url.rstrip("/")
    for page in (first, second):
        page.on("dialog", lambda dialog: dialog.accept())
    # The second hears of nothing that moves, as a page does in the moment before it hears.
    second.route("**/pulse*", lambda route: route.abort())
    second.route("**/events?*", lambda route: route.abort())

    for deed in deeds(studio_settings, made):
        for page in (second, first):
            page.goto(home + deed.path)
            if deed.unfold:
                page.get_by_text(deed.unfold).click()
        told = press(first, deed.button)
        assert deed.told in told and deed.done(), deed.button
        refused = press(second, deed.button, ".say.refused")
        assert deed.refused in refused, deed.button
        # The page is as things are.
        second.get_by_role("button", name=deed.button, exact=True).wait_for(state="detached")


def test_a_plan_that_was_changed_meanwhile_is_not_started(
    open_desk: Open, studio_settings: Settings, api: ApiProcess
) -> None:
    page = open_desk()
    plan = [{"key": "a", "role": "writer", "instruction": "Write."}]
    body = {"title": "Wait", "brief": "b", "tasks": plan, "rehearse": True, "planOnly": True}
    made = page.request.post(f"{api.url}/api/studio/projects", data=body).json()["id"]
    page.route("**/pulse*", lambda route: route.abort())
    page.route("**/events?*", lambda route: route.abort())
    page.goto(f"{api.url}/projects/{made}")
    page.get_by_text("Write.").wait_for()

    other = get_database(studio_settings)
    with other.read() as connection:
        read = connection.execute(select(projects.c.plan).where(projects.c.id == made)).scalar_one()
    read["tasks"][0]["instruction"] = "Write it twice."
    other.write(lambda c: c.execute(projects.update().where(projects.c.id == made).values(plan=read)))
    refused = press(page, "Start", ".say.refused")

    assert "the plan was changed since you read it" in refused
    page.get_by_text("Write it twice.").wait_for()
    assert press(page, "Start").startswith("Started")


def test_a_page_of_somebody_else_can_press_nothing(open_desk: Open, made: Project, studio_settings: Settings) -> None:
    page = open_desk()
    at = f"{page.url}projects/{made.id}/cancel"
    form = f"""<form method="post" action="{at}" enctype="text/plain"><input name='{{"a' value='":1}}'></form>
    <script>fetch("{at}", {{method: "POST", mode: "no-cors", credentials: "include", body: "{{}}"}})
      .catch(() => null).then(() => document.forms[0].submit())</script>"""
    page.route("http://elsewhere.example/", lambda route: route.fulfill(body=form, content_type="text/html"))
    with page.expect_response(lambda answer: answer.url == at and answer.request.is_navigation_request()) as answered:
        page.goto("http://elsewhere.example/")

    assert answered.value.status == 403
    with get_database(studio_settings).read() as connection:
        assert connection.execute(select(projects.c.status).where(projects.c.id == made.id)).scalar_one() == "running"


def press(page: "Page", button: str, answer: str = ".say:not(.refused)") -> str:
    """What the corner says once the button is pressed."""
    page.evaluate("document.getElementById('corner').replaceChildren()")
    page.get_by_role("button", name=button, exact=True).first.click()
    said = page.locator(answer)
    said.first.wait_for()
    return said.first.inner_text()
