"""What a call costs: whole micro-USD, rounded up; unknown is None, never 0."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.models.model import Request, Usage
from workers.models.prices import cost_micro, worst_micro
from workers.models.tiers import Endpoint


def endpoint(name="gpt-4o-mini", base_url=None, input_price=None, output_price=None):
    return Endpoint(name, base_url, 1_000, input_price, output_price)


def test_the_library_knows_the_price_of_a_known_model():
    assert cost_micro(endpoint(), Usage(1_000_000, 1_000_000)) == 750_000


def test_cached_input_is_cheaper_where_the_library_says_so():
    assert cost_micro(endpoint(), Usage(1_000_000, 0, cached_tokens=1_000_000)) == 75_000


def test_a_gateway_serves_a_model_under_its_own_name():
    assert cost_micro(endpoint(base_url="http://127.0.0.1:1/v1"), Usage(1_000_000, 0)) == 150_000


@pytest.mark.parametrize("name", ["some-local-model", "", "qwen3:8b"])
def test_an_unknown_model_has_no_price(name):
    assert cost_micro(endpoint(name), Usage(1_000, 1_000)) is None


def test_prices_of_the_settings_win():
    found = endpoint(input_price=Decimal("0.5"), output_price=Decimal(2))
    assert cost_micro(found, Usage(10, 10)) == 25


def test_a_price_of_zero_is_free_and_not_unknown():
    assert cost_micro(endpoint("local", input_price=Decimal(0), output_price=Decimal(0)), Usage(10, 10)) == 0


def test_half_a_price_is_no_price():
    assert cost_micro(endpoint("local", input_price=Decimal(1)), Usage(10, 10)) is None


def test_fractions_are_rounded_up():
    assert cost_micro(endpoint("local", input_price=Decimal("0.01"), output_price=Decimal(0)), Usage(1, 0)) == 1


def test_the_worst_case_counts_the_longest_answer_allowed():
    found = endpoint("local", input_price=Decimal(1), output_price=Decimal(10))
    assert worst_micro(found, Request(tier="standard", system="abcd")) == 1 + 10_000
    assert worst_micro(found, Request(tier="standard", generation={"maxTokens": 50})) == 500


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.decimals(0, 1000, places=4))
def test_the_sum_never_understates(given, made, price):
    cost = cost_micro(endpoint("local", input_price=price, output_price=price), Usage(given, made))
    exact = (given + made) * price
    assert exact <= cost < exact + 1
