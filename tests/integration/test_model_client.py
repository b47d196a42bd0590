"""The model client against real servers on loopback that answer well, badly, slowly or not at all."""

import json
import multiprocessing
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

from orchestrator.settings import Model, Settings
from registry import masking
from tests.stub_model import StubModel
from tests.telemetry import remembered
from workers.models import client as client_module
from workers.models import pools
from workers.models.client import OpenAIClient
from workers.models.model import ModelFault, Request, Tool
from workers.models.turns import turns_at

KEY = "sk-canary-1234567890"
TOOLS = [
    Tool("files__read", "Reads.", {"type": "object", "properties": {"path": {"type": "string"}}}),
    Tool("web.search", "Searches.", {"type": "object"}),
]


@pytest.fixture(scope="module")
def running_server():
    with HTTPServer(host="127.0.0.1", port=0, threaded=True) as found:
        yield found


@pytest.fixture
def server(running_server):
    running_server.clear()
    return running_server


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    monkeypatch.setattr(client_module, "FIRST_WAIT_S", 0.01)
    monkeypatch.setattr(pools, "_pools", pools._Pools())
    turns_at.cache_clear()


def settings(server, *, fast=None, key=KEY, **more):
    models = {"standard": Model(name="main-model", **more)}
    if fast:
        models["fast"] = Model(name="spare-model", base_url=fast)
    return Settings(_env_file=None, models=models, model_base_url=server.url_for("/v1"), model_api_key=key)


def said(text="Hello.", *, calls=(), finish=None, usage=(10, 5), **message):
    listed = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for call_id, name, arguments in calls
    ]
    message = {"role": "assistant", "content": text, **({"tool_calls": listed} if listed else {}), **message}
    counts = {"prompt_tokens": usage[0], "completion_tokens": usage[1]} if usage else None
    choice = {"index": 0, "message": message, "finish_reason": finish or ("tool_calls" if listed else "stop")}
    return {"id": "x", "object": "chat.completion", "choices": [choice], "usage": counts}


def answers(server, *replies):
    """The server gives these in turn, the last one for ever; returns the list of bodies it received."""
    received = []

    def handler(request):
        received.append(request.get_json())
        reply = replies[min(len(received), len(replies)) - 1]
        return reply if isinstance(reply, Response) else Response(json.dumps(reply), content_type="application/json")

    server.expect_request("/v1/chat/completions", method="POST").respond_with_handler(handler)
    return received


def refusal(status, message="no", **headers):
    error = {"error": {"message": message, **headers.pop("error", {})}}
    return Response(json.dumps(error), status, {name.replace("_", "-"): value for name, value in headers.items()})


def ask(found, **more):
    request = {"tier": "standard", "messages": [{"role": "user", "content": "Hi."}], "tools": TOOLS, **more}
    return OpenAIClient(found).generate(Request(**request))


def fault(found, **more):
    with pytest.raises(ModelFault) as caught:
        ask(found, **more)
    assert KEY not in caught.value.message
    return caught.value


def test_an_answer_comes_back_with_words_calls_usage_and_price(server):
    received = answers(
        server,
        said("Reading.", calls=[("c1", "files__read", '{"path": "a.md"}'), ("c2", "web__search", '{"query": "b"}')]),
    )
    reply = ask(settings(server, input_price=2, output_price=10))
    assert (reply.text, reply.finish_reason, reply.model) == ("Reading.", "tool-calls", "main-model")
    assert [(call.id, call.name, call.arguments) for call in reply.calls] == [
        ("c1", "files__read", {"path": "a.md"}),
        ("c2", "web.search", {"query": "b"}),
    ]
    assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.estimated) == (10, 5, False)
    assert reply.cost_micro == 70
    assert [tool["function"]["name"] for tool in received[0]["tools"]] == ["files__read", "web__search"]


def test_the_key_and_nothing_of_the_environment_is_sent(server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-someone-else")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-canary")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/")
    answers(server, said())
    ask(settings(server))
    sent = server.log[0][0].headers
    assert sent["Authorization"] == f"Bearer {KEY}"
    assert "org-canary" not in str(sent)


def test_a_local_server_needs_no_key(server):
    answers(server, said())
    assert ask(settings(server, key=None)).text == "Hello."


def test_an_unknown_price_is_none_and_not_free(server):
    answers(server, said())
    assert ask(settings(server)).cost_micro is None


@pytest.mark.parametrize("usage", [None, (0, 0), ("many", 5), (-3, 5), (True, 5)])
def test_missing_or_odd_usage_is_estimated_and_says_so(server, usage):
    answers(server, said("x" * 40, usage=usage))
    found = ask(settings(server)).usage
    assert found.estimated
    assert (found.input_tokens > 0, found.output_tokens) == (True, 10)


def test_names_nobody_offered_and_arguments_that_are_no_object_stay_as_written(server):
    calls = [
        ("", "no such tool", "{}"),
        ("c2", "files__read", '{"path": '),
        ("c3", "files__read", "[1]"),
        ("c4", "files__read", '{"a": 1, "a": 2}'),
        ("c5", "files__read", ""),
    ]
    answers(server, said(None, calls=calls))
    reply = ask(settings(server))
    assert [(call.id, call.name, call.arguments) for call in reply.calls] == [
        (None, "no such tool", {}),
        ("c2", "files__read", '{"path": '),
        ("c3", "files__read", "[1]"),
        ("c4", "files__read", '{"a": 1, "a": 2}'),
        ("c5", "files__read", {}),
    ]


def test_calls_cut_off_by_the_length_limit_are_dropped(server):
    whole, cut, bare = (
        ("a", "files__read", '{"path": "a"}'),
        ("b", "files__read", '{"path": "b'),
        ("c", "files__read", ""),
    )
    answers(server, said(None, calls=[whole, cut], finish="length"), said("half", calls=[bare], finish="length"))
    found = settings(server)
    first, second = ask(found), ask(found)
    assert ([call.id for call in first.calls], first.finish_reason) == (["a"], "tool-calls")
    assert (second.calls, second.finish_reason, second.text) == ([], "length", "half")


def test_what_no_database_takes_is_replaced(server):
    body = said("a\x00b", calls=[("c", "files__read", '{"path": "\\ud800\\u0000"}')])
    answers(
        server, Response(json.dumps(body).replace("a\\u0000b", "a\\u0000\\udfffb"), content_type="application/json")
    )
    reply = ask(settings(server))
    assert reply.text == "a\ufffd\ufffdb"
    assert reply.calls[0].arguments == {"path": "\ufffd\ufffd"}


def test_text_that_cannot_be_sent_is_replaced_too(server):
    received = answers(server, said())
    ask(settings(server), messages=[{"role": "user", "content": "a\ud800"}])
    assert received[0]["messages"][-1]["content"] == "a\ufffd"


def test_other_shapes_of_the_same_answer_are_understood(server):
    parts = [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]
    answers(
        server,
        said(parts, reasoning_content="because"),
        said(None, refusal="I will not."),
        said("x", finish="content_filter"),
    )
    found = settings(server)
    first, second, third = ask(found), ask(found), ask(found)
    assert (first.text, first.reasoning) == ("ab", "because")
    assert (second.text, second.finish_reason) == ("I will not.", "stop")
    assert third.finish_reason == "content-filter"


@pytest.mark.parametrize("status", [429, 500, 502, 503, 529])
def test_what_may_pass_is_tried_again_quickly(server, status):
    received = answers(server, refusal(status), refusal(status), said())
    assert ask(settings(server)).text == "Hello."
    assert len(received) == 3


@pytest.mark.parametrize(
    "body", ["<html>busy</html>", "[]", "{}", '{"choices": []}', '{"choices": [{}]}', '{"error": {"message": "x"}}']
)
def test_a_body_that_is_no_answer_is_tried_again_and_then_may_pass(server, body):
    received = answers(server, Response(body, content_type="application/json"))
    found = fault(settings(server))
    assert (found.passing, found.code, len(received)) == (True, "model_failed", 3)
    assert "main-model" in found.message and "no usable answer" in found.message


def test_retry_after_is_waited_for(server):
    received = answers(server, refusal(429, Retry_After="1"), said())
    begun = time.monotonic()
    ask(settings(server))
    assert time.monotonic() - begun >= 1
    assert len(received) == 2


def test_a_long_retry_after_is_handed_on_instead_of_held(server):
    received = answers(server, refusal(429, Retry_After="45"))
    begun = time.monotonic()
    found = fault(settings(server))
    assert (found.passing, found.retry_after, len(received)) == (True, 45, 1)
    assert time.monotonic() - begun < 5


@pytest.mark.parametrize(
    ("status", "error", "words"),
    [
        (400, {}, "refused"),
        (401, {}, "OFFICINA_MODEL_API_KEY"),
        (403, {}, "rights"),
        (404, {}, "name and the base URL"),
        (400, {"code": "context_length_exceeded"}, "too long"),
        (400, {"code": "content_filter"}, "content policy"),
        (429, {"code": "insufficient_quota"}, "credit"),
        (302, {}, "refused"),
    ],
)
def test_other_refusals_are_final_and_say_what_to_do(server, status, error, words):
    received = answers(server, refusal(status, f"key {KEY} and sk-other-99999", error=error, Location="/elsewhere"))
    found = fault(settings(server))
    assert (found.passing, found.code, len(received)) == (False, "model_failed", 1)
    assert "'main-model'" in found.message and str(status) in found.message and words in found.message
    assert "sk-other" not in found.message


def test_fallback_models_are_tried_in_order_after_any_failure(server):
    with StubModel([{"text": "From the spare."}]) as spare:
        received = answers(server, refusal(401))
        reply = ask(settings(server, fast=spare.url), fallback=("spare-model",))
    assert (reply.text, reply.model, len(received)) == ("From the spare.", "spare-model", 1)


def test_each_model_that_is_asked_is_a_span_with_the_server_and_nothing_secret(server):
    with remembered() as memory, StubModel([{"text": "From the spare."}]) as spare:
        answers(server, refusal(401, message="sk-other is no key"))
        ask(settings(server, fast=spare.url), fallback=("spare-model",), generation={"maxTokens": 9})

    first, second = memory.spans
    assert (first.name, first.kind, first.failed) == ("chat main-model", "CLIENT", True)
    assert (second.name, second.kind, second.failed) == ("chat spare-model", "CLIENT", False)
    assert first.attributes["error.type"] == "model_failed"
    about = second.attributes
    assert (about["gen_ai.provider.name"], about["gen_ai.operation.name"]) == ("openai", "chat")
    assert (about["server.address"], about["server.port"]) == spare.server_address
    assert (about["gen_ai.request.model"], about["gen_ai.request.max_tokens"]) == ("spare-model", 9)
    assert about["gen_ai.response.finish_reasons"] == ("stop",)
    assert "officina.cost_usd" not in about, "nobody knows its price"
    told = str([span.attributes for span in memory.spans])
    assert [word for word in ("sk-other", "Hi.", "From the spare", KEY) if word in told] == []


def test_when_all_models_fail_the_fault_names_each_and_may_pass_if_one_may(server):
    with StubModel([{"fail": {"status": 403, "times": 99}}]) as spare:
        answers(server, refusal(503, Retry_After="30"))
        found = fault(settings(server, fast=spare.url), fallback=("fast", "no-such-model"))
    assert (found.passing, found.retry_after) == (True, 30)
    assert "main-model" in found.message and "spare-model" in found.message


def test_a_server_that_is_not_there_may_pass(server):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        found = fault(settings(server, base_url=url))
    assert found.passing
    assert "cannot be reached" in found.message


def test_a_server_that_hangs_up_in_the_middle_may_pass(server):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        stop = threading.Event()
        thread = threading.Thread(target=_half_answers, args=(listener, stop))
        thread.start()
        found = fault(settings(server, base_url=f"http://127.0.0.1:{listener.getsockname()[1]}/v1"), timeout_s=10)
        stop.set()
        thread.join()
    assert found.passing


def _half_answers(listener, stop):
    listener.settimeout(0.1)
    while not stop.is_set():
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            continue
        with connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")


def test_the_deadline_covers_silence(server):
    with StubModel([{"text": "late", "delayMs": 3_000}]) as slow:
        begun = time.monotonic()
        found = fault(settings(server, base_url=slow.url), timeout_s=0.5)
    assert found.passing and "in time" in found.message
    assert time.monotonic() - begun < 2.5


def test_the_deadline_covers_an_answer_that_trickles(server):
    def trickle():
        yield b'{"choices": ['
        for _ in range(100):
            time.sleep(0.1)
            yield b" "

    answers(server, Response(trickle(), content_type="application/json"))
    begun = time.monotonic()
    found = fault(settings(server), timeout_s=0.6)
    assert found.passing
    assert time.monotonic() - begun < 3


def test_the_deadline_covers_retries_and_their_waits(server):
    received = answers(server, refusal(503, Retry_After="3"))
    begun = time.monotonic()
    found = fault(settings(server), timeout_s=1)
    assert (found.passing, len(received)) == (True, 1)
    assert time.monotonic() - begun < 1


def test_a_cancelled_run_hangs_up_while_the_model_is_silent(server):
    with StubModel([{"text": "late", "delayMs": 20_000}]) as slow:
        stop = threading.Event()
        threading.Timer(0.3, stop.set).start()
        begun = time.monotonic()
        found = fault(settings(server, base_url=slow.url), cancelled=stop.is_set)
    assert found.passing
    assert time.monotonic() - begun < 5


def test_an_answer_without_end_is_cut(server, monkeypatch):
    from workers.models import wire

    monkeypatch.setattr(wire, "MAX_BYTES", 100_000)
    answers(server, said("x" * 200_000))
    found = fault(settings(server))
    assert found.passing and "too long" in found.message


@pytest.mark.parametrize(
    ("error", "first", "second"),
    [
        (
            {
                "message": "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
                "param": "max_tokens",
            },
            {"max_tokens", "temperature"},
            {"max_completion_tokens", "temperature"},
        ),
        (
            {
                "message": "This value is not supported with this model",
                "param": "temperature",
                "code": "unsupported_value",
            },
            {"max_tokens", "temperature"},
            {"max_tokens"},
        ),
        (
            {"message": "unknown field temperature"},
            {"max_tokens", "temperature"},
            {"max_tokens"},
        ),
    ],
)
def test_a_setting_a_model_does_not_know_is_left_out_from_then_on(server, error, first, second):
    received = answers(server, refusal(400, error=error), said())
    found = settings(server)
    ask(found, generation={"temperature": 0.5}, tools=[])
    ask(found, generation={"temperature": 0.5}, tools=[])
    assert [set(body) - {"model", "messages"} for body in received] == [first, second, second]


def test_a_bad_value_of_a_setting_is_not_hidden(server):
    received = answers(server, refusal(400, error={"message": "temperature must be at most 2", "param": "temperature"}))
    assert "at most 2" in fault(settings(server), generation={"temperature": 9}).message
    assert len(received) == 1


def test_a_model_that_refuses_everything_is_given_up(server):
    answers(
        server, refusal(400, error={"message": "unsupported: temperature top_p max_tokens stop max_completion_tokens"})
    )
    found = fault(settings(server), generation={"temperature": 1, "topP": 1, "stop": ["x"]})
    assert not found.passing


def test_many_threads_share_one_pool(server):
    with StubModel([{"text": "ok", "delayMs": 5}]) as busy:
        found = settings(server, base_url=busy.url)
        with ThreadPoolExecutor(16) as pool:
            replies = list(pool.map(lambda _: ask(found).text, range(200)))
        assert replies == ["ok"] * 200
        assert busy.requests == 200
        assert len(pools._pools.clients) == 1


def test_a_forked_child_makes_connections_of_its_own(server):
    # Given a parent that has used its pool
    with StubModel([{"text": "ok"}]) as stub:
        found = settings(server, base_url=stub.url)
        ask(found)
        # When a child forks and calls, and the parent calls again
        context = multiprocessing.get_context("fork")
        queue = context.SimpleQueue()
        child = context.Process(target=_child, args=(found, queue))
        child.start()
        child.join(30)
        # Then both are answered, and the child started without pools
        assert child.exitcode == 0
        assert queue.get() == (0, "ok")
        assert ask(found).text == "ok"


def _child(found, queue):
    pooled = len(pools._pools.clients)
    queue.put((pooled, ask(found).text))


def test_a_structured_answer_is_asked_for_in_words_and_as_an_object_where_no_tool_is_offered(server):
    received = answers(server, said("{}"))
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    found = settings(server)
    ask(found, output=schema, tools=[], system="Be brief.")
    ask(found, output=schema)
    ask(found, output={"type": "array"}, tools=[])
    assert received[0]["response_format"] == {"type": "json_object"}
    assert all("response_format" not in body for body in received[1:])
    assert received[0]["messages"][0]["content"].startswith("Be brief.")
    assert '"properties":{"a"' in received[0]["messages"][0]["content"]
    assert "JSON Schema" in received[1]["messages"][0]["content"]


def test_every_model_is_asked_with_its_own_key(server, monkeypatch):
    monkeypatch.setenv("SPARE_PROVIDER_KEY", "sk-spare-1234567890")
    answers(server, refusal(400), said())
    spare = {"name": "spare", "base_url": server.url_for("/v1"), "key_env": "SPARE_PROVIDER_KEY"}
    found = Settings(
        _env_file=None,
        models={"standard": Model(name="main-model", key="sk-main-1234567890")},
        more_models=[spare],
        model_base_url=server.url_for("/v1"),
        model_api_key=KEY,
    )
    assert ask(found, fallback=("spare",)).model == "spare"
    sent = [request.headers["Authorization"] for request, _ in server.log]
    assert sent == ["Bearer sk-main-1234567890", "Bearer sk-spare-1234567890"]
    assert "sk-spare" not in str(masking.mask({"text": "sk-spare-1234567890"}))


def test_a_key_that_the_environment_lacks_is_named_and_no_other_is_sent(server):
    received = answers(server, said())
    found = fault(settings(server, key_env="NOWHERE_TO_BE_FOUND"))
    assert (found.code, received) == ("model_unresolved", [])
    assert "NOWHERE_TO_BE_FOUND" in found.message


def test_a_call_beyond_the_limit_of_its_model_is_not_sent(server):
    received = answers(server, said())
    found = settings(server, requests_per_minute=1)
    ask(found)
    held = fault(found)
    assert (held.held, held.passing, len(received)) == (True, True, 1)
    assert 3 < held.retry_after <= 61


def test_a_call_whose_turn_comes_in_moments_waits_for_it(server):
    received = answers(server, said())
    found = settings(server, requests_per_minute=60)
    turns = turns_at(None)
    waits = iter([0.02, 0])
    turns.take = lambda *_: next(waits)
    ask(found)
    assert len(received) == 1


def test_the_next_model_answers_where_the_first_has_no_turn_left(server):
    answers(server, said())
    found = settings(server, requests_per_minute=1, fast=server.url_for("/v1"))
    assert ask(found, fallback=("fast",)).model == "main-model"
    assert ask(found, fallback=("fast",)).model == "spare-model"


def test_no_call_follows_one_that_was_told_to_wait(server):
    received = answers(server, refusal(429, Retry_After="45"))
    found = settings(server)
    fault(found)
    again = fault(found)
    assert (again.held, len(received)) == (True, 1)
    assert again.retry_after > 40


def test_an_answer_that_took_the_last_of_a_minute_holds_the_next_call(server):
    headers = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "30s"}
    received = answers(server, Response(json.dumps(said()), headers=headers, content_type="application/json"))
    found = settings(server)
    ask(found)
    assert (fault(found).held, len(received)) == (True, 1)


def listened(found, heard, **more):
    return ask(found, hear=lambda piece, text: heard.append((piece, text)), **more)


def stubbed(stub, **more):
    return Settings(_env_file=None, models={"standard": Model(name="main-model", base_url=stub.url, **more)})


def test_an_answer_is_heard_while_it_comes_and_is_the_same_as_a_whole_one():
    turn = {"text": "Reading it now.", "reasoning": "Which one?", "calls": [{"name": "files__read", "args": {"a": 1}}]}
    with StubModel([turn]) as stub:
        heard = []
        streamed, whole = listened(stubbed(stub), heard), ask(stubbed(stub))
        assert [body.get("stream") for body in stub.latest] == [True, None]
    assert "".join(text for piece, text in heard if piece == "text") == streamed.text == whole.text
    assert [(c.name, c.arguments) for c in streamed.calls] == [(c.name, c.arguments) for c in whole.calls]
    assert (streamed.finish_reason, streamed.usage.estimated) == (whole.finish_reason, False)
    assert streamed.reasoning == "Which one?"
    assert heard[0] == ("again", "")


def test_a_streamed_answer_may_hold_what_other_texts_end_lines_with():
    text = "one\u2028two\u2029three\u0085four"
    with StubModel([{"text": text}]) as stub:
        assert listened(stubbed(stub), []).text == text


def test_a_model_that_does_not_stream_answers_all_the_same():
    with StubModel([{"text": "As a whole.", "stream": False}]) as stub:
        heard = []
        assert listened(stubbed(stub), heard).text == "As a whole."
        assert heard == [("again", "")]


def test_a_model_that_refuses_to_stream_is_asked_without_it_from_then_on(server):
    received = answers(server, refusal(400, "stream is not supported by this model"), said())
    found, heard = settings(server), []
    assert listened(found, heard).text == "Hello."
    listened(found, heard)
    assert [("stream" in body, "stream_options" in body) for body in received] == [
        (True, True),
        (False, False),
        (False, False),
    ]


def test_the_settings_can_say_that_a_model_does_not_stream():
    with StubModel() as stub:
        listened(stubbed(stub, stream=False), [])
        assert "stream" not in stub.latest[0]


def test_a_stream_that_breaks_off_is_tried_again_and_heard_anew(server):
    half = 'data: {"choices": [{"delta": {"content": "Hal"}}]}\n\n'
    answers(server, Response(half, content_type="text/event-stream"), said())
    heard = []
    assert listened(settings(server), heard).text == "Hello."
    assert heard == [("again", ""), ("text", "Hal"), ("again", "")]


def test_a_cancelled_run_hangs_up_in_the_middle_of_a_stream():
    stop = threading.Event()
    with StubModel([{"text": "word " * 500, "pieceMs": 50}]) as stub:
        begun = time.monotonic()

        def hear(_piece, text):
            if text:
                stop.set()

        with pytest.raises(ModelFault, match="stopped"):
            ask(stubbed(stub), hear=hear, cancelled=stop.is_set)
        assert time.monotonic() - begun < 2


def test_a_stream_without_an_end_is_left_at_the_deadline():
    with StubModel([{"text": "word " * 500, "pieceMs": 50}]) as stub, pytest.raises(ModelFault) as caught:
        listened(stubbed(stub), [], timeout_s=1)
    assert (caught.value.passing, caught.value.late) == (True, True)


@pytest.mark.parametrize("streamed", [False, True])
def test_the_sdk_walks_through_no_history_and_the_server_gets_all_of_it(server, monkeypatch, streamed):
    from openai.resources.chat.completions import completions

    seen, look = [], completions.maybe_transform
    monkeypatch.setattr(completions, "maybe_transform", lambda data, kind: seen.append(data) or look(data, kind))
    received = answers(server, said("Hello."))
    history = [{"role": "user", "content": f"line {n}"} for n in range(50)]
    hear = {"hear": lambda *_: None} if streamed else {}
    request = Request(tier="standard", system="Be brief.", messages=history, tools=TOOLS, **hear)

    OpenAIClient(settings(server)).generate(request)

    assert all(data["messages"] == [] for data in seen), "what grows with a run is none of its business"
    assert len(seen) == streamed, "and a whole answer is asked for without it"
    assert [message["content"] for message in received[0]["messages"]] == [
        "Be brief.",
        *(m["content"] for m in history),
    ]
    assert len(received[0]["tools"]) == len(TOOLS)
    assert not {"timeout", "extra_body"} & set(received[0])


def test_a_whole_answer_is_asked_for_with_the_head_that_the_sdk_sends(server, monkeypatch):
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-somebody-else")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "x-ours: yes")
    heads = []

    def handler(request):
        heads.append({name.lower(): value for name, value in request.headers.items()})
        return Response(json.dumps(said()), content_type="application/json")

    server.expect_request("/v1/chat/completions").respond_with_handler(handler)
    client = OpenAIClient(settings(server))
    client.generate(Request(tier="standard"))
    client.generate(Request(tier="standard", hear=lambda *_: None))
    direct, sdk = heads
    of_a_call = {"content-length", "x-stainless-retry-count", "x-stainless-read-timeout", "x-stainless-raw-response"}
    assert direct["authorization"] == f"Bearer {KEY}"
    assert direct["x-ours"] == "yes"
    assert {name: value for name, value in direct.items() if name not in of_a_call} == {
        name: value for name, value in sdk.items() if name not in of_a_call
    }
