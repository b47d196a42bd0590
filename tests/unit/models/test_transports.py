"""Transports of model calls: one for each call under way, and no look at the others."""

import itertools

import httpx2
import pytest

from workers.models.transports import Transports

URL = "http://model.test/v1"


class Line(httpx2.BaseTransport):
    """Answers at once, or fails; remembers whether it was closed."""

    def __init__(self, number: int, *, broken: bool = False) -> None:
        self.number, self.broken, self.closed = number, broken, False

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        if self.broken:
            raise httpx2.ConnectError("nobody there")
        return httpx2.Response(200, stream=httpx2.ByteStream(str(self.number).encode()))

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def made() -> list[Line]:
    return []


def transports(made: list[Line], idle_s: float = 60, *, broken: bool = False) -> Transports:
    numbers = itertools.count()

    def make() -> Line:
        made.append(Line(next(numbers), broken=broken))
        return made[-1]

    return Transports(make, idle_s)


def ask(some: Transports) -> httpx2.Response:
    return some.handle_request(httpx2.Request("POST", URL))


def over(answer: httpx2.Response) -> str:
    try:
        return answer.read().decode()
    finally:
        answer.close()


def test_calls_under_way_have_one_each_and_the_one_used_last_is_used_next(made: list[Line]) -> None:
    some = transports(made)
    first, second = ask(some), ask(some)

    assert (over(first), over(second)) == ("0", "1")
    assert over(ask(some)) == "1"
    assert len(made) == 2


def test_one_whose_call_failed_is_there_for_the_next(made: list[Line]) -> None:
    some = transports(made, broken=True)
    for _ in range(3):
        with pytest.raises(httpx2.ConnectError):
            ask(some)

    assert len(made) == 1


def test_an_answer_that_is_closed_twice_gives_its_own_back_once(made: list[Line]) -> None:
    some = transports(made)
    answer = ask(some)
    over(answer)
    answer.stream.close()  # type: ignore[union-attr]

    left, right = ask(some), ask(some)
    assert {over(left), over(right)} == {"0", "1"}, "no two calls have the same"


def test_those_that_lie_idle_for_too_long_are_closed_as_others_are_given_back(
    made: list[Line], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr("workers.models.transports.time.monotonic", lambda: now)
    some = transports(made, idle_s=30)
    answers = [ask(some) for _ in range(3)]
    for answer in answers:
        over(answer)

    now = 31.0
    over(ask(some))

    assert [one.closed for one in made] == [True, True, False]
    some.close()
    assert all(one.closed for one in made)
