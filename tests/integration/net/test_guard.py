"""The network guard against a site full of traps (spec: skills 4, reliability 45)."""

import gzip
import itertools
import socket
import threading
import time
import tracemalloc
import zlib
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from registry.skills.network import Incoming, NetworkFault, Outgoing
from registry.skills.urls import Address
from tests.certificates import Certificates
from tests.support import eventually
from tests.traps import Exchange, TrapSite, listening, serving
from workers.net import addresses, streams
from workers.net.guard import Guard

PUBLIC = "93.184.215.14"


def refused(guard: Guard, request: Outgoing, **how: Any) -> NetworkFault:
    with pytest.raises(NetworkFault) as fault:
        guard.send(request, **how)
    return fault.value


def test_an_answer_comes_back_with_where_it_came_from(guard: Guard, site: TrapSite) -> None:
    site.page("/page", "hello", Set_Cookie="a=b")
    site.leads("/start", "/page?x=1")
    found = guard.send(Outgoing(site.url("/start")))
    assert (found.status, found.body, found.truncated, found.content_type) == (200, b"hello", False, "text/html")
    assert [url.target for url in found.hops] == ["/start", "/page?x=1"]
    assert str(found.url) == site.url("/page?x=1")
    assert found.header("Set-Cookie") == "a=b"


def test_a_failure_status_is_an_answer(guard: Guard, site: TrapSite) -> None:
    site.page("/", "gone", status=410)
    assert guard.send(Outgoing(site.url())).status == 410


class TestWhereNothingMayGo:
    @pytest.mark.parametrize(
        "url",
        [
            "http://127.0.0.1:{port}/",
            "http://127.1:{port}/",
            "http://2130706433:{port}/",
            "http://0x7f000001:{port}/",
            "http://0177.0.0.1:{port}/",
            "http://localhost:{port}/",
            "http://[::1]:{port}/",
            "http://[::ffff:127.0.0.1]:{port}/",
            "http://[::ffff:7f00:1]:{port}/",
            "http://[64:ff9b::7f00:1]:{port}/",
            "http://[2002:7f00:1::]:{port}/",
            "http://0.0.0.0:{port}/",
            "http://169.254.169.254/latest/meta-data/",
            "http://[fd00:ec2::254]/",
            "http://metadata.google.internal/",
        ],
    )
    def test_no_connection_is_made(self, url: str) -> None:
        with listening() as listener:
            fault = refused(Guard(), Outgoing(url.format(port=listener.port)))
            assert (fault.code, fault.sent, fault.retryable) == ("network_blocked", False, False)
            assert listener.connections == []

    @pytest.mark.parametrize(
        "found",
        [[PUBLIC, "127.0.0.1"], ["127.0.0.1", PUBLIC], [PUBLIC, "::1"], [PUBLIC, "10.0.0.7"], ["::ffff:10.0.0.1"]],
    )
    def test_one_address_inside_refuses_the_whole_name(self, found: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(streams, "_connect", lambda *_: pytest.fail("a connection was made"))
        fault = refused(Guard(resolver=lambda _: found), Outgoing("http://two-faced.example.com/"))
        assert fault.code == "network_blocked"
        assert "10.0" not in fault.message and "127" not in fault.message

    def test_a_name_is_looked_up_once_and_the_checked_address_is_used(self, monkeypatch: pytest.MonkeyPatch) -> None:
        answers = iter([[PUBLIC], ["127.0.0.1"]])
        tried: list[tuple[str, int]] = []

        def connect(address: Address, port: int, _timeout: float) -> socket.socket:
            tried.append((str(address), port))
            raise ConnectionRefusedError(111, "refused")

        monkeypatch.setattr(streams, "_connect", connect)
        fault = refused(Guard(resolver=lambda _: next(answers)), Outgoing("http://rebinding.example.com:8080/"))
        assert (fault.code, fault.retryable, fault.sent) == ("network_error", True, False)
        assert tried == [(PUBLIC, 8080)]

    def test_all_addresses_of_a_name_are_tried_in_turn(self, monkeypatch: pytest.MonkeyPatch) -> None:
        tried: list[str] = []

        def connect(address: Address, _port: int, _timeout: float) -> socket.socket:
            tried.append(str(address))
            raise OSError(101, "unreachable")

        monkeypatch.setattr(streams, "_connect", connect)
        refused(Guard(resolver=lambda _: ["2606:4700::1111", PUBLIC]), Outgoing("http://example.com/"))
        assert tried == ["2606:4700::1111", PUBLIC]

    @pytest.mark.parametrize(
        "to",
        [
            "http://127.0.0.1:{port}/",
            "//127.0.0.1:{port}/",
            "http://localhost:{port}/",
            "http://127.1:{port}/",
            "http://169.254.169.254/latest/meta-data/",
            "file:///etc/passwd",
            "gopher://127.0.0.1:{port}/",
            "ftp://127.0.0.1:{port}/",
            "http://user:pass@127.0.0.1:{port}/",
            "http://[::ffff:127.0.0.1]:{port}/",
            "http://127.0.0.1:{port}\\@example.com/",
            "http:///\x01",
        ],
    )
    @pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
    def test_nor_by_a_redirect(self, guard: Guard, site: TrapSite, to: str, status: int) -> None:
        with listening() as listener:
            site.leads("/", to.format(port=listener.port), status)
            fault = refused(guard, Outgoing(site.url()))
            assert (fault.code, listener.connections) == ("network_blocked", [])

    def test_services_of_our_own_are_refused_even_where_private_ones_are_not(self, site: TrapSite) -> None:
        place = ("127.0.0.1", site.port)
        assert refused(Guard(allow=[place], refuse=[place]), Outgoing(site.url())).code == "network_blocked"

    def test_an_own_address_is_refused_before_a_byte_is_sent(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(addresses, "private", lambda _found: None)  # as if 127.0.0.1 were a public one
        heard: list[bytes] = []
        with listening(lambda peer: heard.append(peer.recv(100))) as listener:
            guard = Guard(resolver=lambda _: ["127.0.0.1"])
            fault = refused(guard, Outgoing(f"http://me.example.com:{listener.port}/"))
            assert (fault.code, fault.sent) == ("network_blocked", False)
            assert eventually(lambda: heard) == [b""]

    def test_a_name_without_an_address_is_not_there(self) -> None:
        def nothing(name: str) -> list[str]:
            raise socket.gaierror(-2, "Name or service not known")

        fault = refused(Guard(resolver=nothing), Outgoing("http://nowhere.example.com/"))
        assert (fault.code, fault.retryable) == ("network_error", True)

    def test_a_resolver_that_hangs_is_left(self) -> None:
        go = threading.Event()
        started = time.monotonic()
        guard = Guard(resolver=lambda _: [PUBLIC] if go.wait(20) else [])
        fault = refused(guard, Outgoing("http://slow.example.com/", timeout_s=0.4))
        go.set()
        assert fault.code in ("timeout", "network_error")
        assert time.monotonic() - started < 3


class TestRedirects:
    def test_five_are_followed_and_no_more(self, guard: Guard, site: TrapSite) -> None:
        for number in range(30):
            site.leads(f"/{number}", f"/{number + 1}")
        site.page("/30", "the end")
        assert guard.send(Outgoing(site.url("/25"))).body == b"the end"
        site.requests.clear()
        fault = refused(guard, Outgoing(site.url("/0")))
        assert (fault.code, fault.retryable) == ("remote_error", False)
        assert len(site.requests) == 6

    def test_a_loop_ends(self, guard: Guard, site: TrapSite) -> None:
        site.leads("/", "/")
        assert refused(guard, Outgoing(site.url())).code == "remote_error"

    def test_unfollowed_the_redirect_is_the_answer(self, guard: Guard, site: TrapSite) -> None:
        site.leads("/", "http://127.0.0.1:1/")
        found = guard.send(Outgoing(site.url(), redirects=0))
        assert (found.status, found.header("location")) == (302, "http://127.0.0.1:1/")

    @pytest.mark.parametrize(
        ("status", "method", "becomes"),
        [
            *((301, "POST", "GET"), (302, "POST", "GET"), (303, "POST", "GET"), (307, "POST", "POST")),
            *((308, "POST", "POST"), (302, "PUT", "PUT"), (303, "PUT", "GET"), (303, "HEAD", "HEAD")),
        ],
    )
    def test_the_method_changes_as_the_standard_says(
        self, guard: Guard, site: TrapSite, status: int, method: str, becomes: str
    ) -> None:
        site.leads("/", "/to", status)
        site.page("/to", "ok")
        body = None if method == "HEAD" else b"data"
        guard.send(Outgoing(site.url(), method=method, body=body, headers={"Content-Type": "text/plain"}))
        last = site.requests[-1]
        assert (last.method, last.path) == (becomes, "/to")
        assert last.body == (b"data" if body and becomes == method else b"")
        assert ("content-type" in last.headers) == (becomes == method)

    def test_credentials_stay_with_their_origin(self, site: TrapSite, other: TrapSite) -> None:
        guard = Guard(allow=[("127.0.0.1", site.port), ("127.0.0.1", other.port)])
        secrets = {"Authorization": "Bearer x", "Cookie": "a=b", "X-Api-Key": "k", "X-Whatever": "v"}
        site.leads("/here", "/there")
        site.leads("/there", other.url("/away"))
        other.leads("/away", site.url("/back"))
        site.page("/back", "ok")
        guard.send(Outgoing(site.url("/here"), headers=secrets | {"Accept": "text/plain"}))
        for asked in site.requests[:2]:
            assert all(asked.headers[name.lower()] == value for name, value in secrets.items())
        for asked in (other.requests[0], site.requests[2]):
            assert not asked.headers.keys() & {name.lower() for name in secrets}
            assert asked.headers["accept"] == "text/plain"

    def test_every_hop_is_told_before_it_is_made(self, guard: Guard, site: TrapSite) -> None:
        site.leads("/", "/next")

        def stop(url: Any) -> None:
            if url.path == "/next":
                raise NetworkFault("rate_limited", "enough")

        assert refused(guard, Outgoing(site.url(), on_hop=stop)).code == "rate_limited"
        assert site.paths == ["/"]

    def test_from_https_to_http_only_where_that_is_taken(self, certificates: Certificates, site: TrapSite) -> None:
        with serving(certificates.server()) as secure:
            places = [("shop.example.com", secure.port), ("127.0.0.1", site.port)]
            guard = Guard(allow=places, resolver=lambda _: ["127.0.0.1"], tls=certificates.trusting)
            secure.leads("/", site.url())
            site.page("/", "plain")
            url = secure.url(host="shop.example.com")
            assert guard.send(Outgoing(url)).body == b"plain"
            assert refused(guard, Outgoing(url, downgrade=False)).code == "network_blocked"


class TestSize:
    def test_a_longer_answer_is_cut_off_or_refused(self, guard: Guard, site: TrapSite) -> None:
        site.page("/", b"x" * 1000)
        cut = guard.send(Outgoing(site.url(), max_bytes=999))
        assert (len(cut.body), cut.truncated) == (999, True)
        whole = guard.send(Outgoing(site.url(), max_bytes=1000, whole=True))
        assert (len(whole.body), whole.truncated) == (1000, False)
        assert refused(guard, Outgoing(site.url(), max_bytes=999, whole=True)).code == "too_large"

    def test_five_gigabytes_are_left_after_the_cap(self, guard: Guard, site: TrapSite) -> None:
        piece = b"x" * 65536
        site.routes["/"] = lambda exchange: exchange.stream(itertools.repeat(piece, 5 * 16384))
        fault = refused(guard, Outgoing(site.url(), max_bytes=1_000_000, whole=True))
        assert fault.code == "too_large"
        assert site.sent < 40_000_000

    @pytest.mark.parametrize("coding", ["gzip", "deflate"])
    def test_a_bomb_is_not_unfolded(self, guard: Guard, site: TrapSite, coding: str) -> None:
        bomb = _bomb(31 if coding == "gzip" else 15)
        assert len(bomb) < 2_000_000
        site.page("/", bomb, Content_Encoding=coding)
        tracemalloc.start()
        try:
            fault = refused(guard, Outgoing(site.url(), max_bytes=100_000, whole=True))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert fault.code == "too_large"
        assert peak < 20_000_000

    def test_a_bomb_within_a_bomb_is_refused_unseen(self, guard: Guard, site: TrapSite) -> None:
        site.page("/", gzip.compress(_bomb(31)), Content_Encoding="gzip, gzip")
        assert refused(guard, Outgoing(site.url())).code == "unsupported_type"

    def test_endless_headers_end(self, guard: Guard, site: TrapSite) -> None:
        def endless(exchange: Exchange) -> None:
            exchange.raw(b"HTTP/1.1 200 OK\r\n")
            for number in range(1_000_000):
                exchange.raw(b"X-%d: %s\r\n" % (number, b"y" * 1000))

        site.routes["/"] = endless
        assert refused(guard, Outgoing(site.url())).code == "network_error"


@cache
def _bomb(wbits: int) -> bytes:
    """A gigabyte of zeros, folded."""
    engine = zlib.compressobj(9, zlib.DEFLATED, wbits)
    piece = bytes(1_000_000)
    return b"".join(engine.compress(piece) for _ in range(1000)) + engine.flush()


class TestCompression:
    @pytest.mark.parametrize(
        ("coding", "body"),
        [
            ("gzip", gzip.compress(b"hello", mtime=0)),
            ("x-gzip", gzip.compress(b"hello", mtime=0)),
            ("GZIP", gzip.compress(b"he", mtime=0) + gzip.compress(b"llo", mtime=0)),
            ("gzip", gzip.compress(b"hello", mtime=0) + bytes(100)),
            ("deflate", zlib.compress(b"hello")),
            ("deflate", zlib.compress(b"hello")[2:-4]),
            ("identity", b"hello"),
            ("", b"hello"),
        ],
    )
    def test_it_is_undone(self, guard: Guard, site: TrapSite, coding: str, body: bytes) -> None:
        site.page("/", body, Content_Encoding=coding)
        assert guard.send(Outgoing(site.url())).body == b"hello"
        assert site.requests[0].headers["accept-encoding"] == "gzip, deflate"

    def test_what_is_none_is_said_to_be_broken(self, guard: Guard, site: TrapSite) -> None:
        site.page("/", b"not gzip at all", Content_Encoding="gzip")
        assert refused(guard, Outgoing(site.url())).code == "remote_error"

    def test_what_was_not_asked_for_is_refused(self, guard: Guard, site: TrapSite) -> None:
        site.page("/", b"\x0b\x02\x80hello\x03", Content_Encoding="br")
        assert refused(guard, Outgoing(site.url())).code == "unsupported_type"

    def test_the_answer_to_head_has_none(self, guard: Guard, site: TrapSite) -> None:
        site.page("/", gzip.compress(b"hello", mtime=0), Content_Encoding="gzip")
        assert guard.send(Outgoing(site.url(), method="HEAD")).body == b""


class TestTime:
    @pytest.mark.parametrize("where", ["body", "headers", "silence"])
    def test_one_deadline_ends_what_drips(self, guard: Guard, site: TrapSite, where: str) -> None:
        def drip(exchange: Exchange) -> None:
            if where == "silence":
                time.sleep(5)
                return
            if where == "body":
                exchange.stream(_drops())
                return
            exchange.raw(b"HTTP/1.1 200 OK\r\nX-Slow: ")
            for drop in _drops():
                exchange.raw(drop)

        site.routes["/"] = drip
        started = time.monotonic()
        fault = refused(guard, Outgoing(site.url(), timeout_s=0.5))
        assert (fault.code, fault.retryable, fault.sent) == ("timeout", True, True)
        assert time.monotonic() - started < 2

    def test_the_deadline_is_one_for_all_redirects(self, guard: Guard, site: TrapSite) -> None:
        def late(exchange: Exchange) -> None:
            time.sleep(0.3)
            exchange.redirect("/")

        site.routes["/"] = late
        started = time.monotonic()
        assert refused(guard, Outgoing(site.url(), timeout_s=0.7)).code == "timeout"
        assert time.monotonic() - started < 2

    def test_a_peer_that_never_shakes_hands_is_left(self) -> None:
        with listening() as listener:
            guard = Guard(allow=[("127.0.0.1", listener.port)])
            started = time.monotonic()
            fault = refused(guard, Outgoing(f"https://127.0.0.1:{listener.port}/", timeout_s=0.5))
        assert (fault.code, fault.sent) == ("timeout", False)
        assert time.monotonic() - started < 3

    def test_a_peer_that_reads_nothing_is_left(self) -> None:
        with listening() as listener:
            guard = Guard(allow=[("127.0.0.1", listener.port)])
            request = Outgoing(
                f"http://127.0.0.1:{listener.port}/", method="POST", body=bytes(20_000_000), timeout_s=0.5
            )
            assert refused(guard, request).code == "timeout"

    def test_a_cancel_is_seen_while_waiting(self, guard: Guard, site: TrapSite) -> None:
        site.routes["/"] = lambda exchange: exchange.stream(_drops())
        cancelled = threading.Event()
        threading.Timer(0.3, cancelled.set).start()
        started = time.monotonic()
        assert refused(guard, Outgoing(site.url()), cancelled=cancelled.is_set).code == "cancelled"
        assert time.monotonic() - started < 2


def _drops() -> Iterator[bytes]:
    for _ in range(200):
        yield b"."
        time.sleep(0.05)


class TestWhatMustNotHappenTwice:
    def test_a_break_after_the_first_byte_is_not_worth_another_try(self) -> None:
        def hang_up(peer: socket.socket) -> None:
            peer.recv(10)
            peer.close()

        with listening(hang_up) as listener:
            guard = Guard(allow=[("127.0.0.1", listener.port)])
            request = Outgoing(f"http://127.0.0.1:{listener.port}/", method="POST", body=b"x", once=True)
            fault = refused(guard, request)
            assert (fault.code, fault.retryable, fault.sent) == ("network_error", False, True)
            assert len(listener.connections) == 1

    def test_one_before_it_is(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        fault = refused(
            Guard(allow=[("127.0.0.1", port)]), Outgoing(f"http://127.0.0.1:{port}/", method="POST", once=True)
        )
        assert (fault.code, fault.retryable, fault.sent) == ("network_error", True, False)


class TestTls:
    def test_host_and_handshake_keep_the_name(self, certificates: Certificates) -> None:
        with serving(certificates.server()) as secure:
            secure.page("/", "ok")
            guard = Guard(
                allow=[("shop.example.com", secure.port)], resolver=lambda _: ["127.0.0.1"], tls=certificates.trusting
            )
            assert guard.send(Outgoing(secure.url(host="shop.example.com"))).body == b"ok"
            assert secure.names == ["shop.example.com"]
            assert secure.requests[0].headers["host"] == f"shop.example.com:{secure.port}"

    def test_a_certificate_of_another_name_is_refused(self, certificates: Certificates) -> None:
        with serving(certificates.server()) as secure:
            guard = Guard(
                allow=[("bank.example.com", secure.port)], resolver=lambda _: ["127.0.0.1"], tls=certificates.trusting
            )
            fault = refused(guard, Outgoing(secure.url(host="bank.example.com")))
            assert (fault.code, fault.sent, secure.requests) == ("network_error", False, [])

    def test_a_certificate_nobody_trusts_is_refused(self, certificates: Certificates) -> None:
        with serving(certificates.server()) as secure:
            guard = Guard(allow=[("shop.example.com", secure.port)], resolver=lambda _: ["127.0.0.1"])
            fault = refused(guard, Outgoing(secure.url(host="shop.example.com")))
            assert (fault.code, secure.requests) == ("network_error", [])
            assert "certificate" in fault.message


class TestSurroundings:
    def test_no_proxy_and_no_netrc_play_a_part(
        self, guard: Guard, site: TrapSite, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
    ) -> None:
        (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password secret\n")
        monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
        site.page("/", "ok")
        with listening() as proxy:
            for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
                monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
            assert guard.send(Outgoing(site.url())).body == b"ok"
            assert proxy.connections == []
        assert "authorization" not in site.requests[0].headers

    def test_our_own_headers_cannot_be_set(self, guard: Guard, site: TrapSite) -> None:
        site.page("/", "ok")
        forged = {
            "Host": "evil.example",
            "Content-Length": "7",
            "Transfer-Encoding": "chunked",
            "Connection": "Upgrade",
        }
        guard.send(Outgoing(site.url(), headers=forged))
        headers = site.requests[0].headers
        assert headers["host"] == f"127.0.0.1:{site.port}"
        assert headers["connection"] == "close"
        assert "transfer-encoding" not in headers and "content-length" not in headers

    def test_a_switch_of_protocols_is_no_answer(self, guard: Guard, site: TrapSite) -> None:
        site.routes["/"] = lambda exchange: exchange.raw(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n")
        assert refused(guard, Outgoing(site.url())).code == "network_error"

    def test_what_is_no_http_is_no_answer(self, guard: Guard, site: TrapSite) -> None:
        site.routes["/"] = lambda exchange: exchange.raw(b"SSH-2.0-OpenSSH_9.9\r\n" * 5)
        assert refused(guard, Outgoing(site.url())).code == "network_error"

    def test_many_threads_share_one_guard(self, guard: Guard, site: TrapSite) -> None:
        site.routes["*"] = lambda exchange: exchange.answer(exchange.path)
        found: list[Incoming] = []

        def ask(number: int) -> None:
            found.append(guard.send(Outgoing(site.url(f"/{number}"))))

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert sorted(one.body.decode() for one in found) == sorted(f"/{number}" for number in range(20))
        assert all(one.url.path == one.body.decode() for one in found)
