"""Settings that cannot work are refused where they are read."""

import pytest
from pydantic import ValidationError

from orchestrator.settings import Limits, Model, Settings


def test_a_lease_holds_for_two_renewals_at_least() -> None:
    with pytest.raises(ValidationError, match="a lease has to hold for two renewals"):
        Limits(lease_s=5, renew_s=10)
    assert Limits(lease_s=5, renew_s=2.5).lease_s == 5


@pytest.mark.parametrize(
    ("changed", "there"),
    [
        ({}, False),
        ({"models": {"standard": Model(name="m")}}, False),
        ({"models": {"standard": Model(name="m")}, "model_api_key": "k"}, True),
        ({"models": {"standard": Model(name="m", base_url="http://127.0.0.1:1")}}, True),
    ],
)
def test_a_model_counts_when_it_can_be_reached(changed, there) -> None:
    assert Settings(_env_file=None, **changed).has_model is there
