"""Spans as tests see them: of this process, kept in memory, and of other processes, sent to a receiver on loopback."""

import gzip
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


@dataclass(frozen=True)
class Seen:
    """A finished span."""

    name: str
    trace_id: str
    id: str
    #: Empty: the first of its trace.
    parent: str
    #: INTERNAL, CLIENT, PRODUCER or SERVER.
    kind: str
    #: Epoch nanoseconds.
    begun: int
    ended: int
    failed: bool
    attributes: dict[str, Any] = field(default_factory=dict)
    #: Span id -> what it is to this one.
    links: dict[str, Any] = field(default_factory=dict)
    #: Whose process it was.
    service: str = ""

    @property
    def seconds(self) -> float:
        return (self.ended - self.begun) / 1e9


class Spans(Sequence[Seen]):
    """Finished spans in the order of their beginning."""

    def __init__(self, found: Sequence[Seen]) -> None:
        self._found = sorted(found, key=lambda span: span.begun)

    def __getitem__(self, index: Any) -> Any:
        return self._found[index]

    def __len__(self) -> int:
        return len(self._found)

    def named(self, name: str) -> list[Seen]:
        """Those of a name, or whose name begins so where it ends in a blank."""
        return [s for s in self._found if s.name == name or (name.endswith(" ") and s.name.startswith(name))]

    def one(self, name: str) -> Seen:
        (found,) = self.named(name)
        return found

    def below(self, parent: Seen) -> list[str]:
        return [span.name for span in self._found if span.parent == parent.id]


class Memory:
    """What this process has finished so far."""

    def __init__(self, exporter: InMemorySpanExporter) -> None:
        self._exporter = exporter

    @property
    def spans(self) -> Spans:
        return Spans([_of_sdk(span) for span in self._exporter.get_finished_spans()])


@contextmanager
def remembered() -> Iterator[Memory]:
    """Spans of this process are kept for as long as this lasts."""
    exporter, before = InMemorySpanExporter(), trace._TRACER_PROVIDER
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace._TRACER_PROVIDER = provider
    try:
        yield Memory(exporter)
    finally:
        trace._TRACER_PROVIDER = before


class Receiver(ThreadingHTTPServer):
    """An OTLP collector of traces over HTTP that keeps what it gets; `url` is what senders are told."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self._lock = threading.Lock()
        self._spans: list[Seen] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def spans(self) -> Spans:
        with self._lock:
            return Spans(list(self._spans))

    def take(self, body: bytes) -> None:
        asked = ExportTraceServiceRequest.FromString(body)
        found = [
            _of_wire(span, _attributes(resource.resource.attributes))
            for resource in asked.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]
        with self._lock:
            self._spans += found


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        assert self.path == "/v1/traces", self.path
        self.server.take(body)
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Silent."""


def _of_sdk(span: Any) -> Seen:
    return Seen(
        name=span.name,
        trace_id=f"{span.context.trace_id:032x}",
        id=f"{span.context.span_id:016x}",
        parent=f"{span.parent.span_id:016x}" if span.parent else "",
        kind=span.kind.name,
        begun=span.start_time,
        ended=span.end_time,
        failed=not span.status.is_ok and not span.status.is_unset,
        attributes=dict(span.attributes),
        links={f"{link.context.span_id:016x}": link.attributes["officina.link"] for link in span.links},
    )


def _of_wire(span: Any, resource: dict[str, Any]) -> Seen:
    return Seen(
        name=span.name,
        trace_id=span.trace_id.hex(),
        id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        kind=span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_"),
        begun=span.start_time_unix_nano,
        ended=span.end_time_unix_nano,
        failed=span.status.code == 2,
        attributes=_attributes(span.attributes),
        links={link.span_id.hex(): _attributes(link.attributes).get("officina.link") for link in span.links},
        service=resource["service.name"],
    )


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    return [_value(item) for item in value.array_value.values] if kind == "array_value" else getattr(value, kind)
