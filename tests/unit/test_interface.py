"""The live page and its keys: every view at several widths, what a key does, and what no key may do."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from orchestrator.deltas import Delta
from orchestrator.records import Event
from orchestrator.settings import Settings
from orchestrator.store import events as trace
from orchestrator.store.database import get_database
from orchestrator.store.tables import projects
from orchestrator.terminal import bars, keys, run_tree, scene, work
from orchestrator.terminal.activity import Activity, call_words
from orchestrator.terminal.frames import Frame
from orchestrator.terminal.interface import VIEWS, Interface
from orchestrator.terminal.keyboard import keys_of
from orchestrator.terminal.scene import Scene
from orchestrator.terminal.tail import FILTERS
from tests.rows import BEGAN, Project, weather
from tests.unit.test_rendering import drawn, line_with, spread

HOSTILE = "\x1b[2J\x1b]0;owned\x07 \u202etxet [red]x[/]"


class Watched:
    """A project with its page, twenty seconds after it began; the clock of the page stands where it is put."""

    def __init__(self, project: Project) -> None:
        self.project, self.activity, self.now = project, Activity(), 100.0
        self.page = Interface(keys=True, clock=lambda: self.now)
        with get_database(project.settings).read() as connection:
            found = trace.after(connection, project.id, 0)
        self.activity.take(found)
        self.page.tail.take(found)

    @property
    def scene(self) -> Scene:
        with get_database(self.project.settings).read() as connection:
            seen = scene.read(connection, self.project.id, self.project.settings)
        return replace(seen, now=BEGAN + 20_000)

    def draw(self, width: int = 100, height: int = 40, *, ascii_only: bool = False) -> str:
        console = Console(width=width, height=height, force_terminal=True, no_color=True, color_system=None)
        frame = Frame(width, height, ascii=ascii_only)
        return drawn(self.page.draw(self.scene, self.activity, frame, console), width)

    def press(self, key: str) -> Any:
        return keys.press(self.page, key, self.scene)

    def asks(self, **columns: Any) -> str:
        asked = self.project.signal("yearly", **columns)
        self.project.event("run.parked", {"status": "needs_input", "on": "signals"}, "yearly")
        return asked


@pytest.fixture
def watched(settings: Settings) -> Iterator[Watched]:
    yield Watched(weather(settings))


@pytest.mark.parametrize("width", [40, 80, 160])
@pytest.mark.parametrize("view", VIEWS)
def test_every_view_keeps_within_the_terminal(view: str, width: int, settings: Settings) -> None:
    project = weather(settings)
    project.signal("yearly", reason="because " * 40)
    children = spread(project, "monthly", ["running"] * 12, agent_name="A name that is much too long" * 4)
    for number, child in enumerate(children):
        facts = {"agentId": "a" * 90, "spawnId": child, "index": number, "childRunId": child}
        project.event("agent.spawned", facts, "monthly")
    watched = Watched(project)
    watched.page.show(view)
    lines = watched.draw(width, 24).splitlines()
    assert len(lines) == 24
    assert max(len(line) for line in lines) <= width
    assert "q leave" in lines[-1]


@pytest.mark.parametrize("view", VIEWS)
def test_without_unicode_every_view_is_ascii(view: str, settings: Settings) -> None:
    watched = Watched(weather(settings))
    watched.page.show(view)
    assert watched.draw(120, ascii_only=True).isascii()


@pytest.mark.parametrize("view", VIEWS)
def test_hostile_words_are_written_out_in_every_view(view: str, settings: Settings) -> None:
    project = Project(settings, title=HOSTILE)
    project.task("yearly", "running", title=HOSTILE, agent_name=HOSTILE)
    project.event("team.assembled", {"members": [{"agentId": "nadia", "name": HOSTILE, "role": HOSTILE}]})
    project.event("run.started", {"attempt": 1}, "yearly", node_id=HOSTILE)
    project.event("tool.call", {"toolCallId": "a", "name": HOSTILE, "input": {HOSTILE: HOSTILE}}, "yearly")
    project.signal("yearly", title=HOSTILE, reason=HOSTILE, agent_name=HOSTILE, action={"skill": HOSTILE, "input": {}})
    watched = Watched(project)
    watched.activity.hear(Delta("message.delta", project.run_ids["yearly"], 0, HOSTILE))
    watched.page.show(view)
    shown = watched.draw(120)
    assert not {"\x1b", "\x07", "\u202e"} & set(shown)
    assert "⟦U+001B⟧" in shown and "[red]x[/]" in "".join(shown.split("\n"))


def test_an_agent_shows_its_tool_with_arguments_its_node_and_what_it_says(watched: Watched) -> None:
    run = watched.project.run_ids["monthly"]
    call = {"toolCallId": "a", "name": "files.read", "input": {"path": "in/a.csv", "from": 1}}
    watched.project.event("tool.result", {"toolCallId": "m1", "name": "x", "outcome": "ok"}, "monthly")
    watched.project.event("tool.result", {"toolCallId": "m2", "name": "x", "outcome": "ok"}, "monthly")
    watched.project.event("tool.call", call, "monthly", node_id="tools")
    again = Watched(watched.project)
    again.activity.hear(Delta("message.delta", run, 0, "So far it "))
    again.activity.hear(Delta("message.delta", run, 10, "rained."))
    shown = drawn(work.agents(again.scene, again.activity, Frame(100)), 100)
    assert "running: files.read path=in/a.csv from=1  at node tools, for 20 s" in shown
    assert "» So far it rained." in shown


def test_a_lost_piece_is_shown_as_a_gap_and_a_new_beginning_clears_the_old(watched: Watched) -> None:
    run = watched.project.run_ids["monthly"]
    for at, text in ((0, "abc"), (9, "xyz")):
        watched.activity.hear(Delta("message.delta", run, at, text))
    assert watched.activity.runs[run].said == "abc…xyz"
    watched.activity.hear(Delta("message.delta", run, 0, "anew"))
    assert watched.activity.runs[run].said == "anew"
    again = Delta("message.delta", "nobody", 0, "x")
    watched.activity.hear(again)
    assert "nobody" not in watched.activity.runs


@pytest.mark.parametrize(
    ("parked", "words"),
    [
        ({"status": "waiting", "on": "timer", "until": BEGAN + 50_000}, "sleeps, due in 30 s"),
        ({"status": "waiting", "on": "gate", "reason": "until noon"}, "waits at a gate (until noon)"),
        ({"status": "waiting", "on": "backoff", "until": BEGAN + 22_000}, "before it tries again, due in 2.0 s"),
        ({"status": "needs_input", "on": "signals"}, "waits for you for 20 s"),
    ],
)
def test_a_run_that_waits_says_for_what_and_until_when(parked: dict[str, Any], words: str, watched: Watched) -> None:
    watched.project.event("run.parked", parked, "monthly")
    again = Watched(watched.project)
    assert words in drawn(work.agents(again.scene, again.activity, Frame(100)), 100)


def test_the_tree_folds_many_children_and_keeps_failures_in_sight(settings: Settings) -> None:
    project = weather(settings)
    children = spread(project, "monthly", ["running"] * 64)
    for number, child in enumerate(children):
        project.event("map.item.started", {"index": number, "childRunId": child}, "monthly")
    for child in children[:40]:
        project.event("run.completed", {"steps": 1, "tokens": 2}, run_id=child, task_id=project.task_ids["monthly"])
    fault = {"code": "item_broken", "message": "no such item"}
    project.event("run.failed", fault, run_id=children[50], task_id=project.task_ids["monthly"])
    watched = Watched(project)
    shown = drawn(run_tree.tree(watched.scene, watched.activity, Frame(120)), 120)
    assert "item_broken: no such item" in line_with("50: ", shown)
    assert "57 runs more" in shown and "40 completed" in shown
    assert len(shown.splitlines()) < 14


def test_the_timeline_draws_work_and_waiting_with_different_characters(settings: Settings) -> None:
    project = Project(settings)
    project.task("one", "waiting")
    run, task_id = project.run_ids["one"], project.task_ids["one"]
    moves = [("run.started", {"attempt": 1}, 0), ("run.parked", {"status": "waiting", "on": "timer"}, 5_000)]
    moves += [
        ("run.resumed", {"by": "timer"}, 10_000),
        ("run.parked", {"status": "needs_input", "on": "signals"}, 15_000),
    ]
    activity = Activity()
    from orchestrator.records import Event

    activity.take(Event(kind, data, task_id, run, at=BEGAN + at) for kind, data, at in moves)
    shown = drawn(bars.timeline(Watched(project).scene, activity, Frame(60)), 60)
    bar = re.search(r"█+┄+█+\?+", line_with("One", shown))
    assert bar is not None
    lengths = [len(part) for part in re.findall(r"(█+|┄+|\?+)", bar.group())]
    assert max(lengths) - min(lengths) <= 2, "four stretches of five seconds each"
    assert "sleeps" in shown and "waits for you" in shown and "20 s" in shown.splitlines()[0]


def test_filters_and_words_narrow_the_trace_down(watched: Watched) -> None:
    watched.press("5")
    assert "run.started" in watched.draw() and "message" not in watched.draw()
    while watched.page.tail.group != "model":
        watched.press("f")
    assert "run.started" not in watched.draw() and "message" in watched.draw()
    for key in ("/", "t", "h", "i", "n", "x", "backspace", "k", "enter"):
        watched.press(key)
    assert watched.page.tail.words == "think"
    assert " think " in watched.draw() and " message " not in watched.draw()
    assert set(FILTERS) >= {"story", "model", "tools", "states", "questions", "files", "problems"}


def test_a_narrow_trace_shows_what_was_said_and_not_only_when(watched: Watched) -> None:
    watched.press("5")
    for width in (40, 60):
        shown = watched.draw(width=width)
        assert "run.started" in shown and "attempt 1" in shown
        assert max(map(len, shown.splitlines())) <= width


def test_an_agent_made_for_a_project_is_called_by_its_name() -> None:
    activity, told = Activity(), {"agentId": "0194c5d2", "agentName": "Taster", "index": 0, "childRunId": "child"}
    activity.take([Event("run.started", {}, run_id="parent"), Event("agent.spawned", told, run_id="parent")])
    assert activity.name(activity.runs["child"]) == "Taster"


def test_do_it_counts_once_the_whole_call_was_on_the_screen_and_for_that_call(watched: Watched) -> None:
    code = "\n".join(f"step_{n}()" for n in range(200))
    asked = watched.asks(action={"skill": "code.execute", "input": {"code": code}})
    watched.press("6")
    watched.draw()
    assert watched.press("d") is None and "only just come up" in watched.page.notice
    watched.now += 1
    assert watched.press("d") is None and "more of it below" in watched.page.notice
    watched.press("end")
    assert "step_199()" in watched.draw()
    act = watched.press("d")
    assert (act.signal["id"], act.reply.option) == (asked, "Do it")


def test_a_question_that_took_the_place_of_another_is_not_answered_by_the_same_stroke(watched: Watched) -> None:
    first, second = watched.asks(title="first"), watched.asks(title="second", created_at=BEGAN + 9_000)
    watched.press("6")
    watched.draw()
    watched.now += 1
    from orchestrator.store.tables import signals

    watched.project.set(signals, first, status="answered")  # by somebody else, meanwhile
    assert watched.press("d") is None, "what is on the screen is not open any more"
    watched.draw()
    assert watched.press("d") is None
    watched.now += 1
    assert watched.press("d").signal["id"] == second


def test_no_is_at_hand_without_reading_on_and_other_questions_are_typed(watched: Watched) -> None:
    watched.asks(action={"skill": "x", "input": {"code": "a\n" * 300}})
    watched.asks(kind="interrupt", options=[], created_at=BEGAN + 9_000)
    watched.press("6")
    watched.draw()
    watched.now += 1
    assert watched.press("n").reply.option == "No"
    watched.press("right")
    watched.draw()
    watched.now += 1
    assert watched.press("d") is None and "w shows its choices" in watched.page.notice
    assert watched.press("w").reply is None


def test_a_key_that_answers_does_nothing_in_other_views(watched: Watched) -> None:
    watched.asks()
    for view in VIEWS[:-1]:
        watched.page.show(view)
        watched.draw()
        watched.now += 1
        assert [watched.press(key) for key in "dnw"] == [None] * 3
    assert isinstance(watched.press("q"), keys.Leave)


def test_scrolling_stops_at_both_ends(watched: Watched) -> None:
    watched.asks(action={"skill": "x", "input": {"code": "\n".join(map(str, range(100)))}})
    watched.press("6")
    watched.draw(height=20)
    for _ in range(3):
        watched.press("end")
        assert "99" in watched.draw(height=20)
    watched.press("up")
    assert "1 line below" in watched.draw(height=20)
    watched.press("home")
    assert "Your yes is needed" in watched.draw(height=20)


def test_the_header_sets_the_cost_against_the_budget(watched: Watched) -> None:
    from orchestrator.terminal.rendering import spending

    assert spending(watched.scene) == "0.0123 USD"
    watched.project.set(projects, watched.project.id, max_cost_micro=1_000_000)
    assert spending(watched.scene) == "0.0123 of 1.00 USD (1 %)"
    assert "0.0123 of 1.00 USD (1 %)" in watched.draw()


@pytest.mark.parametrize("width", [40, 60, 80, 160])
def test_no_fact_of_the_header_is_cut(width: int, watched: Watched) -> None:
    watched.project.set(projects, watched.project.id, max_cost_micro=1_000_000)
    shown = watched.draw(width)
    assert re.search(r"1 of 6 tasks +0\.0123 of 1\.00 USD \(1 %\)\s+20 s", shown), shown


def test_only_keys_that_do_something_are_told(settings: Settings) -> None:
    project = Project(settings)
    project.task("one", "needs_input")
    watched = Watched(project)
    watched.page.show("questions")
    assert "Do it" not in watched.draw() and "q leave" in watched.draw()
    project.signal("one")
    assert "d Do it" in watched.draw() and "other question" not in watched.draw()
    project.signal("one")
    assert "other question" in watched.draw()


def test_a_call_in_words_is_short_and_one_line() -> None:
    assert call_words("files.read", {"path": "a\nb", "n": 1}) == "files.read path=a b n=1"
    assert len(call_words("x" * 900, {f"k{n}" * 90: "v" * 9_000 for n in range(50)})) < 260
    assert call_words("x", None) == "x"


@pytest.mark.parametrize(
    ("sent", "names"),
    [
        ("q6", ["q", "6"]),
        ("\x1b[A\x1bOB\x1b[5~", ["up", "down", "page up"]),
        ("\x1b", ["escape"]),
        ("\x1b[200;5u", []),
        ("\t\r\x7f", ["tab", "enter", "backspace"]),
        ("\x00\x01é", ["é"]),
    ],
)
def test_what_a_terminal_sends_is_told_by_name(sent: str, names: list[str]) -> None:
    assert list(keys_of(sent)) == names
