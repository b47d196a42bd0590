"""Which model stands behind a tier or a name."""

import pytest

from orchestrator.settings import Model, Settings
from workers.models.model import ModelFault
from workers.models.tiers import knows, resolve


def settings(key="secret-key", base_url=None, **models):
    found = {tier: Model(name=model) if isinstance(model, str) else Model(**model) for tier, model in models.items()}
    return Settings(_env_file=None, models=found, model_api_key=key, model_base_url=base_url)


def names(*arguments, **more):
    return [endpoint.name for endpoint in resolve(*arguments, **more)]


def test_the_environment_names_the_models(monkeypatch):
    monkeypatch.setenv("OFFICINA_MODELS__STANDARD__NAME", "some-model")
    monkeypatch.setenv("OFFICINA_MODELS__FAST__NAME", "small-model")
    monkeypatch.setenv("OFFICINA_MODELS__FAST__BASE_URL", "http://127.0.0.1:8000/v1")
    monkeypatch.setenv("OFFICINA_MODEL_API_KEY", "secret-key")
    found = Settings(_env_file=None)
    assert names(found, "standard") == ["some-model"]
    assert resolve(found, "fast")[0].base_url == "http://127.0.0.1:8000/v1"


def test_a_tier_of_its_own_wins_and_a_missing_one_is_played_by_its_neighbour():
    assert names(settings(fast="f", standard="s", deep="d"), "deep") == ["d"]
    assert names(settings(standard="s"), "fast") == ["s"]
    assert names(settings(fast="f", deep="d"), "standard") == ["d"]


def test_the_named_model_comes_first_then_fallbacks_then_the_tier_each_once():
    found = settings(fast="f", standard="s", deep="d")
    assert names(found, "standard", model="d", fallback=("fast", "d")) == ["d", "f", "s"]
    assert names(found, "standard", fallback=("deep",)) == ["s", "d"]


def test_fallbacks_nobody_configured_are_left_out():
    assert names(settings(standard="s"), "standard", fallback=("other",)) == ["s"]


def test_a_named_model_nobody_configured_is_refused_by_name():
    with pytest.raises(ModelFault) as caught:
        resolve(settings(standard="s"), "standard", model="other")
    assert caught.value.code == "model_unresolved"
    assert "'other'" in caught.value.message


@pytest.mark.parametrize("found", [settings(), settings(key=None, standard="s")])
def test_without_a_model_or_a_way_to_it_both_ways_out_are_named(found):
    with pytest.raises(ModelFault) as caught:
        resolve(found, "standard")
    assert caught.value.code == "model_unresolved"
    for words in (
        "OFFICINA_MODELS__STANDARD__NAME",
        "OFFICINA_MODEL_API_KEY",
        "script:",
        "--rehearse",
        "OFFICINA_STAND_IN",
    ):
        assert words in caught.value.message


def test_an_address_is_enough_without_a_key():
    assert names(settings(key=None, standard={"name": "s", "base_url": "http://127.0.0.1:1/v1"}), "standard") == ["s"]


def test_an_address_that_is_none_is_refused_without_quoting_it():
    url = "http://host:99999/v1"  # what looks like none at all is refused with the settings
    with pytest.raises(ModelFault) as caught:
        resolve(settings(standard="s", base_url=url), "standard")
    assert caught.value.code == "model_unresolved"
    assert url not in caught.value.message


def test_definitions_can_be_checked_beforehand():
    found = settings(standard="s")
    assert [knows(found, ref) for ref in ("standard", "deep", "s", "other", "")] == [True, True, True, False, False]
    assert not knows(settings(), "standard")
