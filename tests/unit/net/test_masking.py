"""What people, logs and traces see of secrets: nothing (spec: skills 3)."""

import time

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

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
        ('{"headers":{"X-Api-Key":"abc"},"n":1}', '{"headers":{"X-Api-Key":"***"},"n":1}'),
        (r'{"text":"{\"token\": \"abc\", \"a\": 1}"}', r'{"text":"{\"token\": \"***\", \"a\": 1}"}'),
        ("{'password': 'abc', 'a': 'b'}", "{'password': '***', 'a': 'b'}"),
        ("X-Auth-Token: k7xqz83mfa", "X-Auth-Token: ***"),
        ("OFFICINA_MODEL_API_KEY=k7xqz83mfa x", "OFFICINA_MODEL_API_KEY=*** x"),
        ("a token: something said in words", "a token: something said in words"),
        ("the password=required field", "the password=required field"),
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


def test_a_secret_is_found_however_json_and_urls_write_it() -> None:
    masking.remember('quoted "secret" \\ value')
    written = [r'{"a":"quoted \"secret\" \\ value"}', "https://h/?x=quoted+%22secret%22+%5C+value"]

    assert [masking.mask_text(text) for text in written] == ['{"a":"***"}', "https://h/?x=***"]


def test_what_is_hidden_from_a_model_are_values_alone() -> None:
    masking.remember("hidden-value-77")
    value = {"token": "looks like one", "text": ["say hidden-value-77"], "password": "x"}

    assert masking.hide(value) == {"token": "looks like one", "text": ["say ***"], "password": "x"}


def test_names_and_lists_are_masked_too() -> None:
    masking.remember("hidden-value-78")

    assert masking.mask({"set-cookie": ["a=1", "b=2"], "hidden-value-78": 1}) == {
        "set-cookie": ["***", "***"],
        "***": 1,
    }


@pytest.mark.parametrize(
    "text",
    [
        "",
        "An ordinary sentence about a key and a lock.",
        '{"role":"assistant","content":"done","toolCalls":[{"id":"call-1","name":"files.write"}]}',
        "https://example.com/a?b=c",
    ],
)
def test_ordinary_texts_reveal_nothing(text: str) -> None:
    assert not masking.reveals(text)
    assert masking.mask_text(text) == text


def test_a_look_at_an_ordinary_text_costs_next_to_nothing() -> None:
    text = "An ordinary sentence of a report, with numbers 12345 and words. " * 500  # 32 KB

    started = time.process_time()
    for _ in range(20):
        masking.reveals(text)

    assert (time.process_time() - started) / 20 < 0.01


@pytest.mark.parametrize(
    "piece", ["token=", '"token":"', "a" * 100 + "://", "?key=", "Bearer ", '\\"', "x-y-", "token:"]
)
def test_no_text_takes_long(piece: str) -> None:
    text = "password " + piece * (64_000 // len(piece))

    started = time.process_time()
    masking.mask_text(text)

    assert time.process_time() - started < 2


NAMES = st.sampled_from(
    [
        *("Authorization", "auth", "authHeader", "X-Auth", "token", "tokenValue", "dbPassword", "SECRET_KEY"),
        *("apiKey", "api_key", "API-Key", "accessKey", "private_key", "signingKey", "sessionId", "session_id", "jwt"),
        *("cookies", "Set-Cookie", "credentials", "passphrase", "pwd", "bearer", "signature", "clientSecrets"),
        *("secrets", "secretKey"),
    ]
)


@hypothesis_settings(deadline=None)
@given(NAMES, st.text(min_size=1, max_size=30))
def test_a_quick_look_misses_no_name(name: str, value: str) -> None:
    assert masking.mask({"a": [{name: value}]}) == {"a": [{name: masking.MASK}]}


@pytest.mark.parametrize(
    "text",
    [
        "Bearer abcdefgh12",
        "Basic QWxhZGRpbjpvcGVu",
        "Basic\nQWxhZGRpbjpvcGVu",
        "sk-abcdefgh",
        "PK_abcdefgh1",
        "ghp_abcdefghij",
        "github_pat_abcdefghij",
        "glpat-abcdefghij",
        "xoxb-abcdefghij",
        "AKIAABCDEFGHIJKLMNOP",
        "eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.abc",
        "-----BEGIN RSA PRIVATE KEY-----\nabc",
        "bot1234567:abcdefghijklmnopqrst",
        "https://u:p@example.com",
        "https://example.com/?key=a&b=1",
        "https://example.com/?sessionId=a1",
        '{"text": "{\\"apiKey\\": \\"a\\"}"}',
        "X-Api-Key: abcdefg1",
    ],
)
def test_a_quick_look_misses_nothing_that_looks_like_one(text: str) -> None:
    assert masking.reveals(text)
    assert masking.reveals(f"words before, {text}")
