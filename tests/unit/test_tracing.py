"""What asks for traces, and what they cost where nobody does."""

import time

import pytest
from sqlalchemy import select

from orchestrator import calls, threads, tracing
from orchestrator.settings import Settings
from orchestrator.store import requests
from orchestrator.store.database import get_database
from orchestrator.store.tables import runs
from registry.agents import AgentDefinition
from registry.skills import catalogue
from tests.telemetry import remembered
from workers import calling

HERE = "http://127.0.0.1:4318"
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.mark.parametrize(
    ("environment", "asks"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": HERE}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": HERE}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": HERE, "OTEL_SDK_DISABLED": "true"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": HERE, "OTEL_TRACES_EXPORTER": "none"}, False),
        ({"OTEL_TRACES_EXPORTER": "console"}, True),
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, False),
    ],
)
def test_the_standard_variables_ask_for_traces(environment: dict[str, str], asks: bool) -> None:
    assert tracing.wanted(environment) is asks


def test_a_span_that_nobody_wants_is_nothing_and_costs_next_to_nothing() -> None:
    assert not tracing.on()
    with tracing.span("x", attributes={"a": 1}) as span:
        assert (span.recording, span.context) == (False, None)

    spans = 20_000
    begun = time.process_time()
    for _ in range(spans):
        with tracing.span("x"):
            pass
    each = (time.process_time() - begun) / spans

    assert each < 0.000_02, f"{each * 1e6:.1f} microseconds: a step takes thousands of them, and has three spans"


def test_a_span_hangs_under_the_stored_parent_and_gives_what_can_be_stored() -> None:
    with remembered() as memory:
        with tracing.span("outer", parent=PARENT) as outer:
            stored = outer.context
        with tracing.span("later", parent=stored, links={PARENT: "before"}):
            pass

    first, later = memory.spans
    assert (first.trace_id, first.parent) == ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")
    assert stored == f"00-{first.trace_id}-{first.id}-01"
    assert (later.trace_id, later.parent, later.links) == (first.trace_id, first.id, {"b7ad6b7169203331": "before"})


@pytest.mark.parametrize("stored", ["", "nonsense", "00-0-0-01", "00-" + "0" * 32 + "-" + "0" * 16 + "-01"])
def test_a_stored_parent_that_is_none_begins_a_trace(stored: str) -> None:
    with remembered() as memory, tracing.span("x", parent=stored):
        pass

    assert memory.spans.one("x").parent == ""


def test_an_error_is_told_by_its_code_and_never_by_its_words() -> None:
    with remembered() as memory, pytest.raises(ValueError, match="secret"), tracing.span("x"):
        raise ValueError("a secret")

    span = memory.spans.one("x")
    assert (span.failed, span.attributes) == (True, {"error.type": "ValueError"})


def test_a_wait_is_written_when_it_is_over() -> None:
    with remembered() as memory:
        tracing.past("approval", 1_000, 61_000, parent=PARENT, attributes={"officina.signal.kind": "decision"})

    waited = memory.spans.one("approval")
    assert (waited.seconds, waited.parent) == (60, "b7ad6b7169203331")


def test_a_run_of_a_conversation_hangs_under_whoever_sent_the_message(settings: Settings) -> None:
    ada = AgentDefinition.model_validate({"id": "ada", "instructions": "Talk."})
    thread_id = threads.create(settings, threads.Voice(ada, "own"))
    with remembered(), tracing.span("a web page") as page:
        sent = threads.send(settings, thread_id, "Hello.")
        asking = page.context

    with get_database(settings).read() as connection:
        assert connection.scalar(select(runs.c.trace_parent).where(runs.c.id == sent.run_id)) == asking


def test_a_call_that_somebody_asks_for_hangs_under_the_asking_wherever_it_is_made(settings: Settings) -> None:
    settings = settings.model_copy(update={"broker_url": "memory://here"})
    with remembered() as memory:
        with tracing.span("a request") as request:
            asked = calls.hand_on(settings, "math.evaluate", {"expression": "6 * 7"}, within_s=9, approved=None)
            asking = request.context
        row = get_database(settings).write(lambda c: requests.claim(c, asked.id, 1_000))
        assert row is not None and row.trace_parent == asking
        wanted = calling.Call(row.skill, row.input, id=row.id, trace_parent=row.trace_parent)
        assert calling.make(settings, catalogue.build(), wanted).result.ok

    tool = memory.spans.one("execute_tool math.evaluate")
    assert tool.parent == memory.spans.one("a request").id
    assert (tool.attributes["gen_ai.tool.call.id"], tool.attributes["officina.tool.outcome"]) == (row.id, "ok")
