"""Turns at a model: counted by all workers together, in order, round the projects."""

import subprocess
import sys
import time

import pytest
from redis import Redis

from tests.projects import Watched, start, task
from tests.stub_model import StubModel
from tests.support import eventually
from workers.models.tiers import Endpoint
from workers.models.turns import Turns, turns_at

TOKENS = 100


def model(name, *, requests=None, tokens=None, key=None):
    return Endpoint(name, "http://127.0.0.1:1/v1", 100, requests_per_minute=requests, tokens_per_minute=tokens, key=key)


@pytest.fixture
def turns(redis):
    return Turns(redis)


def elsewhere(url):
    """The turns of another process."""
    return Turns(Redis.from_url(url.replace("redis+socket://", "unix://")))


def drained(turns, endpoint, lane="other"):
    """Takes turns until there is none; how many there were."""
    count = 0
    while turns.take(endpoint, f"first-{count}", lane, TOKENS) == 0:
        count += 1
        assert count < 1_000
    return count


def test_without_a_limit_nobody_waits_and_nothing_is_counted(turns, redis):
    assert all(turns.take(model("free"), str(n), "p", 10**9) == 0 for n in range(100))
    assert redis.keys("officina:turns:*") == []


def test_a_minute_has_as_many_turns_as_the_limit_says(turns):
    # A bucket of ten and fifty that flow in.
    assert drained(turns, model("sixty", requests=60)) == 10
    wait = turns.take(model("sixty", requests=60), "next", "another", TOKENS)
    assert 0 < wait <= 60 / 51 * 2 + 0.1


def test_tokens_are_counted_too_and_what_an_answer_took_beyond(turns):
    endpoint = model("words", tokens=6_000)
    assert turns.take(endpoint, "a", "p", 500) == 0
    turns.took(endpoint, 2_500)
    # 3,000 of the 5,001 that flow in a minute were taken, and the bucket holds 1,000.
    assert 20 < turns.take(endpoint, "b", "p", 100) < 40


def test_a_call_larger_than_the_bucket_goes_when_it_is_full(turns):
    endpoint = model("large", tokens=600)
    assert turns.take(endpoint, "a", "p", 5_000) == 0
    assert turns.take(endpoint, "b", "p", 1) > 60


def test_two_workers_share_what_there_is(turns, redis_url):
    endpoint = model("shared", requests=60)
    drained(turns, endpoint)
    other = elsewhere(redis_url)
    assert other.take(endpoint, "elsewhere", "p", TOKENS) > 0
    assert other.take(model("shared", requests=60, key="of another account"), "elsewhere", "p", TOKENS) == 0


def test_who_comes_back_has_kept_the_place(turns):
    endpoint = model("queue", requests=6)
    drained(turns, endpoint, lane="p")
    first = turns.take(endpoint, "early", "p", TOKENS)
    later = turns.take(endpoint, "late", "p", TOKENS)
    again = turns.take(endpoint, "early", "p", TOKENS)
    assert again <= first < later


def test_a_project_with_many_waiting_calls_is_no_long_wait_for_one_with_a_single_call(turns):
    endpoint = model("fair", requests=60)
    drained(turns, endpoint)
    waits = [turns.take(endpoint, f"many-{n:04}", "large", TOKENS) for n in range(300)]
    assert waits[-1] > 300
    # Behind the first of each project, and not behind three hundred.
    assert turns.take(endpoint, "single", "small", TOKENS) < 5


def test_who_does_not_come_back_loses_the_place(turns, redis):
    endpoint = model("gone", requests=60)
    drained(turns, endpoint)
    for n in range(50):
        turns.take(endpoint, f"gone-{n}", "p", TOKENS)
    before = turns.take(endpoint, "here", "p", TOKENS)
    (expected,) = redis.keys("officina:turns:*:expected")
    late = {member: 0 for member in redis.zrange(expected, 0, -1) if member not in (b"here", "here")}
    redis.zadd(expected, late)
    assert turns.take(endpoint, "here", "p", TOKENS) < before / 2


def test_a_provider_that_wants_time_gets_it_from_every_worker(turns, redis_url):
    for endpoint in (model("strict"), model("strict", requests=600)):
        turns.hold(endpoint, 20)
        assert 15 < turns.take(endpoint, "a", "p", TOKENS) <= 25
        assert 15 < elsewhere(redis_url).take(endpoint, "b", "p", TOKENS) <= 25
        turns.hold(endpoint, 1)  # a shorter one changes nothing
        assert turns.take(endpoint, "a", "p", TOKENS) > 15
    assert turns.take(model("another"), "a", "p", TOKENS) == 0


@pytest.mark.parametrize("reach", [None, "unix:///nowhere/redis.sock"])
def test_without_redis_a_process_counts_for_itself(reach):
    alone = Turns(Redis.from_url(reach) if reach else None)
    endpoint = model("alone", requests=5, tokens=1_000)
    assert [alone.take(endpoint, "a", "p", 100) for _ in range(5)] == [0] * 5
    assert 0 < alone.take(endpoint, "a", "p", 100) <= 61
    assert alone.take(model("words alone", tokens=1_000), "a", "p", 5_000) == 0
    assert alone.take(model("words alone", tokens=1_000), "a", "p", 1) > 0
    alone.hold(endpoint, 30)
    assert alone.take(model("alone"), "a", "p", 1) > 20


def test_a_lost_redis_costs_one_call_its_time_out_and_not_each(monkeypatch):
    asked = []

    class Away:
        def eval(self, *_):
            asked.append(time.monotonic())
            raise ConnectionError

    alone = Turns(Away())
    for n in range(20):
        alone.take(model("away", requests=100), str(n), "p", 1)
    assert len(asked) == 1


def test_the_parts_are_loaded_at_the_first_call_that_is_counted():
    code = "import sys, workers.models.turns; print([m for m in ('limits', 'redis') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
    assert turns_at(None) is turns_at(None)


@pytest.mark.long
def test_a_run_whose_turn_is_far_waits_as_a_row_and_goes_on_when_it_comes(tmp_path, live_settings, worker_process):
    """More calls than a bucket holds: the others wait on a back-off each, and none of it counts as a failure."""
    with StubModel([{"text": "Done."}]) as stub:
        model = {"NAME": "stub", "BASE_URL": stub.url, "INPUT_PRICE": "0", "OUTPUT_PRICE": "0"}
        env = {f"MODELS__STANDARD__{name}": value for name, value in model.items()}
        worker_process(live_settings, **env, MODELS__STANDARD__REQUESTS_PER_MINUTE="12").ready()
        keys = [f"t{n}" for n in range(4)]
        project = start(
            tmp_path / "p", live_settings, [task(key) for key in keys], {"tasks": {key: [] for key in keys}}
        )
        watched = Watched(live_settings, project.project_id)
        parked = eventually(lambda: [e for e in watched.trace if e.kind == "run.parked"], 30)
        assert {event.data["on"] for event in parked} == {"backoff"}
        assert "takes no more calls just now" in parked[0].data["reason"]
        eventually(lambda: watched.status == "completed", 60)
        assert stub.requests == 4
        assert all(run.backoffs == 0 for run in watched.runs)
