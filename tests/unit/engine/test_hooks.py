"""Hooks: what they hear, what they may bring about, and what they never can."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.limits import Limits
from registry.graph.validation import validate
from registry.hooks import MAX_TEXT, Effects, MatcherFault, matcher, take
from tests.traps import Exchange, TrapSite, listening, serving
from tests.unit.engine.stages import Played, call, installed, play
from workers.inprocess.stage import Stage
from workers.net.guard import Guard
from workers.sandbox.process import NoSandbox, find_sandbox

TOOLS: dict[str, Any] = {
    "save": {
        "returns": {"saved": True},
        "operations": ["fs.write"],
        "schema": {
            "type": "object",
            "properties": {"path": {"type": "string"}},
            "required": ["path"],
            "additionalProperties": False,
        },
    },
    "look": {"returns": {"found": 1}, "effect": "pure"},
    "broken": {"raises": "no such drawer"},
}
ALLOW = {"fs.write": "allow"}

PLUGINS = """
import time

heard = []

def listen(payload):
    heard.append(payload)

def block(payload):
    heard.append(payload)
    return {"block": "not on my watch"}

def other_path(payload):
    heard.append(payload)
    return {"updateInput": {"path": "safe.txt"}}

def bad_path(payload):
    return {"updateInput": {"path": 7}}

def mask(payload):
    return {"updateOutput": {"masked": True}}

def remember(payload):
    return {"context": f"remember {payload['event']}"}

def vandal(payload):
    payload["input"]["path"] = "elsewhere"

def fail(payload):
    raise LookupError("lost")

def hang(payload):
    time.sleep(60)

def odd(payload):
    return {"allow": True, "permissionDecision": "allow", "block": ""}

def no_json(payload):
    return {"context": object()}

not_callable = 1
"""


NAMES = (
    "listen", "block", "other_path", "bad_path", "mask", "remember", "vandal", "fail", "hang", "odd", "no_json",
    "not_callable", "gone",
)  # fmt: skip


@pytest.fixture
def heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    """What the listeners of an installed package heard."""
    with installed(tmp_path, monkeypatch, PLUGINS, *NAMES) as package:
        yield package.heard


def hook(event: str, name: str, **fields: Any) -> dict[str, Any]:
    return {"event": event, "handler": {"plugin": name}} | fields


def run(hooks: list[dict[str, Any]], turns: list[Any], **fields: Any) -> Played:
    """An agent with these hooks, which may write files."""
    script = {key: fields.pop(key) for key in ("answers", "agents", "mode", "prepare", "limits") if key in fields}
    agent = {"id": "ada", "instructions": "Work.", "permissions": ALLOW, "hooks": hooks} | fields
    return play(agent, turns, tools=TOOLS, input=fields.pop("input", "Begin."), **script)


SAVE = [call("save", path="a.txt")]


@pytest.mark.parametrize(
    ("text", "hits", "misses"),
    [
        (None, ["anything", ""], []),
        ("*", ["anything"], []),
        ("web.fetch", ["web.fetch"], ["webxfetch", "web.fetch2"]),
        ("web__fetch", ["web.fetch"], ["web.search"]),
        ("save, look|web.fetch", ["save", "look", "web.fetch"], ["sav", "save, look"]),
        ("web\\..*", ["web.fetch", "web."], ["a web.fetch", "web"]),
        ("(save|look)", ["save"], ["saved", "unsave"]),
        ("^sa", [], ["save"]),
    ],
)
def test_a_matcher_is_all_names_or_a_whole_expression(text: str | None, hits: list[str], misses: list[str]) -> None:
    matches = matcher(text)

    assert [each for each in hits if not matches(each)] == []
    assert [each for each in misses if matches(each)] == []


@pytest.mark.parametrize("text", ["(", "(?=a)b", "a{1001}+", "((a{100}){100})?"])
def test_an_expression_that_cannot_be_read_says_why(text: str) -> None:
    with pytest.raises(MatcherFault, match=r"RE2|too large"):
        matcher(text)


def test_no_subject_makes_a_matcher_slow() -> None:
    assert not matcher("(a*)*(b|a*)*c!")("a" * 100_000)


def test_answers_beyond_what_an_event_honours_are_ignored_and_named() -> None:
    effects = Effects()

    ignored = take(effects, "NodeStart", {"block": "no", "allow": True})

    assert effects == Effects()
    assert ignored == ["'block' has no effect on NodeStart", "'allow' has no effect on NodeStart"]


def test_texts_are_cut_and_a_refusal_without_words_is_a_refusal() -> None:
    effects = Effects()

    take(effects, "PreToolUse", {"block": True, "updateInput": None})
    assert (effects.block, effects.updates) == ("no reason given", {})
    take(effects, "PreToolUse", {"block": "x" * 20_000})
    assert effects.block is not None
    assert len(effects.block) == MAX_TEXT


def test_every_event_of_a_run_is_told_in_order_with_its_ids(heard: list[dict[str, Any]]) -> None:
    names = [
        "SessionStart", "SessionEnd", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PreModelCall", "PostModelCall",
        "NodeStart", "NodeEnd", "Stop",
    ]  # fmt: skip

    played = run([hook(name, "listen") for name in names], [SAVE, "Done."])

    assert played.status == "completed"
    assert [each["event"] for each in heard] == [
        "SessionStart",
        "NodeStart", "UserPromptSubmit", "NodeEnd",
        "NodeStart", "PreModelCall", "PostModelCall", "NodeEnd",
        "NodeStart", "PreToolUse", "PostToolUse", "NodeEnd",
        "NodeStart", "PreModelCall", "PostModelCall", "NodeEnd",
        "Stop", "SessionEnd",
    ]  # fmt: skip
    assert all(each["runId"] == "run" and each["agentId"] == "ada" and "mode" in each for each in heard)
    by_event = {each["event"]: each for each in heard}
    assert by_event["SessionStart"]["source"] == "startup"
    assert (by_event["UserPromptSubmit"]["prompt"], by_event["UserPromptSubmit"]["origin"]) == ("Begin.", "person")
    assert (by_event["PreToolUse"]["name"], by_event["PreToolUse"]["input"]) == ("save", {"path": "a.txt"})
    assert by_event["PreToolUse"]["toolCallId"] == played.events("tool.call")[0]["toolCallId"]
    assert (by_event["PostToolUse"]["output"], by_event["PostToolUse"]["isError"]) == ({"saved": True}, False)
    assert by_event["PostModelCall"]["text"] == "Done."
    assert [(e["nodeId"], e["type"]) for e in heard if e["event"] == "NodeStart"][:2] == [
        ("start", "core:start"),
        ("think", "llm:generate"),
    ]
    assert by_event["Stop"]["status"] == by_event["SessionEnd"]["reason"] == "completed"


def test_a_hook_may_refuse_a_call_and_the_model_is_told_why(heard: list[dict[str, Any]]) -> None:
    played = run([hook("PreToolUse", "block", matcher="save"), hook("PreToolUse", "listen")], [SAVE, "Oh."])

    assert played.said == ["blocked: a hook refused this call: not on my watch"]
    result = played.events("tool.result")[0]
    assert (result["outcome"], result["code"], result["isError"]) == ("denied", "blocked", True)
    assert played.events("hook.blocked") == [{"event": "PreToolUse", "reason": "not on my watch"}]
    assert len(heard) == 1, "the first block stops the rest"


def test_what_a_hook_makes_of_an_input_is_what_runs_and_what_a_person_sees(heard: list[dict[str, Any]]) -> None:
    hooks = [hook("PreToolUse", "other_path", matcher="save"), hook("PostToolUse", "listen")]

    played = run(hooks, [SAVE, "Done."], permissions={"fs.write": "ask"}, answers=[{"approved": True}])

    assert played.report["interrupts"][0]["action"]["input"] == {"path": "safe.txt"}
    assert [(e["event"], e["input"]) for e in heard] == [
        ("PreToolUse", {"path": "a.txt"}),
        ("PostToolUse", {"path": "safe.txt"}),
    ], "asked once, although the run parked in between"
    assert played.events("tool.result")[0]["outcome"] == "ok"


def test_an_input_a_hook_spoils_is_refused_like_any_other(heard: list[dict[str, Any]]) -> None:
    played = run([hook("PreToolUse", "bad_path")], [SAVE, "Oh."])

    assert played.events("tool.result")[0]["code"] == "invalid_input"
    assert "a hook changed the input" in played.said[0]


def test_a_hook_cannot_allow_what_a_gate_denies(heard: list[dict[str, Any]]) -> None:
    hooks = [hook("PreToolUse", "odd"), hook("PermissionRequest", "odd"), hook("PermissionDenied", "listen")]

    played = run(hooks, [SAVE, "Oh."], permissions={"fs.write": "deny"})

    assert played.events("tool.result")[0]["outcome"] == "denied"
    assert [(e["event"], e["name"]) for e in heard] == [("PermissionDenied", "save")]
    assert "fs.write" in heard[0]["reason"]


def test_a_hook_may_refuse_before_a_person_is_asked(heard: list[dict[str, Any]]) -> None:
    hooks = [hook("PermissionRequest", "block"), hook("PermissionDenied", "listen")]

    played = run(hooks, [SAVE, "Oh."], permissions={"fs.write": "ask"})

    assert played.status == "completed"
    assert played.report["interrupts"] == []
    assert played.said == ["denied: a hook refused this call: not on my watch"]
    assert [e["event"] for e in heard] == ["PermissionRequest", "PermissionDenied"]


def test_a_persons_no_is_a_permission_denied(heard: list[dict[str, Any]]) -> None:
    hooks = [hook("PermissionDenied", "listen")]

    run(hooks, [SAVE, "Oh."], permissions={"fs.write": "ask"}, answers=[{"approved": False}])

    assert [e["event"] for e in heard] == ["PermissionDenied"]


def test_an_approval_by_the_graph_is_bound_to_what_the_hook_made_of_it(heard: list[dict[str, Any]]) -> None:
    graph = {
        "nodes": {
            "start": {"type": "core:start"},
            "act": {
                "type": "tool:call",
                "calls": [{"name": "save", "args": {"path": "a.txt"}}],
                "approve": {"tools": ["save"]},
            },
            "end": {"type": "core:end", "output": "$output.results"},
        },
        "edges": [{"from": "start", "to": "act"}, {"from": "act", "to": "end"}],
    }

    played = run([hook("PreToolUse", "other_path")], [], graph=graph, answers=[{"approved": True}])

    assert played.report["interrupts"][0]["action"]["input"] == {"path": "safe.txt"}
    assert played.output[0]["result"] == {"saved": True}
    assert len(heard) == 1


def test_a_hook_may_change_what_a_tool_said_but_not_that_it_failed(heard: list[dict[str, Any]]) -> None:
    played = run([hook("PostToolUse", "mask")], [[call("look"), call("broken")], "Done."])

    results = played.events("tool.result")
    assert {r["outcome"]: r["output"] for r in results} == {
        "ok": {"masked": True},
        "error": 'tool_failed: {"masked":true}',
    }


def test_what_hooks_have_to_say_reaches_the_model_once_or_as_long_as_it_holds(heard: list[dict[str, Any]]) -> None:
    hooks = [hook(event, "remember") for event in ("SessionStart", "UserPromptSubmit", "PostToolUse", "PostModelCall")]

    played = run(hooks, [[call("look")], [call("look", n=2)], "Done."])

    notes = [r.messages[-1]["content"] for r in played.requests]
    assert [text.count('<note kind="hook">') for text in notes] == [2, 4, 4]
    assert notes[1].count("remember PostToolUse") == notes[2].count("remember PostToolUse") == 1
    assert not any("remember" in str(m.get("content")) for m in played.report["messages"]), "notes are not stored"


@pytest.mark.parametrize(
    ("event", "code"), [("UserPromptSubmit", "user_prompt_blocked"), ("PreModelCall", "model_call_blocked")]
)
def test_a_hook_may_stop_a_run_before_the_model_sees_it(heard: list[dict[str, Any]], event: str, code: str) -> None:
    played = run([hook(event, "block")], ["Never said."])

    assert (played.status, played.code, played.requests) == ("failed", code, [])
    assert "not on my watch" in played.events("run.failed")[0]["message"]


def test_words_inside_messages_are_screened_too(heard: list[dict[str, Any]]) -> None:
    given = {"messages": [{"role": "assistant", "content": "Hello."}, {"role": "user", "content": "Secret."}]}

    played = play({"id": "ada", "instructions": "Work.", "hooks": [hook("UserPromptSubmit", "block")]}, [], input=given)

    assert played.code == "user_prompt_blocked"
    assert heard[0]["prompt"] == "Secret."


@pytest.mark.parametrize(
    ("handler", "words"),
    [
        ({"plugin": "fail"}, "it failed: LookupError: lost"),
        ({"plugin": "hang"}, "no answer within 0.05 s"),
        ({"plugin": "no_json"}, "its answer is no JSON"),
        ({"plugin": "not_callable"}, "is no function"),
        ({"plugin": "gone"}, "cannot be loaded"),
        ({"plugin": "never installed"}, "no installed package gives the hook 'never installed'"),
        ({"http": "http://127.0.0.1:9/hook"}, "no network here"),
    ],
)
def test_a_handler_that_fails_has_no_effect_and_a_line_in_the_trace(
    heard: list[dict[str, Any]], handler: dict[str, Any], words: str
) -> None:
    hooks = [{"event": "PreToolUse", "handler": handler}, hook("PreToolUse", "other_path")]

    played = run(hooks, [SAVE, "Done."], limits=Limits(hook_timeout_s=0.05))

    (failed,) = played.events("hook.failed")
    assert failed["event"] == "PreToolUse"
    assert words in failed["message"]
    assert played.events("tool.result")[0]["outcome"] == "ok"
    assert len(heard) == 1, "those after it are still asked"


def test_a_plugin_changes_nothing_by_writing_into_what_it_was_given(heard: list[dict[str, Any]]) -> None:
    run([hook("PreToolUse", "vandal"), hook("PostToolUse", "listen")], [SAVE, "Done."])

    assert heard[0]["input"] == {"path": "a.txt"}


def test_filters_by_agent_and_mode_hold(heard: list[dict[str, Any]]) -> None:
    hooks = [
        hook("Stop", "listen", when={"agent": "bob"}),
        hook("Stop", "listen", when={"mode": "auto"}),
        hook("Stop", "listen", matcher="failed"),
        hook("Stop", "listen", when={"agent": "ada", "mode": "plan"}, matcher="completed"),
    ]

    run(hooks, ["Done."], mode="plan")

    assert len(heard) == 1


def test_a_parked_node_begins_once_and_the_session_twice(heard: list[dict[str, Any]]) -> None:
    hooks = [hook(event, "listen") for event in ("NodeStart", "NodeEnd", "SessionStart", "SessionEnd")]

    run(hooks, [SAVE, "Done."], permissions={"fs.write": "ask"}, answers=[{"approved": True}])

    told = [(e["event"], e.get("source") or e.get("reason") or e["nodeId"]) for e in heard]
    assert [each for each in told if each[1] == "act"] == [("NodeStart", "act"), ("NodeEnd", "act")]
    assert [each for each in told if each[0].startswith("Session")] == [
        ("SessionStart", "startup"),
        ("SessionEnd", "needs_input"),
        ("SessionStart", "resume"),
        ("SessionEnd", "completed"),
    ]


def test_a_child_is_told_what_hooks_say_before_its_first_message(heard: list[dict[str, Any]]) -> None:
    kid = {"id": "kid", "instructions": "Help."}
    nodes = {
        "start": {"type": "core:start"},
        "spawn": {"type": "control:spawn", "calls": [{"agentId": "kid", "input": "Help me."}, {"agentId": "ghost"}]},
        "end": {"type": "core:end", "output": "$output"},
    }
    graph = {"nodes": nodes, "edges": [{"from": "start", "to": "spawn"}, {"from": "spawn", "to": "end"}]}
    hooks = [hook("SubagentStart", "remember"), hook("SubagentStart", "listen"), hook("SubagentStop", "listen")]

    played = run(hooks, ["I helped."], graph=graph, agents={"kid": kid})

    sent = played.requests[0].messages
    assert [m["content"] for m in sent[:2]] == ["remember SubagentStart", "Help me."]
    assert sent[0]["kind"] == "note"
    assert [(e["event"], e["subagentId"], e["index"]) for e in heard] == [
        ("SubagentStart", "kid", 0),
        ("SubagentStop", "kid", 0),
    ]
    assert heard[0]["subagentRunId"] == heard[1]["subagentRunId"] == played.output["results"][0]["spawnId"]


def test_an_item_of_a_map_is_a_child_too(heard: list[dict[str, Any]]) -> None:
    nodes = {
        "start": {"type": "core:start"},
        "each": {"type": "control:map", "items": ["x"], "enter": "think", "body": ["think", "done"]},
        "think": {"type": "llm:generate", "prompt": "main", "tools": []},
        "done": {"type": "control:yield"},
        "end": {"type": "core:end", "output": "$output"},
    }
    edges = [("start", "each"), ("each", "end"), ("think", "done")]
    graph = {"nodes": nodes, "edges": [{"from": a, "to": b} for a, b in edges]}

    played = run([hook("SubagentStart", "remember"), hook("UserPromptSubmit", "listen")], ["One."], graph=graph)

    assert [m["content"].split("\n")[0] for m in played.requests[0].messages[:2]] == [
        "remember SubagentStart",
        "Map item [0]:",
    ]
    assert "subagentContext" not in json.dumps(played.report["state"])
    assert [e["origin"] for e in heard] == ["person", "parent"]


def test_a_run_that_fails_stops_too(heard: list[dict[str, Any]]) -> None:
    run([hook("Stop", "listen"), hook("SessionEnd", "listen", matcher="failed")], [])

    assert [(e["event"], e.get("code")) for e in heard] == [("Stop", "model_script_exhausted"), ("SessionEnd", None)]


def script_hook(event: str, code: str) -> dict[str, Any]:
    return {"event": event, "handler": {"command": ["python3", "-c", code]}}


@pytest.mark.skipif(isinstance(find_sandbox(), NoSandbox), reason="this machine has no sandbox")
class TestCommands:
    """Programs in the sandbox."""

    def test_a_program_reads_the_payload_and_answers_on_stdout(self) -> None:
        code = "import json, sys; p = json.load(sys.stdin); print(json.dumps({'updateInput': {'path': p['name']}}))"

        played = run(
            [script_hook("PreToolUse", code)],
            [SAVE, "Done."],
            permissions={"fs.write": "ask"},
            answers=[{"approved": True}],
        )

        assert played.report["interrupts"][0]["action"]["input"] == {"path": "save"}

    def test_exit_code_2_refuses_with_what_stands_on_stderr(self) -> None:
        code = "import sys; sys.stderr.write('out of hours'); sys.exit(2)"

        played = run([script_hook("PreToolUse", code)], [SAVE, "Oh."])

        assert played.said == ["blocked: a hook refused this call: out of hours"]

    @pytest.mark.parametrize(
        ("code", "words"),
        [
            ("import sys; sys.stderr.write('oops'); sys.exit(1)", "exit code 1: oops"),
            ("print('not json')", "its answer is not JSON"),
            ("print('[' * 100000)", "its answer is"),
            ("import time; time.sleep(30)", "no answer within 1 s"),
            ("open('/etc/officina', 'w')", "exit code 1"),
            ("print('x' * 2_000_000)", "more than"),
        ],
    )
    def test_a_program_that_fails_has_no_effect(self, code: str, words: str) -> None:
        limits = Limits(hook_timeout_s=1)

        played = run([script_hook("PreToolUse", code)], [SAVE, "Done."], limits=limits)

        assert words in played.events("hook.failed")[0]["message"]
        assert played.events("tool.result")[0]["outcome"] == "ok"


def test_a_command_without_a_sandbox_is_never_run_outside_of_one(tmp_path: Path) -> None:
    mark = tmp_path / "ran"

    def without(ready: Stage) -> None:
        ready.services.sandbox = lambda _run: None

    touch = {"event": "PreToolUse", "handler": {"command": ["/bin/touch", str(mark)]}}
    played = run([touch], [SAVE, "Done."], prepare=without)

    assert "no sandbox" in played.events("hook.failed")[0]["message"]
    assert not mark.exists()


def test_a_matcher_that_cannot_be_read_is_refused_with_the_definition() -> None:
    found = validate({"id": "ada", "instructions": "Work.", "hooks": [hook("PreToolUse", "listen", matcher="(web")]})

    assert [(f.code, f.path) for f in found] == [("hook_shape", "hooks[0]")]
    assert 'matcher "(web" is not an expression RE2 reads' in found[0].message


class TestHttp:
    """Handlers behind an address; the guard may reach the site of the test and nothing else inside."""

    @pytest.fixture
    def site(self) -> Iterator[TrapSite]:
        with serving() as found:
            yield found

    def played(self, site: TrapSite, url: str, event: str = "PreToolUse", **limits: Any) -> Any:
        def wired(ready: Stage) -> None:
            ready.services.net = Guard(allow=[("127.0.0.1", site.port)])

        hooks = [{"event": event, "handler": {"http": url}}]
        return run(hooks, [SAVE, "Done."], prepare=wired, limits=Limits(**({"hook_timeout_s": 5} | limits)))

    def test_the_payload_is_posted_and_the_answer_counts(self, site: TrapSite) -> None:
        site.page("/hook", '{"block": "not on Sundays"}', kind="application/json")

        played = self.played(site, site.url("/hook"))

        (asked,) = site.requests
        payload = json.loads(asked.body)
        assert (asked.method, asked.headers["content-type"]) == ("POST", "application/json")
        assert (payload["event"], payload["name"]) == ("PreToolUse", "save")
        assert played.events("hook.blocked")[0]["reason"] == "not on Sundays"
        assert played.events("tool.result")[0]["outcome"] == "denied"

    @pytest.mark.parametrize("answer", [("", 204), ("", 200), ("null", 200), ("{}", 200)])
    def test_nothing_to_say_is_an_answer(self, site: TrapSite, answer: tuple[str, int]) -> None:
        site.page("/hook", answer[0], status=answer[1])

        played = self.played(site, site.url("/hook"))

        assert played.events("hook.failed") == []
        assert played.events("tool.result")[0]["outcome"] == "ok"

    @pytest.mark.parametrize(
        ("route", "words"),
        [
            (lambda exchange: exchange.answer('{"block": "x"}', status=500), "answered 500"),
            (lambda exchange: exchange.answer("no json"), "its answer is not JSON"),
            (lambda exchange: exchange.answer('{"a": 1, "a": 2}'), "stands twice"),
            (lambda exchange: exchange.redirect("/other"), "answered 302"),
            (lambda exchange: exchange.answer("x" * 2_000_000), "too_large"),
            (lambda exchange: time.sleep(3), "timeout: no complete answer within 0.3 s"),
        ],
    )
    def test_a_failure_has_no_effect(self, site: TrapSite, route: Callable[[Exchange], None], words: str) -> None:
        site.routes["/hook"] = route

        played = self.played(site, site.url("/hook"), hook_timeout_s=0.3)

        assert words in played.events("hook.failed")[0]["message"]
        assert played.events("tool.result")[0]["outcome"] == "ok"
        assert len(site.requests) == 1

    def test_nothing_inside_is_reached(self, site: TrapSite) -> None:
        with listening() as listener:
            played = self.played(site, f"http://127.0.0.1:{listener.port}/hook?token=hunter2")

            message = played.events("hook.failed")[0]["message"]
            assert "network_blocked" in message and "hunter2" not in message
            assert listener.connections == []
