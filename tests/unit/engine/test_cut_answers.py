"""An answer the length limit cut is no final message: the agent of a task is told, and goes on (spec: skills 13.1)."""

from dataclasses import replace
from typing import Any

from orchestrator.limits import Limits
from orchestrator.records import Ending
from tests.unit.engine.stages import TASK, Played, Recorder, call, play, turn
from workers.inprocess.stage import Stage
from workers.models.model import Reply, Request

ADA = {"id": "ada", "instructions": "Work."}
#: In a turn's words: the limit cut them.
CUT = "..."


class Limited(Recorder):
    """Turns whose words end in the mark are cut."""

    def generate(self, request: Request) -> Reply:
        reply = super().generate(request)
        return replace(reply, finish_reason="length") if reply.text.endswith(CUT) else reply


def cut(turns: list[Any], agent: dict[str, Any] = ADA, **options: Any) -> tuple[Played, Limited]:
    model = Limited([turn(each) for each in turns])

    def limit(ready: Stage) -> None:
        ready.services.model = lambda _run: model

    options = {"task": TASK, "tools": {"look": {"returns": 1}}} | options
    return play(agent, [], prepare=limit, **options), model


def told(model: Limited) -> list[str]:
    """The notes in the history of the last request."""
    return [m["content"] for m in model.requests[-1].messages if m.get("kind") == "note" and "cut off" in m["content"]]


def test_it_is_told_and_its_next_answer_is_the_output() -> None:
    run, model = cut([f"I will write the file now{CUT}", [call("look")], "Whole."])

    assert (run.status, run.output["content"]) == ("completed", "Whole.")
    assert len(told(model)) == 1
    assert "not called" in told(model)[0]


def test_answers_that_keep_being_cut_fail_in_a_way_that_may_pass() -> None:
    run, model = cut([CUT, f"Again{CUT}", f"And again{CUT}", "Never asked."])

    assert (run.status, run.code) == ("failed", "model_failed")
    assert "maxTokens" in run.report["events"][-1]["data"]["message"]
    assert len(model.requests) == 3


def test_cuts_with_whole_answers_between_them_are_counted_anew() -> None:
    turns: list[Any] = []
    for n in range(3):
        turns += [f"a{CUT}", f"b{CUT}", [call("look", n=n)]]

    run, _ = cut([*turns, "Whole."])

    assert (run.status, run.output["content"]) == ("completed", "Whole.")


def test_a_cut_answer_with_a_whole_call_makes_that_call() -> None:
    run, _ = cut([{"text": f"Looking{CUT}", "calls": [call("look")]}, "Seen."])

    assert (run.status, run.said, run.output["content"]) == ("completed", ["1"], "Seen.")


def test_a_cut_closing_answer_is_the_output_and_the_task_says_so() -> None:
    endings: list[Ending] = []

    def keep(ready: Stage, model: Limited) -> None:
        save = ready.services.journal.save

        def watched(checkpoint: Any) -> Any:
            endings.extend([checkpoint.ending] if checkpoint.ending else [])
            return save(checkpoint)

        ready.services.journal.save = watched  # type: ignore[method-assign]
        ready.services.model = lambda _run: model

    model = Limited([turn(each) for each in ([call("look")], f"As far as I came{CUT}")])
    run = play(
        ADA,
        [],
        prepare=lambda ready: keep(ready, model),
        task=TASK,
        tools={"look": {"returns": 1}},
        limits=Limits(agent_turns=1),
    )

    assert (run.status, run.output["content"]) == ("completed", f"As far as I came{CUT}")
    assert [one.note for one in endings] == ["its last answer was cut off by the length limit"]


def test_a_graph_of_its_own_sees_the_reason_and_decides() -> None:
    graph = {
        "nodes": {
            "start": {"type": "core:start"},
            "think": {"type": "llm:generate", "tools": []},
            "end": {"type": "core:end", "output": "$output.finishReason"},
        },
        "edges": [{"from": "start", "to": "think"}, {"from": "think", "to": "end"}],
    }

    run, model = cut([CUT], ADA | {"graph": graph})

    assert (run.status, run.output, len(model.requests)) == ("completed", "length", 1)


def test_outside_a_task_whoever_asked_gets_what_there_is() -> None:
    run, model = cut([f"Half{CUT}"], task=None)

    assert (run.status, run.output["finishReason"], len(model.requests)) == ("completed", "length", 1)
