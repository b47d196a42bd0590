"""Values as people read them."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.commands.projects import ModeName, StatusName
from orchestrator.records import Event
from orchestrator.states import ProjectStatus
from orchestrator.terminal.sentences import LONGEST, sentence
from orchestrator.terminal.wording import clock, duration, money, one_line, several, size, visible
from registry.permissions import MODES


@pytest.mark.parametrize(
    ("ms", "words"),
    [(0, "0.0 s"), (420, "0.4 s"), (9_949, "9.9 s"), (12_000, "12 s"), (185_000, "3:05 min"), (3_723_000, "1:02:03 h")],
)
def test_a_duration_is_as_exact_as_it_is_short(ms: int, words: str) -> None:
    assert duration(ms) == words


def test_a_clock_has_no_unit_beyond_seconds() -> None:
    assert (clock(12_000), clock(185_000), clock(3_723_000)) == ("12 s", "3:05", "1:02:03")


def test_money_shows_small_sums_and_never_calls_an_unknown_price_nothing() -> None:
    assert (money(0), money(0.0041), money(2.5)) == ("0.00 USD", "0.0041 USD", "2.50 USD")
    assert (money(0, incomplete=True), money(0.5, incomplete=True)) == ("unknown cost", "at least 0.5000 USD")


def test_sizes_and_counts() -> None:
    assert (size(1), size(999), size(4_200), size(48_219_000)) == ("1 byte", "999 bytes", "4.2 kB", "48.2 MB")
    assert (several(1, "task"), several(2_000, "task")) == ("1 task", "2,000 tasks")


@given(st.text())
def test_one_line_is_one_line_of_what_can_be_seen(text: str) -> None:
    line = one_line(text, 40)
    assert len(line) <= 40
    assert visible(line) == line
    assert not {"\n", "\t", "\r"} & set(line)


@given(st.text(alphabet=st.characters(blacklist_categories=["Cc", "Cf", "Cs", "Zl", "Zp"])))
def test_text_that_can_be_seen_is_shown_as_it_is(text: str) -> None:
    assert visible(text) == text


@given(
    st.sampled_from(["think", "message", "tool.call", "tool.result", "task.status", "file.written", "x.unknown"]),
    st.dictionaries(st.text(max_size=10), st.recursive(st.none() | st.integers() | st.text(), st.lists, max_leaves=5)),
)
def test_any_event_has_a_sentence(kind: str, data: dict[str, object]) -> None:
    assert len(sentence(Event(kind, data))) <= LONGEST


def test_sentences_of_events() -> None:
    told = {
        "task.status": ({"from": "running", "status": "completed"}, "running -> completed"),
        "tool.result": (
            {"name": "math.evaluate", "outcome": "ok", "durationMs": 12, "output": {"value": "4"}},
            'math.evaluate ok 0.0 s {"value":"4"}',
        ),
        "file.written": ({"path": "brief.md", "bytes": 4_200, "sha256": "a"}, "brief.md 4.2 kB"),
        "run.failed": ({"code": "model_failed", "message": "429"}, "model_failed: 429"),
        "x.unknown": ({"a": 1}, "a=1"),
    }
    for kind, (data, words) in told.items():
        assert sentence(Event(kind, data)) == words


def test_choices_of_options_are_the_words_of_the_house():
    assert {one.value for one in ModeName} == set(MODES)
    assert {one.value for one in StatusName} == set(get_args(ProjectStatus))
