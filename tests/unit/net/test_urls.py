"""What a URL is, before anything is said about where it may lead (spec: skills 4)."""

import pytest

from registry.errors import SkillError
from registry.skills.urls import MAX_QUERY, parse_url, short_query


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("http://example.com", "http://example.com/"),
        ("HTTPS://EXAMPLE.com:443/A?b=C#frag", "https://example.com/A?b=C"),
        ("http://example.com:/x", "http://example.com/x"),
        ("http://example.com.:8080/x", "http://example.com:8080/x"),
        ("https://example.com?q=1", "https://example.com/?q=1"),
        ("https://pl.example.org/wiki/Łódź?a=ę", "https://pl.example.org/wiki/%C5%81%C3%B3d%C5%BA?a=%C4%99"),
        ("https://example.com/a%20b", "https://example.com/a%20b"),
        ('https://example.com/<a>"', "https://example.com/%3Ca%3E%22"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("http://１２７.０.０.１/", "http://127.0.0.1/"),
        ("http://例え。テスト/", "http://xn--r8jz45g.xn--zckzah/"),
        ("http://[2606:4700::1111]:8080/", "http://[2606:4700::1111]:8080/"),
        ("https://a_b.example.com/", "https://a_b.example.com/"),
        ("http://127.1/", "http://127.1/"),
    ],
)
def test_an_address_is_read_into_one_form(text: str, read: str) -> None:
    assert str(parse_url(text)) == read


@pytest.mark.parametrize(
    "text",
    [
        "",
        "example.com",
        "/etc/passwd",
        "//example.com/",
        "http:/example.com/",
        "http:example.com",
        "file:///etc/passwd",
        "ftp://example.com/",
        "gopher://example.com/",
        "javascript:alert(1)",
        "http://",
        "http:///x",
        "http://.",
        "http://..",
        "http://a..b/",
        "http://user@example.com/",
        "http://user:pass@example.com/",
        "http://example.com@169.254.169.254/",
        "http://example.com:0/",
        "http://example.com:65536/",
        "http://example.com:99999/",
        "http://example.com:8o/",
        "http://example.com:-1/",
        "http://example.com:８０/",
        "http://example.com:000080/",
        "http://1:2:3/",
        "http://exa mple.com/",
        "http://example.com/a b",
        "http://example.com/\n",
        "http://example.com/\r\nHost: x",
        " http://example.com/",
        "http://example.com/\x00",
        "http://example.com/\u200b",
        "http://example.com/\u202e",
        "http://example.com\\@evil.example/",
        "http://example.com/\\",
        "http://exa%6dple.com/",
        "http://[fe80::1%25eth0]/",
        "http://[::1",
        "http://[::1]x/",
        "http://[example.com]/",
        "http://[]/",
        "http://a;b.example/",
        "http://a,b/",
        "http://" + "a" * 64 + ".example/",
        "http://" + "a." * 130 + "example/",
        "http://\u00ad/",
        "http://example.com/" + "a" * 2048,
    ],
)
def test_what_is_no_address_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(SkillError) as refused:
        parse_url(text)
    assert refused.value.code == "invalid_input"
    assert len(refused.value.message) < 120
    assert "pass" not in refused.value.message.replace("password", "")


def test_a_long_query_is_refused_where_nobody_is_asked() -> None:
    short_query(parse_url("https://example.com/?" + "q" * MAX_QUERY))
    with pytest.raises(SkillError, match="query"):
        short_query(parse_url("https://example.com/?" + "q" * (MAX_QUERY + 1)))
