"""Words of the other side, made fit for a message."""

import time
from email.utils import formatdate

import pytest

from registry.waits import retry_after
from workers.models.faults import joined, masked, words
from workers.models.model import ModelFault


@pytest.mark.parametrize(
    "text", ["key is my-secret-key", "Incorrect API key provided: sk-abc123", "Bearer abcdef", "sk-proj-ab**cd"]
)
def test_nothing_that_looks_like_a_key_survives(text):
    found = masked(text, "my-secret-key")
    assert "***" in found
    assert not any(part in found for part in ("my-secret-key", "abc123", "abcdef", "ab**cd"))


def test_a_key_of_a_letter_or_two_does_not_garble_the_words():
    assert masked("not known", "k") == "not known"


def test_foreign_words_are_short_and_can_be_stored():
    assert masked("a\x00\ud800" + "x" * 5_000, None).startswith("a\ufffd\ufffdx")
    assert len(masked("x" * 5_000, None)) == 300


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"message": "no"}, "no"),
        ({"detail": "no"}, "no"),
        ({"error": "no"}, "no"),
        ({"detail": [{"msg": "no"}]}, '[{"msg":"no"}]'),
        ("plain", "plain"),
        ("<HTML><body>502</body>", ""),
        (None, ""),
        ({}, ""),
        (7, "7"),
    ],
)
def test_error_bodies_of_every_shape_are_read(body, said):
    assert words(body) == said


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "2"}, 2),
        ({"retry-after": " 0.5 "}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"Retry-After": "-1"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "1e99"}, None),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": ""}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_with_care(headers, seconds):
    assert retry_after(headers) == seconds


def test_retry_after_may_be_a_date():
    assert 25 <= retry_after({"Retry-After": formatdate(time.time() + 30, usegmt=True)}) <= 31
    assert retry_after({"Retry-After": formatdate(time.time() - 30, usegmt=True)}) == 0


def test_a_joined_fault_may_pass_when_one_may_and_waits_only_when_all_of_those_say_how_long():
    final, soon, late = ModelFault("a"), ModelFault("b", passing=True, retry_after=5), ModelFault("c", passing=True)
    assert (joined([final, soon]).passing, joined([final, soon]).retry_after) == (True, 5)
    assert joined([soon, late]).retry_after is None
    assert not joined([final, final]).passing
    assert joined([final, soon]).message == "a; then b"
