"""What people, logs and traces see of secrets: nothing (spec: skills 3)."""

import pytest

from registry import masking


@pytest.mark.parametrize(
    "name",
    [
        *(
            "Authorization",
            "authorization",
            "Proxy-Authorization",
            "Cookie",
            "Set-Cookie",
            "X-Api-Key",
            "apiKey",
            "APIKey",
        ),
        *("api_key", "x-auth-token", "accessKey", "password", "dbPassword", "client_secret", "sessionId", "signature"),
    ],
)
def test_names_of_secrets_are_known(name: str) -> None:
    assert masking.is_secret_name(name)
    assert masking.mask({"headers": {name: "abc"}}) == {"headers": {name: masking.MASK}}


@pytest.mark.parametrize(
    "name", ["key", "maxTokens", "author", "promptTokens", "tokenizer", "secretary", "Accept", "keyboard"]
)
def test_ordinary_names_are_none(name: str) -> None:
    assert masking.mask({name: "abc"}) == {name: "abc"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://u:p@h/x", "https://***@h/x"),
        ("https://h/?token=abc&q=1&api_key=2", "https://h/?token=***&q=1&api_key=***"),
        ("see https://h/?a=1&key=zz.", "see https://h/?a=1&key=***"),
        ("Authorization: Bearer abc.def-ghi", "Authorization: ***"),
        ("postgresql://me:pw@db/x", "postgresql://***@db/x"),
        ("api.telegram.org/bot123456789:AAF_abcdefghijklmnopqrstu/send", "api.telegram.org/***/send"),
        ("sk-abcdefghijkl", "***"),
        ("no secret here: a=b?c", "no secret here: a=b?c"),
    ],
)
def test_texts_lose_what_looks_like_one(text: str, shown: str) -> None:
    assert masking.mask_text(text) == shown


def test_a_value_that_was_opened_disappears_wherever_it_stands() -> None:
    masking.remember("hunter2/hunter2")
    shown = masking.mask({"a": ["say hunter2/hunter2!"], "url": "https://h/hunter2%2Fhunter2/x"})
    assert shown == {"a": ["say ***!"], "url": "https://h/***/x"}


def test_a_short_value_garbles_no_words() -> None:
    masking.remember("the")
    assert masking.mask_text("the end") == "the end"
