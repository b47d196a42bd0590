"""Children on real workers: spawns and maps, nested, in order, in time, and through the death of a worker."""

from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.projects import Watched, start, task
from tests.support import eventually

QUICK = {"LIMITS__LEASE_S": "2", "LIMITS__RENEW_S": "0.5", "LIMITS__CLOCK_TICK_S": "0.2"}


def agent(id_: str, nodes: dict[str, Any], edges: list[tuple[str, str]], **fields: Any) -> dict[str, Any]:
    graph = {"nodes": nodes, "edges": [{"from": a, "to": b} for a, b in edges]}
    return {"id": id_, "instructions": "Do it.", "graph": graph} | fields


def speaker(id_: str) -> dict[str, Any]:
    """An agent that asks the model once and ends with its words."""
    nodes = {"s": {"type": "core:start"}, "t": {"type": "llm:generate", "tools": []}, "e": {"type": "core:end"}}
    return agent(id_, nodes, [("s", "t"), ("t", "e")])


def spawner(id_: str, calls: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    """An agent that spawns children and ends with what they brought."""
    nodes = {
        "s": {"type": "core:start"},
        "f": {"type": "control:spawn", "calls": calls} | fields,
        "e": {"type": "core:end", "output": "$output"},
    }
    return agent(id_, nodes, [("s", "f"), ("f", "e")])


def mapper(id_: str, items: list[Any], body: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """An agent that maps over items with one node, and ends with the results."""
    nodes = {
        "s": {"type": "core:start"},
        "m": {"type": "control:map", "items": items, "enter": "w", "body": ["w", "y"]} | fields,
        "w": body,
        "y": {"type": "control:yield", "value": "$output"},
        "e": {"type": "core:end", "output": "$output"},
    }
    return agent(id_, nodes, [("s", "m"), ("m", "e"), ("w", "y")])


def test_children_run_on_workers_and_their_results_come_in_the_order_of_the_calls(
    tmp_path: Path, live_settings, worker_process
) -> None:
    worker_process(live_settings).ready()
    calls = [{"agentId": "kid", "input": f"n{n}"} for n in range(6)] + [{"agentId": "ghost", "input": "x"}]
    agents = {"kid": speaker("kid"), "boss": spawner("boss", calls)}
    script = {"agents": {"kid": [{"say": "child {{ input }}"}]}}
    plan = [task("a", agent="boss"), task("b", agent="kid")]

    made = start(tmp_path / "p", live_settings, plan, script | {"otherwise": "rule"}, agents=agents)
    project = Watched(live_settings, made.project_id)

    assert project.ended() == "completed"
    results = project.tasks["a"].output["results"]
    assert [r["output"]["content"] if r["output"] else None for r in results] == [
        *(f"child n{n}" for n in range(6)),
        None,
    ]
    assert results[6]["error"]["code"] == "spawn_target_missing"
    children = [run for run in project.runs if run.kind == "spawn"]
    assert sorted(run.status for run in children) == ["completed"] * 6 + ["failed"]
    assert len(project.kinds("agent.completed")) == 6


def test_a_sequence_runs_one_child_after_the_other(tmp_path: Path, live_settings, worker_process) -> None:
    worker_process(live_settings).ready()
    calls = [{"agentId": "kid", "input": f"n{n}"} for n in range(4)]
    agents = {"kid": speaker("kid"), "boss": spawner("boss", calls, concurrency="sequential")}
    script = {"delayMs": 30, "agents": {"kid": [{"say": "{{ input }}"}]}}

    made = start(
        tmp_path / "p", live_settings, [task("a", agent="boss"), task("b", agent="kid")], script, agents=agents
    )
    project = Watched(live_settings, made.project_id)

    assert project.ended() == "completed"
    children = sorted((run for run in project.runs if run.kind == "spawn"), key=lambda run: run.position)
    assert all(a.ended_at <= b.started_at for a, b in pairwise(children))


def test_three_levels_of_fan_out_complete_on_two_slots(tmp_path: Path, live_settings, worker_process) -> None:
    worker_process(live_settings, WORKER_SLOTS="2").ready()
    spawn_kids = {"type": "control:spawn", "calls": [{"agentId": "mid", "input": f"m{n}"} for n in range(4)]}
    agents = {
        "leaf": speaker("leaf"),
        "mid": spawner("mid", [{"agentId": "leaf", "input": f"l{n}"} for n in range(4)]),
        "top": mapper("top", ["a", "b", "c", "d"], spawn_kids),
    }
    script = {"agents": {"leaf": [{"say": "leaf {{ input }}"}]}}
    plan = [task("tree", agent="top"), task("x", agent="leaf"), task("y", agent="mid")]

    made = start(tmp_path / "p", live_settings, plan, script, agents=agents)
    project = Watched(live_settings, made.project_id)

    assert project.ended(90) == "completed"
    tree = project.tasks["tree"].output["results"]
    leaves = [
        leaf["output"]["content"]
        for item in tree
        for mid in item["output"]["results"]
        for leaf in mid["output"]["results"]
    ]
    assert leaves == [f"leaf l{n}" for _ in range(16) for n in range(4)]
    (root,) = project.shown["tasks"][0]["runs"]
    levels = [[root]]
    while levels[-1]:
        levels.append([child for run in levels[-1] for child in run["children"]])
    assert [len(level) for level in levels] == [1, 4, 16, 64, 0], "one tree, three levels deep"
    assert {run["status"] for level in levels for run in level} == {"completed"}
    assert [event.seq for event in project.trace] == list(range(1, len(project.trace) + 1))


def test_a_map_whose_time_is_over_goes_on_with_what_there_is(tmp_path: Path, live_settings, worker_process) -> None:
    worker_process(live_settings, **QUICK).ready()
    top = mapper("top", ["one", "two"], {"type": "llm:generate"}, timeoutMs=1500, onTimeout="partial")
    top["graph"]["nodes"]["act"] = {"type": "tool:call", "calls": "$output.toolCalls"}
    top["graph"]["nodes"]["m"]["body"] = ["w", "act", "y"]
    top["graph"]["edges"][-1:] = [
        {"from": "w", "to": "act", "when": '$output.finishReason = "tool-calls"'},
        {"from": "w", "to": "y"},
        {"from": "act", "to": "w"},
    ]
    top["budget"] = {"maxSteps": 500}
    look = {"calls": [{"name": "agents_list", "args": {}}]}
    # Each item looks around a hundred times, 100 ms each: far beyond the map's time.
    script = {
        "delayMs": 100,
        "items": {"a": [*[look] * 100, {"say": "late"}]},
    }
    plan = [task("a", agent="top")]
    top["packs"] = {"agents": True}
    made = start(tmp_path / "p", live_settings, plan, script, agents={"top": top})
    project = Watched(live_settings, made.project_id)

    assert project.ended() == "completed"
    results = project.tasks["a"].output["results"]
    assert [r["error"]["code"] for r in results] == ["timeout", "timeout"]
    assert {run.status for run in project.runs if run.kind == "item"} == {"cancelled"}
    assert project.kinds("map.completed") == [{"ok": 0, "failed": 2, "timedOut": True}]


def test_a_fan_out_survives_the_death_of_its_worker_and_a_flushed_redis(
    tmp_path: Path, live_settings, worker_process, redis
) -> None:
    first = worker_process(live_settings, **QUICK).ready()
    agents = {
        "kid": speaker("kid"),
        "boss": spawner("boss", [{"agentId": "kid", "input": f"n{n}"} for n in range(8)]),
    }
    script = {"delayMs": 200, "agents": {"kid": [{"say": "{{ input }}"}]}}
    plan = [task("a", agent="boss"), task("b", agent="kid")]
    made = start(tmp_path / "p", live_settings, plan, script, agents=agents)
    project = Watched(live_settings, made.project_id)
    eventually(lambda: project.kinds("agent.spawned"), 20)

    first.kill()
    redis.flushall()
    worker_process(live_settings, **QUICK).ready()

    assert project.ended(60) == "completed"
    outputs = [r["output"]["content"] for r in project.tasks["a"].output["results"]]
    assert outputs == [f"n{n}" for n in range(8)]
    assert len(project.kinds("agent.completed")) == 8
