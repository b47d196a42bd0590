"""http.request and http.json against a site on loopback (spec: skills 7.4, 7.5)."""

import base64
import json
from typing import Any

import pytest

from registry import masking
from registry.connections import HttpConnection
from registry.skills.context import Authority, Caller, SkillContext
from tests.integration.web.conftest import SKILLS, Call, output
from tests.traps import TrapSite, listening
from workers.net.guard import Guard


class OneConnection:
    """A `Connections` port that holds one secret."""

    def __init__(self, **fields: Any) -> None:
        self.connection = HttpConnection.model_validate_json(json.dumps({"secret": "hunter2hunter2"} | fields))

    def find(self, owner_id: str, kind: Any, name: str | None = None) -> Any:
        return self.connection if (owner_id, kind, name) == ("local", HttpConnection, "shop") else None


class TestRequest:
    def test_the_answer_comes_back_whatever_its_status(self, call: Call, site: TrapSite) -> None:
        site.page("/x", "nothing", status=404, kind="text/plain")
        found = output(
            call("http.request", given={"url": site.url("/x?a=1"), "query": {"b": "ü &", "c": True, "d": 2}})
        )
        assert (found["status"], found["ok"], found["body"], found["truncated"]) == (404, False, "nothing", False)
        assert (found["bytes"], found["contentType"], found["untrusted"]) == (7, "text/plain", True)
        assert site.paths == ["/x?a=1&b=%C3%BC+%26&c=true&d=2"]

    @pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
    def test_every_method_is_sent(self, call: Call, site: TrapSite, method: str) -> None:
        site.page("/", "ok")
        output(call("http.request", given={"url": site.url(), "method": method}))
        assert site.requests[0].method == method

    def test_a_body_is_text_or_json(self, call: Call, site: TrapSite) -> None:
        site.page("/", "ok")
        output(call("http.request", given={"url": site.url(), "method": "POST", "body": "żółw"}))
        output(call("http.request", given={"url": site.url(), "method": "POST", "json": {"b": [1, None], "a": "ż"}}))
        text, data = site.requests
        assert text.body.decode() == "żółw"
        assert json.loads(data.body) == {"b": [1, None], "a": "ż"}
        assert data.headers["content-type"] == "application/json"

    def test_what_is_no_text_comes_as_base64(self, call: Call, site: TrapSite) -> None:
        site.page("/", bytes(range(256)), kind="image/png")
        found = output(call("http.request", given={"url": site.url()}))
        assert found["body"] is None
        assert base64.b64decode(found["bodyBase64"]) == bytes(range(256))

    def test_a_charset_is_followed(self, call: Call, site: TrapSite) -> None:
        site.page("/", "zażółć".encode("iso-8859-2"), kind="text/plain; charset=ISO-8859-2")
        assert output(call("http.request", given={"url": site.url()}))["body"] == "zażółć"

    @pytest.mark.parametrize("label", ["punycode", "idna", "unicode_escape", "utf-7", "rot13", "undefined", "x" * 999])
    def test_a_codec_that_is_no_charset_is_not_followed(self, call: Call, site: TrapSite, label: str) -> None:
        # Some of Python's take quadratic time, others make half a character of innocent bytes.
        body = b"+2AA- \\ud800 a-" + b"b" * 200_000
        site.page("/", body, kind=f"text/plain; charset={label}")
        found = output(call("http.request", given={"url": site.url()}))
        assert found["body"].encode() == body
        assert found["elapsedMs"] < 5_000

    def test_it_is_cut_off_at_the_size_asked_for(self, call: Call, site: TrapSite) -> None:
        site.page("/", "ż" * 100)
        found = output(call("http.request", given={"url": site.url(), "maxBytes": 11}))
        assert (found["body"], found["bytes"], found["truncated"]) == ("ż" * 5, 11, True)

    def test_redirects_are_answers_unless_followed(self, call: Call, site: TrapSite) -> None:
        site.leads("/", "/there")
        site.page("/there", "there")
        found = output(call("http.request", given={"url": site.url()}))
        assert (found["status"], found["headers"]["location"]) == (302, "/there")
        found = output(call("http.request", given={"url": site.url(), "followRedirects": True}))
        assert (found["status"], found["finalUrl"]) == (200, site.url("/there"))

    def test_secrets_of_the_answer_are_not_shown(self, call: Call, site: TrapSite) -> None:
        site.page("/", "ok", Set_Cookie="session=abc; Path=/", X_Auth_Token="t", X_Plain="shown")
        headers = output(call("http.request", given={"url": site.url()}))["headers"]
        assert headers["set-cookie"] == headers["x-auth-token"] == masking.MASK
        assert headers["x-plain"] == "shown"

    def test_a_request_is_never_repeated(self, call: Call) -> None:
        def hang_up(peer: Any) -> None:
            peer.recv(10)
            peer.close()

        with listening(hang_up) as listener:
            result = SKILLS.invoke(
                "http.request",
                {"url": f"http://127.0.0.1:{listener.port}/", "method": "POST", "body": "x"},
                _context(listener.port),
                Authority(None),
            )
            assert (result.code, result.retryable) == ("network_error", False)
            assert len(listener.connections) == 1

    def test_silence_ends_with_its_own_time_and_is_not_to_be_repeated(self, call: Call, site: TrapSite) -> None:
        with listening() as listener:
            result = SKILLS.invoke(
                "http.request",
                {"url": f"http://127.0.0.1:{listener.port}/", "timeoutMs": 500},
                _context(listener.port),
                Authority(None),
            )
        assert (result.code, result.retryable) == ("timeout", False)
        assert result.duration_ms < 3000

    @pytest.mark.parametrize(
        ("change", "field"),
        [
            ({"url": "ftp://example.com/"}, "url"),
            ({"url": "http://user:pw@example.com/"}, "url"),
            ({"url": "http://example.com/" + "a" * 2048}, "url"),
            ({"query": {"q": "a" * 2040}}, "URL"),
            ({"query": {"q": [1]}}, "query"),
            ({"query": {"q": None}}, "query"),
            ({"query": {str(n): 1 for n in range(51)}}, "query"),
            ({"method": "CONNECT"}, "method"),
            ({"method": "get"}, "method"),
            ({"body": "x"}, "body"),
            ({"method": "HEAD", "json": {}}, "body"),
            ({"method": "POST", "body": "x", "json": {}}, "json"),
            ({"method": "POST", "body": "x" * 262_145}, "body"),
            ({"method": "POST", "json": ["x" * 262_144]}, "json"),
            ({"timeoutMs": 499}, "timeoutMs"),
            ({"timeoutMs": 60_001}, "timeoutMs"),
            ({"timeoutMs": 1000.0}, "timeoutMs"),
            ({"maxBytes": 0}, "maxBytes"),
            ({"maxBytes": 2_097_153}, "maxBytes"),
            ({"followRedirects": 1}, "followRedirects"),
            ({"connection": "../x"}, "connection"),
            ({"approved": True}, "approved"),
            ({"headers": {"X": 1}}, "headers"),
            ({"headers": {f"X-{n}": "" for n in range(33)}}, "headers"),
            ({"headers": {"X": "a" * 4097}}, "headers"),
            ({"headers": {"X" * 65: "a"}}, "headers"),
            ({"headers": {"X Y": "a"}}, "headers"),
            ({"headers": {"": "a"}}, "headers"),
            ({"headers": {"X:": "a"}}, "headers"),
            ({"headers": {"X": "a\r\nY: b"}}, "headers"),
            ({"headers": {"X": "a\nb"}}, "headers"),
            ({"headers": {"X": "a\0"}}, "headers"),
            ({"headers": {"X": "1", "x": "2"}}, "headers"),
            *(
                ({"headers": {name: "x"}}, "headers")
                for name in (
                    *("Host", "HOST", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "TE", "Trailer"),
                    *("Expect", "Keep-Alive", "Proxy-Authorization", "proxy-anything"),
                )
            ),
        ],
    )
    def test_an_input_that_is_none_asks_nobody(self, change: dict[str, Any], field: str) -> None:
        given = {"url": "https://example.com/"} | change
        result = SKILLS.invoke("http.request", given, SkillContext(Caller("run")))
        assert result.code == "invalid_input"
        assert field in f"{result.error} {[detail.path for detail in result.details]}"

    def test_not_wired_it_says_that_nothing_was_sent(self) -> None:
        for name in ("http.request", "http.json"):
            found = output(
                SKILLS.invoke(name, {"url": "https://example.com/"}, SkillContext(Caller("person")), Authority(None))
            )
            assert (found["wired"], found["status"]) == (False, 0)
            assert "nothing was sent" in found["note"]


class TestConnection:
    def test_its_secret_goes_to_its_hosts_and_is_not_shown(self, call: Call, site: TrapSite) -> None:
        def echo(exchange: Any) -> None:
            exchange.answer(json.dumps({"sent": exchange.asked.headers}), kind="application/json")

        site.routes["/"] = echo
        shop = OneConnection(hosts=[site.url().rstrip("/")])
        given = {"url": site.url(), "connection": "shop", "headers": {"authorization": "mine", "X-Other": "o"}}
        found = output(call("http.request", given=given, connections=shop))
        assert site.requests[0].headers["authorization"] == "Bearer hunter2hunter2"
        assert site.requests[0].headers["x-other"] == "o"
        assert "hunter2" not in json.dumps(found)
        data = output(call("http.json", given=given, connections=shop))["data"]
        assert "hunter2" not in json.dumps(data)

    def test_basic_is_a_name_and_the_secret(self, call: Call, site: TrapSite) -> None:
        site.page("/", "ok")
        shop = OneConnection(hosts=[site.url().rstrip("/")], username="me")
        output(call("http.request", given={"url": site.url(), "connection": "shop"}, connections=shop))
        basic = base64.b64encode(b"me:hunter2hunter2").decode()
        assert site.requests[0].headers["authorization"] == f"Basic {basic}"
        assert basic not in masking.mask_text(f"seen: {basic}")

    def test_to_no_other_host(self, call: Call, site: TrapSite) -> None:
        shop = OneConnection(hosts=["shop.example.com", "http://127.0.0.1:1"])
        result = call("http.request", given={"url": site.url(), "connection": "shop"}, connections=shop)
        assert (result.code, site.requests) == ("not_allowed", [])

    def test_not_by_a_redirect_either(self, call: Call, site: TrapSite, other: TrapSite) -> None:
        site.leads("/", other.url("/"))
        other.page("/", "ok")
        shop = OneConnection(hosts=[site.url().rstrip("/")], header="X-Shop-Key", prefix="")
        given = {"url": site.url(), "connection": "shop", "followRedirects": True}
        output(call("http.request", given=given, connections=shop))
        assert site.requests[0].headers["x-shop-key"] == "hunter2hunter2"
        assert "x-shop-key" not in other.requests[0].headers

    @pytest.mark.parametrize("name", ["missing", "default"])
    def test_one_that_is_not_there_sends_nothing(self, call: Call, site: TrapSite, name: str) -> None:
        given = {"url": site.url(), "connection": name}
        for connections in (None, OneConnection(hosts=["a.example"])):
            result = call("http.request", given=given, connections=connections)
            assert (result.code, site.requests) == ("not_found", [])


class TestJson:
    def test_data_comes_back(self, call: Call, site: TrapSite) -> None:
        site.page("/", '{"a": [1, 2.5, null], "a": "last wins"}', kind="application/json")
        found = output(call("http.json", given={"url": site.url(), "method": "POST", "json": {"q": 1}}))
        assert (found["status"], found["data"], found["untrusted"]) == (200, {"a": "last wins"}, True)
        assert site.requests[0].headers["accept"] == "application/json"

    def test_a_secret_that_a_failure_repeats_is_not_cut_before_it_is_masked(self, call: Call, site: TrapSite) -> None:
        masking.remember("correct-horse-battery")
        site.page("/", "x" * 490 + "correct-horse-battery", status=500)
        assert "correct" not in str(call("http.json", given={"url": site.url()}).error)
        site.page("/", "x" * 290 + "correct-horse-battery", status=500)
        assert "correct" not in str(call("web.fetch", given={"url": site.url()}).error)

    def test_no_content_is_null(self, call: Call, site: TrapSite) -> None:
        site.page("/", "", status=204)
        assert output(call("http.json", given={"url": site.url()}))["data"] is None

    @pytest.mark.parametrize(
        "body", ["", "  ", "<html>", "{", "NaN", '{"a": Infinity}', "[1e999]", "[" * 101 + "]" * 101, '"\\ud800"']
    )
    def test_what_is_no_json_is_an_error(self, call: Call, site: TrapSite, body: str) -> None:
        site.page("/", body)
        result = call("http.json", given={"url": site.url()})
        assert result.code == "remote_error"
        assert "not_json" in str(result.error)

    def test_a_failure_is_an_error_with_its_first_words(self, call: Call, site: TrapSite) -> None:
        site.page("/", "no " * 1000, status=503)
        result = call("http.json", given={"url": site.url()})
        assert (result.code, result.retryable) == ("remote_error", False)
        assert "503" in str(result.error) and len(str(result.error)) < 700

    def test_more_than_a_mebibyte_is_too_large(self, call: Call, site: TrapSite) -> None:
        site.page("/", json.dumps("x" * 1024 * 1024))
        assert call("http.json", given={"url": site.url()}).code == "too_large"

    def test_a_redirect_is_no_data(self, call: Call, site: TrapSite) -> None:
        site.leads("/", "/there")
        assert call("http.json", given={"url": site.url()}).code == "remote_error"
        assert site.paths == ["/"]


def _context(port: int) -> SkillContext:
    return SkillContext(Caller("run"), net=Guard(allow=[("127.0.0.1", port)]))
