"""What answers say about waiting."""

import pytest

from workers.models.headers import duration, wait_of


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1s", 1),
        ("6m0s", 360),
        ("250ms", 0.25),
        ("1h2m3.5s", 3723.5),
        ("12", 12),
        ("0.5", 0.5),
        ("", None),
        ("soon", None),
        ("-1s", None),
        ("1s later", None),
        ("nan", None),
        ("9999d", None),
    ],
)
def test_times_of_providers_are_read(text, seconds):
    assert duration(text) == seconds


COUNTERS = {
    "X-RateLimit-Remaining-Requests": "0",
    "X-RateLimit-Reset-Requests": "20s",
    "X-RateLimit-Remaining-Tokens": "900",
    "X-RateLimit-Reset-Tokens": "6m0s",
}


def test_a_counter_that_is_used_up_says_when_the_next_call_may_come():
    assert wait_of(COUNTERS, refused=False) == 20
    assert wait_of(COUNTERS | {"X-RateLimit-Remaining-Tokens": "0"}, refused=False) == 360


def test_counters_with_something_left_say_nothing():
    assert wait_of(COUNTERS | {"X-RateLimit-Remaining-Requests": "3"}, refused=False) is None


def test_a_refusal_waits_for_the_first_counter_that_begins_anew():
    assert wait_of(COUNTERS | {"X-RateLimit-Remaining-Requests": "3"}, refused=True) == 20


def test_what_is_asked_for_in_so_many_words_comes_before_all_counters():
    assert wait_of({**COUNTERS, "Retry-After": "2"}, refused=True) == 2
