"""The live view: what a person sees of a project, at several widths, with and without colour."""

import io
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console, Group, RenderableType

from orchestrator.settings import Settings
from orchestrator.store import events as trace
from orchestrator.store.database import get_database
from orchestrator.store.tables import projects, runs, tasks
from orchestrator.terminal import prompting, rendering, scene
from orchestrator.terminal.activity import Activity
from orchestrator.terminal.frames import Frame
from orchestrator.terminal.scene import Scene
from orchestrator.terminal.ticker import Ticker, closing_lines
from tests.rows import BEGAN, Project, weather


def look(project: Project) -> tuple[Scene, Activity]:
    """The project twenty seconds after it began."""
    activity = Activity()
    with get_database(project.settings).read() as connection:
        activity.take(trace.after(connection, project.id, 0))
        seen = scene.read(connection, project.id, project.settings)
    return replace(seen, now=BEGAN + 20_000), activity


def drawn(renderable: RenderableType, width: int = 80, height: int = 200) -> str:
    """As a terminal without colour shows it."""
    console = Console(
        width=width, height=height, file=io.StringIO(), force_terminal=True, no_color=True, color_system=None
    )
    console.print(renderable)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def page(project: Project, width: int = 80, height: int | None = None) -> str:
    seen, activity = look(project)
    return drawn(rendering.page(seen, activity, Frame(width, height)), width)


def line_with(text: str, shown: str) -> str:
    return next(line for line in shown.splitlines() if text in line)


@pytest.mark.parametrize("width", [40, 80, 120, 160])
def test_the_page_keeps_within_the_width(settings: Settings, width: int) -> None:
    project = weather(settings)
    project.signal("yearly")
    assert max(len(line.rstrip()) for line in page(project, width).splitlines()) <= width


def test_each_task_shows_its_state_in_words_its_agent_what_it_does_and_its_time(settings: Settings) -> None:
    shown = page(weather(settings), 120)
    assert "completed" in line_with("Profile the data", shown)
    running = line_with("Monthly figures", shown)
    assert "running" in running and "Nadia Kest (stand-in)" in running and "17 s" in running
    assert "math.evaluate and 1 more" in running
    assert "0.0082" in running
    assert "after monthly, yearly, chart" in line_with("Write the brief", shown)


def test_the_header_counts_ended_tasks_cost_and_time_and_says_who_plays_the_model(settings: Settings) -> None:
    shown = page(weather(settings))
    assert "Seattle weather 2012-2015" in shown.splitlines()[0]
    assert "1 of 6 tasks  0.0123 USD  20 s" in shown
    assert "the stand-in, not a model, spoke in 1 task" in shown


def test_a_cost_that_misses_a_price_is_called_a_lower_bound(settings: Settings) -> None:
    assert "at least 0.0123 USD" in page(weather(settings, cost_incomplete=True))


def test_what_waits_for_a_person_comes_with_the_command_that_answers_it(settings: Settings) -> None:
    project = weather(settings)
    signal = project.signal("yearly")
    shown = page(project)
    assert "code.execute is wanted by Nadia Kest, in Yearly figures" in shown
    assert f'officina answer {signal} "Do it"' in shown


def test_an_option_made_of_shell_words_comes_quoted(settings: Settings) -> None:
    signal = {"id": "x", "options": [{"id": "1", "label": '"; rm -rf ~; echo "'}]}
    assert rendering.answer_command(signal) == "officina answer x '\"; rm -rf ~; echo \"'"


def test_a_project_nobody_works_on_says_how_to_start_a_worker(settings: Settings) -> None:
    seen, activity = look(weather(settings))
    assert "no worker is up" in drawn(rendering.page(seen, activity, Frame(80)))
    assert "no worker is up" not in drawn(rendering.page(replace(seen, workers=1), activity, Frame(80)))
    assert "no worker is up" not in drawn(rendering.page(replace(seen, now=BEGAN + 1_000), activity, Frame(80)))


def test_a_path_is_never_broken_over_two_lines(settings: Settings) -> None:
    project = weather(settings)
    seen, _ = look(project)
    path = "deep/" * 30 + "brief.md"
    (_, line) = rendering.deliverables(seen, [{"path": path, "bytes": 1}], "/work")
    console = Console(width=60, file=io.StringIO())
    console.print(Group(line), crop=False)
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue() == f"    1 byte  /work/{path}\n"


def test_titles_are_text_and_never_markup_or_terminal_codes(settings: Settings) -> None:
    project = Project(settings, title="[red]stop[/] \x1b[2J\x1b]0;owned\x07 \u202etxet")
    project.task("one", "running", title="[bold]x[/bold]\r\nsecond line", agent_name="\x1b[31mMallory")
    shown = page(project, 120)
    assert "[red]stop[/]" in shown and "[bold]x[/bold] second line" in shown
    assert not {"\x1b", "\x07", "\u202e", "\r"} & set(shown)


def test_a_failed_task_shows_its_code_and_a_skipped_one_its_reason(settings: Settings) -> None:
    project = Project(settings)
    fault = {"code": "model_failed", "message": "429 from the model", "node": "think"}
    project.task("one", "failed", error=fault)
    project.task("two", "skipped", after=["one"], reason="one failed")
    shown = page(project, 120)
    assert "model_failed: 429 from the model" in line_with("One", shown)
    assert "one failed" in line_with("Two", shown)


def test_a_plan_longer_than_the_screen_folds_and_keeps_what_matters_in_sight(settings: Settings) -> None:
    project = Project(settings)
    project.task("start", "completed")
    for number in range(200):
        status = {150: "running", 160: "needs_input", 170: "failed"}.get(number, "completed")
        project.task(f"page-{number}", status, after=["start"])
    shown = page(project, 100, height=20)
    assert len(shown.splitlines()) <= 20
    for number in (150, 160, 170):
        assert f"Page {number}" in shown
    assert "151 completed" in shown


def test_without_unicode_the_page_is_ascii(settings: Settings) -> None:
    project = weather(settings)
    project.signal("yearly")
    seen, activity = look(project)
    shown = drawn(rendering.page(seen, activity, Frame(160, ascii=True)), 160)
    assert shown.isascii()


def test_the_end_names_deliverables_with_sizes_and_how_to_try_again(settings: Settings) -> None:
    project = weather(settings)
    project.set(projects, project.id, status="partial", ended_at=BEGAN + 61_000)
    project.set(tasks, project.task_ids["yearly"], status="failed", error={"code": "x", "message": "y"})
    seen, activity = look(project)
    with get_database(settings).read() as connection:
        from orchestrator import views

        files = views.file_list(connection, project.id)
    shown = drawn(rendering.closing(seen, activity, files, Frame(160), "work"), 160)
    assert "1.8 kB  work/profile.md" in shown
    assert "inputs/" not in shown
    assert f"officina retry {project.task_ids['yearly']}" in shown
    assert "partial: 0.0123 USD in 1:01 min" in shown
    assert f"{seen.workspace}/profile.md  1.8 kB" in list(closing_lines(seen, activity, files))


def test_an_activity_says_thinking_between_calls_and_names_calls_while_they_run(settings: Settings) -> None:
    project = Project(settings)
    project.task("one", "running")
    run = project.run_ids["one"]

    def doing() -> str:
        return look(project)[1].doing(run)

    assert doing() == "starting"
    project.event("run.started", {"attempt": 1}, "one")
    assert doing() == "thinking"
    project.event("tool.call", {"toolCallId": "a", "name": "files.read"}, "one")
    assert doing() == "files.read"
    project.event("tool.result", {"toolCallId": "a", "name": "files.read", "outcome": "ok"}, "one")
    assert doing() == "thinking"


def test_plain_lines_tell_each_change_once(settings: Settings) -> None:
    project = weather(settings)
    project.event("task.status", {"status": "failed", "from": "running", "reason": "no\x1b[31m luck"}, "yearly")
    project.event("project.status", {"status": "partial", "from": "running"})
    with get_database(settings).read() as connection:
        found = trace.after(connection, project.id, 0)
    ticker, names = Ticker(), {v: k for k, v in project.task_ids.items()}
    told = [line[10:] for line in ticker.lines(found, names)]
    assert told == [
        "monthly           the stand-in plays the model",
        "yearly            failed: no⟦U+001B⟧[31m luck",
        "project           partial",
    ]


@pytest.fixture
def asked(settings: Settings) -> Iterator[dict[str, Any]]:
    project = weather(settings)
    project.signal("yearly")
    yield look(project)[0].signals[0]


def shown_question(signal: dict[str, Any], width: int = 80) -> str:
    console = Console(width=width, file=io.StringIO(), no_color=True)
    prompting.show(signal, console, task="Yearly figures")
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_question_shows_who_asks_why_and_the_code(asked: dict[str, Any]) -> None:
    shown = shown_question(asked)
    assert "Nadia Kest, in the task 'Yearly figures'" in shown
    assert "process is ask by default" in shown
    assert "rows = list(csv.DictReader(open('in/seattle-weather.csv')))" in shown


def test_a_long_input_is_shown_to_its_last_line(asked: dict[str, Any]) -> None:
    code = "\n".join(f"step_{n}()" for n in range(3_000)) + "\n" + "x" * 500 + "THE_END"
    asked["action"] = {"skill": "code.execute", "input": {"language": "shell", "code": code}}
    shown = shown_question(asked)
    assert all(f"step_{n}()" in shown for n in range(3_000))
    assert "THE_END" in "".join(line.strip(" │") for line in shown.splitlines())


def test_what_cannot_be_seen_is_written_out(asked: dict[str, Any]) -> None:
    hidden = "print('safe')\x1b[2K\r\nif x:\u202e pass # \u200bfine\n"
    asked["action"] = {"skill": "code.execute", "input": {"code": hidden, "args": ["a\u2066b"], "\x1bkey": 1}}
    asked["reason"] = "\x1b[8mhidden"
    shown = shown_question(asked)
    for mark in ("⟦U+001B⟧", "⟦U+000D⟧", "⟦U+202E⟧", "⟦U+200B⟧", "⟦U+2066⟧"):
        assert mark in shown
    assert not {"\x1b", "\r", "\u202e", "\u200b", "\u2066"} & set(shown)
    assert "4 unseen characters written out" in shown


@pytest.mark.parametrize(
    ("typed", "option"),
    [("Do it", "Do it"), ('"do it"', "Do it"), ("y", "Do it"), ("No", "No"), ("n", "No"), ("2", "No")],
)
def test_a_plain_word_answers(asked: dict[str, Any], typed: str, option: str) -> None:
    reply = prompting.ask(asked, Console(file=io.StringIO()), lambda _: typed)
    assert reply is not None and reply.option == option


def test_anything_else_is_asked_again_and_nothing_leaves_it_open(asked: dict[str, Any]) -> None:
    typed = iter(["sure, go ahead", "ok", "3", ""])
    console = Console(file=io.StringIO())
    assert prompting.ask(asked, console, lambda _: next(typed)) is None
    assert not list(typed)


def test_the_end_of_input_leaves_it_open(asked: dict[str, Any]) -> None:
    def ended(_: str) -> str:
        raise EOFError

    assert prompting.ask(asked, Console(file=io.StringIO()), ended) is None


def test_a_question_without_options_takes_json(asked: dict[str, Any]) -> None:
    asked |= {"kind": "interrupt", "options": []}
    typed = iter(["not json", '{"city": "Seattle"}'])
    reply = prompting.ask(asked, Console(file=io.StringIO()), lambda _: next(typed))
    assert reply is not None and reply.arguments() == {"payload": {"city": "Seattle"}}


def test_a_standing_yes_answers_decisions_and_nothing_else(asked: dict[str, Any]) -> None:
    console = Console(file=io.StringIO(), width=100)
    answer = prompting.answerer(ask=False, yes=True)
    assert answer is not None
    reply = answer(asked, console, "Yearly figures")
    assert reply is not None and reply.option == "Do it"
    assert isinstance(console.file, io.StringIO) and "because --yes says so" in console.file.getvalue()
    assert answer(asked | {"kind": "budget"}, console, "") is None


def spread(project: Project, key: str, statuses: list[str], **columns: Any) -> list[str]:
    """Makes the run of a task wait for children in these states; returns their ids."""
    root = project.run_ids[key]
    project.set(runs, root, status="waiting", waiting_on="children", steps=3)
    project.set(tasks, project.task_ids[key], status="waiting")
    facts = {"parent_id": root, "parent_step": 3, "kind": "item", "depth": 1} | columns
    return [project.run(key, status, position=n, **facts) for n, status in enumerate(statuses)]


def test_a_fan_out_says_how_much_is_done_and_what_each_child_does(settings: Settings) -> None:
    project = weather(settings)
    kids = spread(project, "monthly", ["completed", "running", "running", "queued"])
    call = {"toolCalls": [{"id": "c1", "name": "web.fetch", "args": {}}]}
    project.event("message", {"role": "assistant", "text": ""} | call, run_id=kids[1])
    project.event("run.started", {"attempt": 1, "depth": 1}, run_id=kids[2])

    shown = page(project, 120)

    assert "1 of 4 children done" in line_with("Monthly figures", shown)
    assert "running" in line_with("item 1", shown) and "web.fetch" in line_with("item 1", shown)
    assert "thinking" in line_with("item 2", shown)
    assert "item 0" not in shown and "item 3" not in shown, "what has ended or not begun is counted only"
    order = [shown.index(words) for words in ("Monthly figures", "item 1", "item 2")]
    assert order == sorted(order)


@pytest.mark.parametrize(
    ("item", "named"),
    [
        ("one syllable", "item 0: one syllable"),
        ({"year": 2012}, 'item 0: year":2012}'),
        (7, "item 0: 7"),
        ("x" * 100_000, "item 0: xxxx"),
        ("\x1b[31mred\nline", "item 0: "),
        (None, "item 0 "),
    ],
)
def test_an_item_is_named_by_how_it_begins(item: object, named: str, settings: Settings) -> None:
    project = weather(settings)
    spread(project, "monthly", ["running"], item=item)

    shown = page(project, 140)

    assert named in line_with("item 0", shown) and "\x1b" not in shown and "x" * 100 not in shown


def test_children_of_children_are_indented_below_them(settings: Settings) -> None:
    project = weather(settings)
    (mid,) = spread(project, "monthly", ["waiting"], waiting_on="children", steps=7)
    project.run("monthly", "running", parent_id=mid, parent_step=7, position=0, kind="spawn", depth=2)
    project.run("monthly", "failed", parent_id=mid, parent_step=7, position=1, kind="spawn", depth=2)

    shown = page(project, 120)

    assert "1 of 2 children done, 1 failed" in line_with("item 0", shown)
    assert line_with("0: Nadia Kest", shown).index("↳") > line_with("item 0", shown).index("↳")


def test_many_children_fold_into_the_room_there_is(settings: Settings) -> None:
    project = weather(settings)
    spread(project, "monthly", ["running"] * 60 + ["completed"] * 4)
    tall, small = page(project, 100, 60), page(project, 100, 16)
    assert "4 of 64 children done" in tall
    assert "49 runs more" in tall and "49 running" in tall
    assert "4 of 64 children done" in small and "runs more" in small
    assert len(small.rstrip().splitlines()) <= 16
    assert all(title in tall for title in ("Profile the data", "Write the brief", "Review and finish"))


@pytest.mark.parametrize("width", [40, 80, 160])
def test_children_keep_within_the_width_too(settings: Settings, width: int) -> None:
    project = weather(settings)
    spread(
        project, "monthly", ["running"] * 3, agent_name="A name that is much longer than any column" * 3, kind="spawn"
    )
    assert max(len(line.rstrip()) for line in page(project, width).splitlines()) <= width
