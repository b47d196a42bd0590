"""What is told of an answer while it comes: a few pieces a second, whole words, no secret, and nothing to nobody."""

import pytest

from registry import masking
from workers.engine import speech as module
from workers.engine.speech import Nobody, Speaker, Speech, hearing

SECRET = "hunter2-hunter2-hunter2"


class Crowd:
    def __init__(self, *, stays=True):
        self.heard, self.stays = [], stays

    def listened(self, trace_id):
        return trace_id == "trace"

    def say(self, trace_id, delta):
        self.heard.append((delta.kind, delta.at, delta.text))
        return self.stays


@pytest.fixture
def clock(monkeypatch):
    class Clock:
        now = 100.0

        def monotonic(self):
            return self.now

    found = Clock()
    monkeypatch.setattr(module, "time", found)
    return found


def test_pieces_are_gathered_and_the_rest_comes_at_the_end(clock):
    crowd = Crowd()
    hear, speech = hearing(crowd, Speaker("trace", "run"))
    for word in ("One ", "two ", "three "):
        hear("text", word)
    clock.now += module.PACE_S
    hear("text", "four fi")
    hear("text", "ve")
    speech.end()
    assert crowd.heard == [
        ("message.delta", 0, "One "),
        ("message.delta", 4, "two three four "),
        ("message.delta", 19, "five"),
    ]


def test_an_answer_that_begins_anew_counts_from_its_beginning(clock):
    crowd = Crowd()
    speech = Speech(crowd, Speaker("trace", "run"))
    speech.hear("text", "Half an ")
    speech.hear("again", "")
    speech.hear("text", "The whole ")
    assert [at for _, at, _ in crowd.heard] == [0, 0]


def test_reasoning_is_told_as_such(clock):
    crowd = Crowd()
    Speech(crowd, Speaker("trace", "run")).hear("reasoning", "Let me see. ")
    assert crowd.heard == [("think.delta", 0, "Let me see. ")]


def test_a_secret_that_comes_in_halves_is_masked(clock):
    masking.remember(SECRET)
    crowd = Crowd()
    speech = Speech(crowd, Speaker("trace", "run"))
    for piece in ("It is ", SECRET[:9], SECRET[9:], " indeed"):
        clock.now += module.PACE_S
        speech.hear("text", piece)
    speech.end()
    told = "".join(text for _, _, text in crowd.heard)
    assert "hunter2" not in told
    assert told.startswith("It is ") and told.endswith(" indeed")


def test_where_nobody_looks_on_nothing_is_asked_for_and_nothing_told():
    assert hearing(Nobody(), Speaker("trace", "run"))[0] is None
    assert hearing(Crowd(), Speaker("another", "run"))[0] is None


def test_who_has_left_is_told_no_more(clock):
    crowd = Crowd(stays=False)
    speech = Speech(crowd, Speaker("trace", "run"))
    for _ in range(5):
        clock.now += module.PACE_S
        speech.hear("text", "word ")
    speech.end()
    assert len(crowd.heard) == 1
