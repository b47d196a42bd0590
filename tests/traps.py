"""A web site on loopback that answers as each test wants, badly too, and remembers what it was asked."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Asked:
    """One request as it came in."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Exchange(BaseHTTPRequestHandler):
    """What a route gets: the request, and ways to answer."""

    server: "_Server"
    protocol_version = "HTTP/1.1"
    asked: Asked

    def answer(
        self, body: bytes | str = b"", *, status: int = 200, kind: str = "text/html; charset=utf-8", **headers: str
    ) -> None:
        """A whole answer; underscores in header names become hyphens."""
        data = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        if kind:
            self.send_header("Content-Type", kind)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def redirect(self, to: str, status: int = 302) -> None:
        self.answer(b"", status=status, Location=to)

    def raw(self, data: bytes) -> None:
        """Bytes as they are."""
        self.wfile.write(data)
        self.wfile.flush()

    def stream(self, pieces: Iterator[bytes], **headers: str) -> None:
        """An answer without a length, until the pieces or the patience of the other side end."""
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.raw(f"HTTP/1.1 200 OK\r\n{lines}Connection: close\r\n\r\n".encode())
            for piece in pieces:
                self.raw(piece)
                self.server.site.sent += len(piece)

    def _serve(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.asked = Asked(self.command, self.path, headers, self.rfile.read(length))
        site = self.server.site
        site.requests.append(self.asked)
        route = site.routes.get(self.path.partition("?")[0]) or site.routes.get("*")
        with contextlib.suppress(OSError):
            if route is None:
                self.answer("nothing here", status=404)
            else:
                route(self)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _serve  # noqa: N815

    def log_message(self, *_: Any) -> None:
        return


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    site: "TrapSite"

    def handle_error(self, *_: Any) -> None:
        return  # the other side hanging up is what many tests are about


Route = Callable[[Exchange], None]


@dataclass
class TrapSite:
    """Routes by path; `*` takes what no other does."""

    routes: dict[str, Route] = field(default_factory=dict)
    requests: list[Asked] = field(default_factory=list)
    #: Bytes of streamed bodies that the other side took.
    sent: int = 0
    #: Names given in TLS handshakes.
    names: list[str | None] = field(default_factory=list)
    port: int = 0
    scheme: str = "http"

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"{self.scheme}://{host}:{self.port}{path}"

    @property
    def paths(self) -> list[str]:
        return [asked.path for asked in self.requests]

    def page(self, path: str, body: bytes | str, **how: Any) -> None:
        """A fixed answer at a path."""
        self.routes[path] = lambda exchange: exchange.answer(body, **how)

    def leads(self, path: str, to: str, status: int = 302) -> None:
        self.routes[path] = lambda exchange: exchange.redirect(to, status)


@contextlib.contextmanager
def serving(tls: ssl.SSLContext | None = None) -> Iterator[TrapSite]:
    """A site on a free port of loopback."""
    site = TrapSite()
    server = _Server(("127.0.0.1", 0), Exchange)
    server.site, site.port = site, server.server_port
    if tls is not None:
        site.scheme = "https"
        tls.sni_callback = lambda _socket, name, _context: site.names.append(name)
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()


@dataclass
class Listener:
    """A port that takes connections and says nothing, or what it is told to."""

    port: int
    connections: list[socket.socket] = field(default_factory=list)


@contextlib.contextmanager
def listening(greet: Callable[[socket.socket], None] = lambda _: None) -> Iterator[Listener]:
    """A raw TCP server on loopback; counts who came."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        listener = Listener(server.getsockname()[1])

        def serve() -> None:
            while True:
                try:
                    peer, _ = server.accept()
                except OSError:
                    return
                listener.connections.append(peer)
                threading.Thread(target=_greet, args=(greet, peer), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        yield listener
        server.shutdown(socket.SHUT_RDWR)
    for peer in listener.connections:
        peer.close()


def _greet(greet: Callable[[socket.socket], None], peer: socket.socket) -> None:
    with contextlib.suppress(OSError):
        greet(peer)
