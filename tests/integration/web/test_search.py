"""web.search against endpoints shaped like the providers (spec: skills 7.1)."""

import json
import time
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from pydantic import SecretStr

from orchestrator.ports.meter import CountingMeter
from orchestrator.settings import Limits, SearchProvider, Settings
from tests.integration.web.conftest import Call, output
from tests.traps import Exchange, TrapSite

LINES = [
    {"title": "One <b>bold</b> &amp; true", "url": "https://one.example.com/a?utm_source=x", "content": "The\n first"},
    {"title": "Same", "url": "https://ONE.example.com:443/a/#part", "content": "again"},
    {"title": "", "url": "https://two.example.com/", "content": "x" * 900, "publishedDate": "2026-01-02T03:04:05"},
    {"title": "Bad", "url": "javascript:alert(1)", "content": ""},
    {"title": "Local", "url": "file:///etc/passwd", "content": ""},
    {"title": "Mail", "url": "mailto:a@b.example", "content": ""},
    {"title": None, "url": None, "content": None},
    *({"title": f"T{n}", "url": f"https://n{n}.example.com/", "content": "c"} for n in range(30)),
]


def searxng(site: TrapSite, path: str = "") -> SearchProvider:
    return SearchProvider(kind="searxng", url=site.url(path).rstrip("/"))


def brave(site: TrapSite) -> SearchProvider:
    return SearchProvider(kind="brave", url=site.url().rstrip("/"), key=SecretStr("brave-key-123"))


def tavily(site: TrapSite) -> SearchProvider:
    return SearchProvider(kind="tavily", url=site.url().rstrip("/"), key=SecretStr("tavily-key-123"))


def shaped_like_searxng(exchange: Exchange) -> None:
    """As SearXNG answers: JSON only where it is asked for, no count, any number of results."""
    form = exchange.asked.body.decode() if exchange.asked.method == "POST" else ""
    asked = parse_qs(urlsplit(exchange.path).query or form)
    if asked.get("format") != ["json"] or not asked.get("q"):
        exchange.answer("<html>", status=403)
        return
    found = {
        "query": asked["q"][0],
        "number_of_results": 0,
        "results": LINES,
        "answers": [],
        "unresponsive_engines": [],
    }
    exchange.answer(json.dumps(found), kind="application/json")


@pytest.fixture
def searching(site: TrapSite) -> TrapSite:
    site.routes["/search"] = shaped_like_searxng
    return site


def test_results_come_in_one_form(call: Call, searching: TrapSite) -> None:
    found = output(call("web.search", providers=(searxng(searching),), given={"query": " light house ", "limit": 5}))
    assert (found["query"], found["provider"], found["wired"], found["untrusted"]) == (
        "light house",
        "searxng",
        True,
        True,
    )
    one, two, *rest = found["results"]
    assert (one["rank"], one["title"], one["snippet"]) == (1, "One bold & true", "The first")
    assert one["url"] == "https://one.example.com/a?utm_source=x"
    assert (two["url"], two["title"], len(two["snippet"])) == ("https://two.example.com/",) * 2 + (500,)
    assert two["publishedAt"] == "2026-01-02T03:04:05"
    assert [one["url"] for one in rest] == [f"https://n{n}.example.com/" for n in range(3)]


def test_filters_are_passed_on(call: Call, searching: TrapSite) -> None:
    given = {"query": "tide", "site": "Sea.Example.com", "recency": "week", "language": "pl-PL"}
    output(call("web.search", providers=(searxng(searching),), given=given))
    asked = parse_qs(urlsplit(searching.paths[0]).query)
    assert asked["q"] == ["tide site:sea.example.com"]
    assert (asked["time_range"], asked["language"], asked["format"]) == (["week"], ["pl-PL"], ["json"])


def test_brave_and_tavily_speak_their_own_ways(call: Call, site: TrapSite) -> None:
    line = {
        "title": "T",
        "url": "https://a.example.com/",
        "description": "<strong>d</strong>",
        "page_age": "2026-01-01",
    }
    site.page("/res/v1/web/search", json.dumps({"web": {"results": [line]}}), kind="application/json")
    line = {"title": "T", "url": "https://b.example.com/", "content": "c", "score": 0.5}
    site.page("/search", json.dumps({"results": [line]}), kind="application/json")
    given = {"query": "tide", "limit": 3, "recency": "month", "site": "sea.example.com", "language": "pt-BR"}
    found = output(call("web.search", providers=(brave(site),), given=given))
    assert found["results"][0] == {
        "rank": 1,
        "title": "T",
        "url": "https://a.example.com/",
        "snippet": "d",
        "publishedAt": "2026-01-01",
    }
    found = output(call("web.search", providers=(tavily(site),), given=given))
    assert (found["provider"], found["results"][0]["url"]) == ("tavily", "https://b.example.com/")
    asked, posted = site.requests
    assert asked.headers["x-subscription-token"] == "brave-key-123"
    assert parse_qs(urlsplit(asked.path).query)["freshness"] == ["pm"]
    assert posted.headers["authorization"] == "Bearer tavily-key-123"
    assert json.loads(posted.body) == {
        "query": "tide",
        "max_results": 3,
        "time_range": "month",
        "include_domains": ["sea.example.com"],
    }


def test_what_no_address_can_hold_is_asked_in_the_body(call: Call, searching: TrapSite) -> None:
    query = "\u706f" * 400  # each character takes nine in an address
    found = output(call("web.search", providers=(searxng(searching),), given={"query": query}))
    searching.page("/res/v1/web/search", json.dumps({"web": {"results": []}}), kind="application/json")
    output(call("web.search", providers=(brave(searching),), given={"query": query}))
    form, document = searching.requests
    assert (found["query"], len(found["results"])) == (query, 8)
    assert (form.method, parse_qs(form.body.decode())["q"]) == ("POST", [query])
    assert (document.method, json.loads(document.body)["q"]) == ("POST", query)


def test_the_next_provider_answers_for_one_that_fails(call: Call, searching: TrapSite, other: TrapSite) -> None:
    failures = (
        {"status": 500},
        {"status": 403},
        {"status": 429},
        {"body": "not json"},
        {"body": "[]"},
        {"body": '{"results": 7}'},
        {"body": '{"results": [7]}'},
    )
    for number, failure in enumerate(failures):
        other.page("/search", failure.pop("body", "no"), **failure)  # type: ignore[arg-type]
        providers = (searxng(other), searxng(searching))
        found = output(call("web.search", providers=providers, given={"query": f"q{number}"}))
        assert len(found["results"]) == 8
    assert len(other.requests) == len(failures)


def test_a_provider_that_hangs_leaves_time_for_the_next(call: Call, searching: TrapSite, other: TrapSite) -> None:
    other.routes["/search"] = lambda exchange: time.sleep(3)
    started = time.monotonic()
    result = call("web.search", providers=(searxng(other), searxng(searching)), given={"query": "q"}, time_left=2.0)
    assert result.ok, result.error
    assert time.monotonic() - started < 2.5


@pytest.mark.parametrize(
    ("first", "second", "code", "retryable"),
    [(429, 429, "rate_limited", True), (429, 500, "remote_error", True), (403, 403, "remote_error", False)],
)
def test_when_all_fail_the_answer_says_how(
    call: Call, site: TrapSite, other: TrapSite, first: int, second: int, code: str, retryable: bool
) -> None:
    site.page("/search", "", status=first)
    other.page("/search", "", status=second)
    result = call("web.search", providers=(searxng(site), searxng(other)), given={"query": "q"})
    assert (result.code, result.retryable) == (code, retryable)
    assert "searxng" in str(result.error)


def test_keys_stand_in_no_error(call: Call, site: TrapSite) -> None:
    site.page("/res/v1/web/search", "bad key brave-key-123", status=401)
    result = call("web.search", providers=(brave(site),), given={"query": "q"})
    assert result.code == "remote_error" and "brave-key" not in str(result.error)


def test_without_a_provider_nothing_is_searched_and_nothing_claimed(call: Call) -> None:
    found = output(call("web.search", given={"query": "q"}))
    assert (found["provider"], found["results"], found["wired"]) == ("none", [], False)
    assert "nothing was searched" in found["note"]


def test_the_same_search_is_asked_once(call: Call, searching: TrapSite) -> None:
    for name in ("web.search", "web__search", "web.search"):
        output(call(name, providers=(searxng(searching),), given={"query": "q"}))
    assert len(searching.requests) == 1
    for given in ({"query": "q", "recency": "day"}, {"query": "q", "limit": 2}, {"query": "Q"}):
        output(call("web.search", providers=(searxng(searching),), given=given))
    assert len(searching.requests) == 4


def test_a_search_counts_as_a_request_of_its_task(call: Call, searching: TrapSite, tmp_path: Any) -> None:
    few = Settings(home=tmp_path, limits=Limits(task_requests=2), _env_file=None)  # type: ignore[call-arg]
    meter = CountingMeter(few)
    codes = [
        call("web.search", providers=(searxng(searching),), given={"query": f"q{n}"}, meter=meter).code
        for n in range(3)
    ]
    assert codes == [None, None, "rate_limited"]


def test_a_provider_leads_nowhere_inside(call: Call, site: TrapSite) -> None:
    site.leads("/search", "http://127.0.0.1:1/")
    assert call("web.search", providers=(searxng(site),), given={"query": "q"}).code == "remote_error"


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"query": ""},
        {"query": "   "},
        {"query": "q" * 401},
        {"query": "q", "limit": 0},
        {"query": "q", "limit": 21},
        {"query": "q", "limit": "5"},
        {"query": "q", "limit": 5.0},
        {"query": "q", "limit": True},
        {"query": "q", "site": "https://a.example"},
        {"query": "q", "site": "a b"},
        {"query": "q", "recency": "hour"},
        {"query": "q", "language": "polski!"},
        {"query": "q", "safe": False},
        {"query": "q", "approved": True},
    ],
)
def test_an_input_that_is_none_is_refused(call: Call, given: dict[str, Any]) -> None:
    assert call("web.search", given=given).code == "invalid_input"


@pytest.mark.parametrize(
    "provider",
    [
        {"kind": "searxng"},
        {"kind": "searxng", "url": "ftp://x"},
        {"kind": "searxng", "url": "http://u:p@x"},
        {"kind": "brave"},
        {"kind": "google"},
        {"kind": "tavily", "key": "k", "limit": 3},
    ],
)
def test_a_provider_that_cannot_work_is_named_at_start(provider: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"searxng|url|key|kind|limit"):
        SearchProvider.model_validate(provider)
