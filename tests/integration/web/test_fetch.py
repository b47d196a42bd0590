"""web.fetch against a site of good pages and traps (spec: skills 7.2)."""

import gzip
import io
import json
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from orchestrator.ports.meter import CountingMeter
from orchestrator.settings import Limits, Settings
from tests.integration.web.conftest import Call, output
from tests.integration.web.pages import PAGES, SamplePage
from tests.traps import TrapSite
from workers.web import opener

NOISE = ("never shown", "track()", "color:red")


def fetched(call: Call, url: str, **more: Any) -> dict[str, Any]:
    return output(call("web.fetch", given={"url": url} | more))


class TestPages:
    @pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path[1:])
    @pytest.mark.parametrize("form", ["markdown", "text"])
    def test_what_is_to_be_read_comes_without_what_is_around_it(
        self, call: Call, site: TrapSite, page: SamplePage, form: str
    ) -> None:
        site.page(page.path, page.html)
        found = fetched(call, site.url(page.path), format=form)
        assert page.fact in " ".join(found["content"].split())
        assert page.title in found["title"]
        assert not [noise for noise in NOISE if noise in found["content"]]
        assert "<p>" not in found["content"]
        assert (found["status"], found["untrusted"], found["wired"]) == (200, True, True)
        assert found["totalChars"] == len(found["content"])

    def test_raw_is_as_it_came(self, call: Call, site: TrapSite) -> None:
        site.page("/", PAGES[0].html)
        assert fetched(call, site.url(), format="raw")["content"] == PAGES[0].html

    def test_a_page_of_little_text_is_read_whole(self, call: Call, site: TrapSite) -> None:
        site.page("/", "<html><title>T</title><body><div><span>Only</span> <b>this</b>.</div></body></html>")
        assert "Only" in fetched(call, site.url())["content"]

    def test_markdown_keeps_links_that_can_be_followed(self, call: Call, site: TrapSite) -> None:
        site.page("/tram", PAGES[0].html)
        assert f"]({site.url('/lighthouse/more?x=1&y=2')})" in fetched(call, site.url("/tram"))["content"]

    def test_it_comes_in_parts(self, call: Call, site: TrapSite) -> None:
        text = "".join(f"line {n} żółw\n" for n in range(200))
        site.page("/", text, kind="text/plain; charset=utf-8")
        parts, at = [], 0
        while True:
            found = fetched(call, site.url(), maxChars=500, startIndex=at)
            parts.append(found["content"])
            assert found["startIndex"] == at
            if not found["truncated"]:
                assert found["nextIndex"] is None
                break
            at = found["nextIndex"]
        assert "".join(parts) == text
        past = fetched(call, site.url(), startIndex=10_000)
        assert (past["content"], past["truncated"], past["totalChars"]) == ("", False, len(text))

    @pytest.mark.parametrize(
        ("kind", "body"),
        [
            ("application/json", '{"a": 1}'),
            ("application/ld+json; charset=utf-8", '{"a": 1}'),
            ("application/xml", "<a>1</a>"),
            ("application/rss+xml", "<rss><a>1</a></rss>"),
            ("text/csv", "a,b\n1,2\n"),
            ("text/markdown", "# a <b>"),
            ("", "plain words"),
        ],
    )
    def test_text_of_other_kinds_comes_as_it_is(self, call: Call, site: TrapSite, kind: str, body: str) -> None:
        site.page("/", body, kind=kind)
        assert fetched(call, site.url())["content"] == body

    def test_a_page_without_a_type_is_known_by_its_look(self, call: Call, site: TrapSite) -> None:
        site.page("/", PAGES[1].html, kind="")
        assert "<p>" not in fetched(call, site.url())["content"]

    @pytest.mark.parametrize(
        ("kind", "body"),
        [
            ("image/png", b"\x89PNG"),
            ("application/octet-stream", b"x"),
            ("application/zip", b"PK"),
            ("video/mp4", b"x"),
            ("", b"\0\1\2"),
        ],
    )
    def test_what_is_no_text_is_refused(self, call: Call, site: TrapSite, kind: str, body: bytes) -> None:
        site.page("/", body, kind=kind)
        assert call("web.fetch", given={"url": site.url()}).code == "unsupported_type"

    def test_where_it_came_from_is_told(self, call: Call, site: TrapSite) -> None:
        site.leads("/a", "/b")
        site.page("/b", "x", kind="text/plain")
        found = fetched(call, site.url("/a#part"))
        assert (found["url"], found["finalUrl"]) == (site.url("/a#part"), site.url("/b"))
        assert found["fetchedAt"].endswith("Z")

    @pytest.mark.parametrize(
        ("status", "retryable"), [(404, False), (403, False), (429, False), (500, True), (503, True)]
    )
    def test_a_failure_is_an_error_with_its_first_words(
        self, call: Call, site: TrapSite, status: int, retryable: bool
    ) -> None:
        site.page("/", "gone for good " * 100, status=status)
        result = call("web.fetch", given={"url": site.url()})
        assert (result.code, result.retryable) == ("remote_error", retryable)
        assert str(status) in str(result.error) and "gone for good" in str(result.error)
        assert len(str(result.error)) < 400


class TestCharsets:
    POLISH = "Zażółć gęślą jaźń, a potem jeszcze raz zażółć gęślą jaźń. Część druga: źdźbło trawy i chrząszcz."

    @pytest.mark.parametrize(
        ("codec", "header", "meta"),
        [
            ("iso-8859-2", "text/html; charset=ISO-8859-2", ""),
            ("windows-1250", "text/html", '<meta charset="windows-1250">'),
            ("windows-1250", "text/html", '<META http-equiv=Content-Type content="text/html; charset=windows-1250">'),
            ("utf-8", "text/html; charset=utf-8", '<meta charset="windows-1252">'),
            ("utf-8", "text/html", ""),
            ("utf-8", "text/html; charset=nonsense", ""),
            ("utf-8", "text/html; charset=punycode", ""),
            ("utf-8-sig", "text/html; charset=iso-8859-1", ""),
            ("utf-16", "text/html", ""),
        ],
    )
    def test_text_is_read_as_header_page_or_mark_say(
        self, call: Call, site: TrapSite, codec: str, header: str, meta: str
    ) -> None:
        page = f"<html><head>{meta}<title>Żółw</title></head><body><p>{self.POLISH}</p></body></html>"
        site.page("/", page.encode(codec), kind=header)
        found = fetched(call, site.url())
        assert self.POLISH in found["content"]
        assert found["title"] == "Żółw"

    @pytest.mark.parametrize(
        ("codec", "text"),
        [
            ("windows-1251", "Все счастливые семьи похожи друг на друга, каждая несчастливая семья несчастлива. " * 4),
            ("shift_jis", "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。" * 4),
            ("gb18030", "天下大势，分久必合，合久必分。周末七国分争，并入于秦。" * 4),
        ],
    )
    def test_where_nobody_says_it_is_guessed(self, call: Call, site: TrapSite, codec: str, text: str) -> None:
        site.page("/", text.encode(codec), kind="text/plain")
        assert fetched(call, site.url())["content"] == text

    def test_bad_bytes_become_a_mark(self, call: Call, site: TrapSite) -> None:
        site.page("/", b"good \xff\xfe bad \xc3", kind="text/plain; charset=utf-8")
        assert fetched(call, site.url())["content"] == "good \ufffd\ufffd bad \ufffd"


class TestRobots:
    def test_what_a_site_does_not_want_read_is_not_asked_for(self, call: Call, site: TrapSite) -> None:
        site.page("/robots.txt", "User-agent: *\nDisallow: /private\nAllow: /private/open\n", kind="text/plain")
        site.page("/private/open", "open", kind="text/plain")
        site.page("/private/x", "secret", kind="text/plain")
        assert fetched(call, site.url("/private/open"))["content"] == "open"
        result = call("web.fetch", given={"url": site.url("/private/x")})
        assert result.code == "not_allowed"
        assert site.paths == ["/robots.txt", "/private/open"]

    def test_nor_by_a_redirect(self, call: Call, site: TrapSite) -> None:
        site.page("/robots.txt", "User-agent: Officina\nDisallow: /private\n", kind="text/plain")
        site.leads("/", "/private")
        assert call("web.fetch", given={"url": site.url()}).code == "not_allowed"
        assert "/private" not in site.paths

    def test_a_person_reads_for_themselves(self, call: Call, site: TrapSite) -> None:
        site.page("/robots.txt", "User-agent: *\nDisallow: /\n", kind="text/plain")
        site.page("/", "x", kind="text/plain")
        assert output(call("web.fetch", person=True, given={"url": site.url()}))["content"] == "x"
        assert "/robots.txt" not in site.paths

    @pytest.mark.parametrize(("status", "code"), [(404, None), (403, None), (500, "not_allowed"), (503, "not_allowed")])
    def test_a_file_that_cannot_be_had(self, call: Call, site: TrapSite, status: int, code: str | None) -> None:
        site.page("/robots.txt", "User-agent: *\nDisallow: /\n", status=status)
        site.page("/", "x", kind="text/plain")
        assert call("web.fetch", given={"url": site.url()}).code == code

    def test_a_file_that_leads_inside_allows_and_reaches_nothing(self, call: Call, site: TrapSite) -> None:
        site.leads("/robots.txt", "http://169.254.169.254/")
        site.page("/", "x", kind="text/plain")
        assert fetched(call, site.url())["content"] == "x"

    def test_a_hostile_file_costs_no_time(self, call: Call, site: TrapSite) -> None:
        rules = "User-agent: *\n" + "".join(f"Disallow: /{'*a' * 60}{n}$\n" for n in range(3000))
        site.page("/robots.txt", rules, kind="text/plain")
        site.page("*", "x", kind="text/plain")
        started = time.monotonic()
        fetched(call, site.url("/" + "a" * 1500 + "b"))
        assert time.monotonic() - started < 10


class TestTraps:
    def test_a_bomb_is_too_large(self, call: Call, site: TrapSite) -> None:
        site.page("/", gzip.compress(bytes(50_000_000)), kind="text/plain", Content_Encoding="gzip")
        assert call("web.fetch", given={"url": site.url()}).code == "too_large"

    def test_a_redirect_inside_is_blocked(self, call: Call, site: TrapSite) -> None:
        site.leads("/", "http://127.0.0.1:1/")
        assert call("web.fetch", given={"url": site.url()}).code == "network_blocked"

    @pytest.mark.parametrize(
        "given",
        [
            {"url": "https://example.com/?" + "q" * 1025},
            {"url": "https://example.com/?q=" + "%41" * 400},
            {"url": "file:///etc/passwd"},
            {"url": "https://u:p@example.com/"},
            {"url": "https://example.com/", "maxChars": 199},
            {"url": "https://example.com/", "maxChars": 100_001},
            {"url": "https://example.com/", "startIndex": -1},
            {"url": "https://example.com/", "format": "html"},
            {"url": "https://example.com/", "headers": {}},
            {"url": "https://example.com/", "approved": True},
            {},
        ],
    )
    def test_an_input_that_is_none_goes_nowhere(self, call: Call, site: TrapSite, given: dict[str, Any]) -> None:
        assert call("web.fetch", given=given).code == "invalid_input"

    @pytest.mark.parametrize(
        "page",
        [
            "<div>" * 100_000 + "deep",
            "<a href='" + "x" * 1_000_000,
            "<table>" * 3_000 + "<td>x",
            "<b><i><u>" * 20_000,
            "<!--" + "-" * 1_000_000,
            "&" * 500_000,
            "<p>" + "word " * 400_000,
            "\0" * 1000 + "<p>after NUL</p>",
            "<?xml version='1.0' encoding='utf-8'?><html><body><p>declared</p></body></html>",
            "",
            "<html></html>",
        ],
        ids=["deep", "open", "tables", "formats", "comment", "entities", "long", "nul", "declared", "nothing", "empty"],
    )
    def test_a_page_that_is_hard_to_read_ends_in_time(self, call: Call, site: TrapSite, page: str) -> None:
        site.page("/", page)
        started = time.monotonic()
        result = call("web.fetch", given={"url": site.url()})
        assert result.code in (None, "unsupported_type", "timeout"), result.error
        assert time.monotonic() - started < 22

    def test_a_document_that_is_never_done_is_left_and_the_next_one_read(self, call: Call, site: TrapSite) -> None:
        site.page("/", PAGES[0].html)
        fetched(call, site.url())
        waiting = opener._pool.idle[-1]  # the one that is taken next
        waiting.process.send_signal(signal.SIGSTOP)  # as one that loops
        result = call("web.fetch", given={"url": site.url()}, time_left=1.0)
        assert (result.code, result.retryable) == ("timeout", True)
        assert result.duration_ms < 4000
        assert waiting.process.poll() is not None
        assert PAGES[0].fact in " ".join(fetched(call, site.url())["content"].split())

    def test_a_reader_that_died_is_replaced(self, call: Call, site: TrapSite) -> None:
        site.page("/", PAGES[0].html)
        fetched(call, site.url())
        for child in opener._pool.idle:
            child.process.kill()
            child.process.wait()
        fetched(call, site.url())

    @pytest.mark.parametrize(
        "deed",
        [
            "open('/etc/passwd')",
            "open('/tmp/officina-was-here', 'w')",
            "__import__('socket').socket()",
            "__import__('os').listdir('/home')",
            "__import__('os').kill(__import__('os').getppid(), 0)",
        ],
    )
    def test_a_reader_that_is_taken_over_reaches_nothing(self, deed: str) -> None:
        orders = opener.orders()
        if not orders:
            pytest.skip("this kernel offers no Landlock")
        program = f"import json, sys; from workers.web.child import confine; confine(json.loads(sys.argv[1])); {deed}"
        words = [sys.executable, "-I", "-c", program, json.dumps(orders)]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=30)
        assert done.returncode == 1 and "PermissionError" in done.stderr, done.stderr

    def test_a_reader_ends_with_its_parent(self) -> None:
        child = opener._Child()
        child.channel.close()
        assert child.process.wait(10) == 0


class TestPdf:
    def test_its_text_is_read(self, call: Call, site: TrapSite) -> None:
        site.page("/", pdf(["The lighthouse was lit in 1868.", "Second page."]), kind="application/pdf")
        found = fetched(call, site.url())
        assert "lit in 1868" in found["content"] and "Second page" in found["content"]

    def test_fifty_pages_and_no_more(self, call: Call, site: TrapSite) -> None:
        site.page("/", pdf([f"page number {n}." for n in range(1, 61)]), kind="application/pdf")
        content = fetched(call, site.url())["content"]
        assert "page number 50." in content and "page number 51." not in content
        assert "10 more pages" in content

    @pytest.mark.parametrize("body", [b"", b"%PDF-1.7\n", b"%PDF-1.7\n" + b"1 0 obj <<" * 10_000, b"no pdf"])
    def test_what_is_none_is_refused(self, call: Call, site: TrapSite, body: bytes) -> None:
        site.page("/", body, kind="application/pdf")
        assert call("web.fetch", given={"url": site.url()}).code == "unsupported_type"


def pdf(pages: list[str]) -> bytes:
    from reportlab.pdfgen.canvas import Canvas

    file = io.BytesIO()
    canvas = Canvas(file)
    for text in pages:
        canvas.drawString(72, 700, text)
        canvas.showPage()
    canvas.save()
    return file.getvalue()


class TestBrakes:
    @pytest.fixture
    def meter(self, tmp_path: Any) -> CountingMeter:
        few = Limits(task_requests=6, task_hosts=3)
        return CountingMeter(Settings(home=tmp_path, limits=few, _env_file=None))  # type: ignore[call-arg]

    def test_a_task_asks_so_many_hosts(self, call: Call, site: TrapSite, meter: CountingMeter) -> None:
        site.page("*", "x", kind="text/plain")
        codes = [
            call("web.fetch", given={"url": site.url(host=f"h{n}.example.com")}, meter=meter).code for n in range(5)
        ]
        assert codes == [None, None, None, "rate_limited", "rate_limited"]
        assert not any("h3" in asked.headers["host"] for asked in site.requests)
        other_task = call("web.fetch", given={"url": site.url(host="h4.example.com")}, meter=meter, task="another")
        assert other_task.ok

    def test_redirects_count_as_requests_and_robots_does_not(
        self, call: Call, site: TrapSite, meter: CountingMeter
    ) -> None:
        for n in range(4):
            site.leads(f"/{n}", f"/{n + 1}")
        site.page("/4", "x", kind="text/plain")
        assert call("web.fetch", given={"url": site.url("/0")}, meter=meter).ok
        assert call("web.fetch", given={"url": site.url("/4")}, meter=meter).ok
        assert call("web.fetch", given={"url": site.url("/4")}, meter=meter).code == "rate_limited"

    def test_a_person_is_not_braked(self, call: Call, site: TrapSite, meter: CountingMeter) -> None:
        site.page("*", "x", kind="text/plain")
        assert all(call("web.fetch", person=True, given={"url": site.url(f"/{n}")}, meter=meter).ok for n in range(10))


def test_not_wired_it_says_so() -> None:
    from registry.skills.context import Caller, SkillContext
    from tests.integration.web.conftest import SKILLS

    for name, given in (
        ("web.fetch", {"url": "https://example.com/"}),
        ("web.search", {"query": "x"}),
        ("web.research", {"question": "why?"}),
    ):
        found = output(SKILLS.invoke(name, given, SkillContext(Caller("run"))))
        assert found["wired"] is False and found["note"], json.dumps(found)
        assert not found.get("results") and not found.get("content") and not found.get("sources")
