"""Model calls inside of skills, on real workers: scripted, told in the trace, and paid by the task that makes them."""

from pathlib import Path
from typing import Any

from orchestrator.producer import submit
from orchestrator.settings import Model
from tests.projects import Watched, start, task
from tests.stub_model import StubModel

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def ask(name: str, **args: Any) -> dict[str, Any]:
    return {"name": name, "args": {"prompt": "How many?"} | args}


def test_the_stand_in_plays_skills_from_their_own_script(tmp_path: Path, live_settings, worker_process) -> None:
    worker_process(live_settings).ready()
    script = {
        "tasks": {
            "a": [
                {"calls": [ask("llm.generate")]},
                {"calls": [ask("llm.generate"), ask("llm.structured", schema=SCHEMA)]},
                {"say": "{{ results[0].output.text }} {{ results[1].output.text }} {{ results[2].output.value.n }}"},
            ]
        },
        "skills": {
            "llm.generate": [{"say": "one"}, {"say": "two"}],
            "llm.structured": [{"output": {"n": "three"}}, {"output": {"n": 3}}],
        },
    }
    plan = [task("a", skills=["llm.generate", "llm.structured"])]
    project = Watched(live_settings, start(tmp_path / "p", live_settings, plan, script).project_id)

    assert project.ended() == "completed"
    assert project.tasks["a"].output == "one two 3"
    results = project.kinds("tool.result")
    assert [r["output"]["standIn"] for r in results] == [True, True, True]
    assert [r["costUsd"] for r in results] == [0, 0, 0]
    asides = [line.get("aside") for line in project.kinds("think")]
    assert sorted(filter(None, asides)) == ["llm.generate"] * 2 + ["llm.structured"] * 2
    assert asides.count(None) == 3, "they use up no turn of the agent"


def test_what_would_pass_the_budget_is_refused_and_the_run_goes_on(
    tmp_path: Path, live_settings, worker_process
) -> None:
    turns = [
        {"text": "thinking", "calls": [ask("llm.generate", maxTokens=8192), ask("llm.structured", schema=SCHEMA)]},
        {"calls": [ask("llm.generate", maxTokens=20)]},
        {"text": "done"},
    ]
    with StubModel(turns) as server:
        model = {"name": "stub", "max_tokens": 100, "input_price": 0, "output_price": 100}
        changed = {f"MODELS__STANDARD__{key.upper()}": str(value) for key, value in model.items()}
        worker_process(live_settings, MODEL_BASE_URL=server.url, TASK_COST_USD="0.5", **changed).ready()
        file = tmp_path / "project.yaml"
        file.write_text(
            "title: Money\ntasks:\n  - key: a\n    role: writer\n    instruction: Spend.\n"
            "    skills: [llm.generate, llm.structured]\n"
        )
        known = live_settings.model_copy(update={"models": {"standard": Model(**model)}, "model_base_url": server.url})
        project = Watched(live_settings, submit(file, settings=known).project_id)
        assert project.ended() == "completed"

    first, second, third = project.kinds("tool.result")
    assert (first["code"], second["code"]) == ("budget_exceeded", "budget_exceeded")
    assert "USD" in first["output"]
    assert (third["isError"], third["output"]["text"]) == (False, "thinking")
    spent = sum(round(line["costUsd"] * 1e6) for line in project.kinds("think"))
    assert project.tasks["a"].cost_micro == spent > 0
    assert third["costUsd"] == third["output"]["costUsd"] > 0
