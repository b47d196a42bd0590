"""OpenTelemetry, where it is wanted: one trace for a project, from its submit to its last run.

Wanted is said with the standard variables (`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_TRACES_EXPORTER`, `OTEL_SDK_DISABLED`),
or by a program around Officina that set up the SDK itself. Otherwise nothing of it is even imported, and a span costs
one look at a table. Rows carry where a span hangs (a W3C `traceparent`), so that a lost message loses no trace.
"""

import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span as OtelSpan

log = logging.getLogger(__name__)

Kind = Literal["internal", "client", "producer"]
_SDK: Final = "opentelemetry.sdk.trace"
#: Seconds a process that ends waits for a collector that does not answer.
AWAY_S: Final = 3
_COMMAND: Final = "officina"
#: The name of the traces' sender, when the environment gives none.
_role = _COMMAND
#: Held while somebody hurries: a collector that is away must not gather threads.
_one_at_a_time = threading.Lock()


class Span:
    """One span; of nothing, where traces are off."""

    __slots__ = ("_span",)

    def __init__(self, span: "OtelSpan | None") -> None:
        self._span = span

    @property
    def recording(self) -> bool:
        """Whether somebody will see it: what is dear to find out is found out only then."""
        return self._span is not None and self._span.is_recording()

    @property
    def context(self) -> str | None:
        """Where others may hang under it, as a `traceparent`; None: nowhere."""
        if self._span is None:
            return None
        found = self._span.get_span_context()
        return f"00-{found.trace_id:032x}-{found.span_id:016x}-{found.trace_flags:02x}" if found.is_valid else None

    def say(self, attributes: Mapping[str, Any]) -> None:
        """Adds attributes; those that are None are none."""
        if self._span is not None:
            self._span.set_attributes({key: value for key, value in attributes.items() if value is not None})

    def fail(self, code: str) -> None:
        """It came to nothing. Only the code is told: a message may hold what somebody wrote."""
        if self._span is not None:
            from opentelemetry.trace import StatusCode

            self._span.set_attribute("error.type", code)
            self._span.set_status(StatusCode.ERROR, code)


NOTHING: Final = Span(None)


def on() -> bool:
    """Whether anybody wants spans."""
    return _started() or (_SDK in sys.modules and _somebody_listens())


def wanted(environment: Mapping[str, str]) -> bool:
    """Whether an environment asks for traces, by the standard variables."""
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    exporter = environment.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    if exporter in ("otlp", "console"):
        return True
    names = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
    return not exporter and any(environment.get(name) for name in names)


def shows_content() -> bool:
    """Whether words of models and inputs of tools may be in spans: only where the standard variable says so."""
    return os.environ.get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "").lower() in ("true", "span_only")


def start(role: str) -> None:
    """Sets up what the environment asks for, in the process that will have the spans.

    Args:
        role: what the process does; a part of its name in the traces.
    """
    global _role
    _role = f"officina-{role}"
    _started()


def flush() -> None:
    """Sends what is finished, before a process goes that will not come to its exit handlers."""
    if _SDK not in sys.modules:
        return
    sending = _sending()
    if sending is not None:
        sending.join(AWAY_S)


def hurry() -> None:
    """The same, and nobody waits: for a process that may be ended at any time between two of its jobs."""
    if _SDK in sys.modules and _one_at_a_time.acquire(blocking=False):
        _sending(_one_at_a_time.release)


def _sending(done: Callable[[], None] = lambda: None) -> threading.Thread | None:
    """A thread that sends what is finished, under way; None: there is nothing to send with."""
    from opentelemetry import trace

    send = getattr(trace.get_tracer_provider(), "force_flush", None)
    if send is None:
        done()
        return None

    def work() -> None:
        try:
            send()
        finally:
            done()

    found = threading.Thread(target=work, name="spans", daemon=True)
    found.start()
    return found


def current() -> str | None:
    """The `traceparent` of the span under way in this thread; None: there is none."""
    if not on():
        return None
    from opentelemetry import trace

    return Span(trace.get_current_span()).context


@contextmanager
def span(
    name: str,
    *,
    kind: Kind = "internal",
    parent: str | None = None,
    links: Mapping[str, str] | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> Iterator[Span]:
    """Around what a span shows; inside, it is the current one of its thread.

    Args:
        parent: a `traceparent` it hangs under; None: under the current span, if there is one.
        links: a `traceparent` it follows, and what that is to it.
        attributes: what is known at its beginning; None is none.
    """
    if not on():
        yield NOTHING
        return
    from opentelemetry.trace import use_span

    begun = _begin(name, kind=kind, parent=parent, links=links, attributes=attributes)
    with use_span(begun, end_on_exit=True, record_exception=False, set_status_on_exception=False):
        mine = Span(begun)
        try:
            yield mine
        except Exception as error:
            mine.fail(str(getattr(error, "code", None) or type(error).__name__))
            raise


def past(
    name: str,
    begun_ms: int,
    ended_ms: int | None,
    *,
    parent: str | None,
    attributes: Mapping[str, Any] | None = None,
) -> None:
    """A span of what is over, that no process was busy with: a wait for a person, or for children.

    Args:
        begun_ms: epoch milliseconds.
        ended_ms: the same; None: now.
    """
    if not on():
        return
    begun = _begin(name, parent=parent, attributes=attributes, start_ns=begun_ms * 1_000_000)
    begun.end(None if ended_ms is None else max(begun_ms, ended_ms) * 1_000_000)


def _begin(
    name: str,
    *,
    kind: Kind = "internal",
    parent: str | None = None,
    links: Mapping[str, str] | None = None,
    attributes: Mapping[str, Any] | None = None,
    start_ns: int | None = None,
) -> "OtelSpan":
    from opentelemetry import trace

    found = [
        trace.Link(trace.get_current_span(_context(other)).get_span_context(), {"officina.link": word})
        for other, word in (links or {}).items()
    ]
    return trace.get_tracer("officina", _version()).start_span(
        name,
        context=_context(parent) if parent else None,
        kind=trace.SpanKind[kind.upper()],
        attributes={key: value for key, value in (attributes or {}).items() if value is not None},
        links=found,
        start_time=start_ns,
    )


def _context(parent: str) -> "Context":
    """What a stored `traceparent` stands for; nothing, where it is no such thing."""
    from opentelemetry.context import Context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    return TraceContextTextMapPropagator().extract({"traceparent": parent}, Context())


def _patience() -> float | None:
    """Seconds one parcel may take: a command does not keep a person waiting; None: what is usual, or set."""
    names = ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT")
    return None if _role != _COMMAND or any(map(os.environ.get, names)) else AWAY_S


def _somebody_listens() -> bool:
    """Whether a program around us has set the SDK up, and did not only load it."""
    from opentelemetry import trace

    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


@lru_cache(maxsize=1)
def _version() -> str:
    return version("officina")


@lru_cache(maxsize=1)
def _started() -> bool:
    """Sets the SDK up once, if the environment asks for it; what is set up already stays as it is."""
    if not wanted(os.environ):
        return False
    try:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter
    except ImportError:
        log.warning("traces are asked for, and nothing can send them: pip install 'officina[otel]'")
        return False
    from opentelemetry import trace

    if _somebody_listens():
        return True
    exporter: SpanExporter
    if os.environ.get("OTEL_TRACES_EXPORTER", "").strip().lower() == "console":
        exporter = ConsoleSpanExporter(out=sys.stderr)
    else:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        exporter = OTLPSpanExporter(timeout=_patience())
    found = Resource.create({"service.version": _version()})
    if str(found.attributes.get("service.name", "unknown_service")).startswith("unknown_service"):
        found = found.merge(Resource({"service.name": _role}))
    provider = TracerProvider(resource=found)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return True
