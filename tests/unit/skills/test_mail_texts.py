"""What strangers wrote becomes text within bounds: parts, charsets, headers, HTML."""

import time
from email.message import EmailMessage

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.skills.mail import mime, page, texts


def body(raw: bytes, limit: int = 4_000) -> str:
    return texts.body(mime.parse(raw), limit)[0]


def headed(raw: bytes, headers: str) -> bytes:
    return headers.encode() + b"\n\n" + raw


@pytest.mark.parametrize(
    ("headers", "raw", "text"),
    [
        ("", b"plain", "plain"),
        ("Content-Type: text/plain; charset=iso-8859-2", "Zażółć".encode("iso-8859-2"), "Zażółć"),
        ("Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64", b"WmHFvMOzxYLEhw==", "Zażółć"),
        ("Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64", b"WmHFvMOzxYL", "Zażół"),
        ("Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: quoted-printable", b"a=3Db=\nc", "a=bc"),
        ("Content-Type: text/plain; charset=gb2312", "你好".encode("gb18030"), "你好"),
        ("Content-Type: text/plain; charset=unicode_escape", rb"\u0041", r"\u0041"),
        ("Content-Type: text/plain; charset=idna", b"xn--a", "xn--a"),
        ("Content-Type: text/plain; charset=utf-8", b"a\xffb", "a�b"),
        ("Content-Type: text/plain; charset=hex", b"6161", "6161"),
        ("Content-Type: nonsense", b"words", "words"),
        ("Content-Type: text/html", b"<p>One</p><p>Two &amp; three</p>", "One\n\nTwo & three"),
        ("Content-Type: image/png", b"\x89PNG", ""),
    ],
)
def test_a_text_is_read_in_its_charset_and_encoding(headers: str, raw: bytes, text: str) -> None:
    assert body(headed(raw, headers)) == text


def test_of_alternatives_the_plain_one_is_read_unless_it_is_blank() -> None:
    for plain, text in (("plain", "plain"), ("  \n", "from html")):
        message = EmailMessage()
        message.set_content(plain)
        message.add_alternative("<p>from html</p>", subtype="html")
        assert body(message.as_bytes()) == text


def test_parts_are_read_in_order_and_a_forwarded_message_is_an_attachment() -> None:
    inner = EmailMessage()
    inner["Subject"] = "inner"
    inner.set_content("do not read me")
    message = EmailMessage()
    message.set_content("first")
    message.add_attachment("kept", filename="notes.txt")
    message.add_attachment(inner)
    raw = message.as_bytes()

    assert body(raw) == "first"
    found = texts.attachments(mime.parse(raw))
    assert [(one["name"], one["type"]) for one in found] == [
        ("notes.txt", "text/plain"),
        ("unnamed", "message/rfc822"),
    ]


def test_a_message_that_was_cut_is_read_as_far_as_it_goes() -> None:
    message = EmailMessage()
    message.set_content("hello")
    message.add_attachment(b"x" * 500, maintype="application", subtype="pdf", filename="a.pdf")
    raw = message.as_bytes()

    for end in range(0, len(raw), 7):
        tree = mime.parse(raw[:end])
        texts.body(tree, 200)
        texts.attachments(tree)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("=?utf-8?b?WmHFvMOzxYLEhw==?= =?iso-8859-1?q?caf=E9?=", "Zażółćcafé"),
        ("plain\r\n folded", "plain folded"),
        ("=?nonsense?q?a=E9?=", "aé"),
        ("=?utf-8?b?broken", "=?utf-8?b?broken"),
        ("=?utf-8?b?=0?=", "=?utf-8?b?=0?="),
        ("a\x00b\x07c", "abc"),
        (None, ""),
    ],
)
def test_encoded_words_of_headers_are_read(value: str | None, text: str) -> None:
    assert texts.words(value) == text


def test_a_name_cannot_pass_for_the_address() -> None:
    assert texts.addresses(['"boss@corp.example" <evil@example.net>']) == ['"boss@corp.example" <evil@example.net>']
    assert texts.addresses(["=?utf-8?q?boss=40corp=2Eexample_=3Cboss=40corp=2Eexample=3E?= <e@example.net>"]) == [
        '"boss@corp.example <boss@corp.example>" <e@example.net>'
    ]


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<ul><li>one<li>two</ul>", "- one\n- two"),
        ('<a href="https://example.com/x">here</a>', "here (https://example.com/x)"),
        ('<a href="https://example.com/x">https://example.com/x</a>', "https://example.com/x"),
        ('<a href="javascript:alert(1)">here</a>', "here"),
        ("<style>p{}</style><script>x()</script><title>t</title>text<!-- no -->", "text"),
        ("<p>a<br>b</p>c", "a\nb\nc"),
        ("&lt;script&gt; stays text", "<script> stays text"),
        ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
        ("<table><tr><td>a</td><td>b</td></tr></table>", "a b"),
        ("<img src='https://spy.example.com/x.gif' alt='x'>seen", "seen"),
    ],
)
def test_html_is_read_as_its_text(html: str, text: str) -> None:
    assert page.to_text(html) == text


@pytest.mark.parametrize(
    "piece", ["<div>", "<a href='x", "<b><p>", "<a><div>", "<!--", "<table><td>", "&#", "<x y", "<script>", "</p>"]
)
def test_no_page_takes_long(piece: str) -> None:
    html = piece * (page.MAX_CHARS // len(piece))

    started = time.monotonic()
    page.to_text(html)
    page.to_text("<a " + " ".join(f"a{n}" for n in range(60_000)) + ">")

    assert time.monotonic() - started < 5


@settings(deadline=None)
@given(st.binary(max_size=400), st.sampled_from([b"", b"Content-Type: multipart/mixed; boundary=b\n\n--b\n"]))
def test_anything_at_all_is_read(raw: bytes, begin: bytes) -> None:
    tree = mime.parse(begin + raw)
    text, _ = texts.body(tree, 300)
    texts.attachments(tree)

    assert len(text) <= 300
    text.encode()


@given(st.text(max_size=300))
def test_any_header_is_read_as_one_line(value: str) -> None:
    for line in (texts.words(value), *texts.addresses([value]), texts.date(value, None) or ""):
        assert not any(character in line for character in "\r\n\0")
        line.encode()
