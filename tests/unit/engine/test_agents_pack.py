"""The pack `agents` (spec: engine 15): every tool of it, what it does and each thing it refuses."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.unit.engine.stages import Played, call, play
from workers.inprocess.stage import Stage

#: An agent that may write others without asking.
LEAD: dict[str, Any] = {
    "id": "lead",
    "name": "Lead",
    "role": "lead",
    "instructions": "Lead.",
    "tier": "standard",
    "packs": {"agents": True, "fetch": {"disabledTools": []}},
    "permissions": {"agents": "allow", "network": "deny", "fs.read": "ask"},
}
SMALL = {"name": "Checker", "role": "checker", "instructions": "Check {$input} twice."}
OTHERS = {
    "writer-one": {"id": "writer-one", "name": "Writer", "role": "writer", "instructions": "Write."},
    "writer-two": {"id": "writer-two", "name": "writer", "role": "editor", "instructions": "Edit."},
}


def told(played: Played, place: int = -1) -> dict[str, Any]:
    """The result of a call."""
    return played.events("tool.result")[place]


def one(tool: str, /, *, lead: dict[str, Any] = LEAD, prepare: Callable[[Stage], None] = lambda _: None, **args: Any):  # type: ignore[no-untyped-def]
    """What one call comes to; the run ends after it."""
    played = play(lead, [[call(tool, **args)], "Done."], agents=OTHERS, input="Begin.", prepare=prepare)
    assert played.status == "completed", played.report
    return told(played)


# agents_list


def test_list_shows_everybody_at_hand_with_level_packs_and_skills() -> None:
    rows = one("agents_list")["output"]

    assert [(row["id"], row["level"]) for row in rows] == [
        ("lead", "top"),
        ("writer-one", "top"),
        ("writer-two", "top"),
    ]
    assert rows[0] == {
        "id": "lead",
        "name": "Lead",
        "role": "lead",
        "level": "top",
        "packs": ["agents", "fetch"],
        "skills": [],
    }


def test_list_can_be_asked_by_role_and_by_name() -> None:
    assert [row["id"] for row in one("agents_list", role="writer")["output"]] == ["writer-one"]
    assert [row["id"] for row in one("agents_list", name="writer")["output"]] == ["writer-two"]


# agents_create, agents_create_subagent


def test_a_created_agent_is_there_at_once_and_can_be_handed_to() -> None:
    turns = [[call("agents_create", **SMALL)], [call("agents_list", name="Checker")]]
    played = play(LEAD, [*turns, [call("agents_handoff", agentId="Checker")], "I am the checker."], input="Begin.")

    (row,) = told(played, 1)["output"]
    assert row == told(played, 0)["output"]
    assert (row["level"], row["packs"], row["skills"]) == ("top", [], [])
    assert played.events("agent.handoff") == [{"from": "lead", "agentId": row["id"]}]
    assert played.output["content"] == "I am the checker."
    assert "Check { $input} twice." in played.requests[-1].system, "what a model wrote is no template"


def test_a_delegate_is_spawned_by_its_maker_and_reports_back_under_the_promised_id() -> None:
    turns = [
        [call("agents_create_subagent", **SMALL)],
        [call("agents_spawn", calls=[{"agentId": "Checker", "input": f"part {n}"} for n in range(3)])],
        *("fine", "good", "well"),
        "All checked.",
    ]
    played = play(LEAD, turns, input="Begin.")

    assert played.status == "completed", played.report
    queued = told(played, 1)["output"]["queued"]
    assert [q["agentId"] for q in queued] == [told(played, 0)["output"]["id"]] * 3
    assert len({q["spawnId"] for q in queued}) == 3
    spawned = played.events("agent.spawned")
    assert all(s["agentName"] for s in spawned)
    assert [s["spawnId"] for s in spawned] == [s["childRunId"] for s in spawned] == [q["spawnId"] for q in queued]
    assert [s["input"] for s in spawned] == ["part 0", "part 1", "part 2"]


def test_a_delegate_has_its_makers_settings_at_most() -> None:
    lead = LEAD | {
        "packs": {"agents": True, "fetch": True, "core": {"disabledTools": ["wait"]}},
        "disallowedTools": ["map"],
        "hooks": [{"event": "Stop", "handler": {"plugin": "none"}}],
        "mode": "ask",
    }
    answers = [{"approved": True}]
    body = kept(lead, "agents_create_subagent", answers, packs={"fetch": True}, permissions={"network": "allow"})

    assert body["packs"] == {"core": {"disabledTools": ["wait"]}, "fetch": True}
    assert body["disallowedTools"] == ["map"]
    assert body["permissions"] == {"fs.read": "ask", "network": "deny", "agents": "ask"}
    assert body["budget"] == {"maxSteps": 25, "policy": "error"}
    assert (body["hooks"], body["mode"]) == (lead["hooks"], "ask")


def test_what_its_maker_is_denied_stays_denied_to_a_created_agent() -> None:
    body = kept(LEAD, "agents_create", packs={"fetch": True})

    assert body["permissions"] == {"network": "deny", "fs.read": "ask"}
    assert "budget" not in body


def test_a_written_agent_has_its_makers_model_and_tier_or_a_lower_tier() -> None:
    lead = LEAD | {"model": "mine", "models": {"mine": "large"}, "tier": "deep"}

    body = kept(lead, "agents_create")
    assert (body["tier"], body["model"], body["models"]) == ("deep", "mine", {"mine": "large"})
    lower = kept(lead, "agents_create_subagent", tier="fast")
    assert lower["tier"] == "fast" and "model" not in lower
    for tool in ("agents_create", "agents_create_subagent"):
        refused = one(tool, **SMALL, tier="deep")
        assert refused["code"] == "invalid_input" and "above your own" in str(refused["output"])


def test_a_budget_and_a_graph_are_kept() -> None:
    graph = {
        "nodes": {"start": {"type": "core:start"}, "end": {"type": "core:end", "output": "fixed"}},
        "edges": [{"from": "start", "to": "end"}],
    }
    body = kept(LEAD, "agents_create_subagent", graph=graph, budget={"maxSteps": 7})

    assert body["graph"] == graph
    assert body["budget"] == {"maxSteps": 7, "policy": "error"}


def kept(lead: dict[str, Any], tool: str, answers: Sequence[Any] = (), /, **args: Any) -> dict[str, Any]:
    """The definition that was written."""
    bodies: list[dict[str, Any]] = []

    def listen(ready: Stage) -> None:
        ports = ready.services.agents
        assert ports is not None
        valid = ports._valid  # type: ignore[attr-defined]

        def noted(body: dict[str, Any]) -> Any:
            agent = valid(body)
            bodies.append(agent.to_json())
            return agent

        ports._valid = noted  # type: ignore[attr-defined]

    turns = [[call(tool, **SMALL, **args)], "Done."]
    result = told(play(lead, turns, input="Begin.", prepare=listen, answers=list(answers)))
    assert not result["isError"], result
    return bodies[0]


LOOSE = {"nodes": {"start": {"type": "core:start"}, "end": {"type": "core:end"}}, "edges": []}
DEAR = {
    "nodes": {"start": {"type": "core:start"}, "t": {"type": "llm:generate", "model": "x"}, "end": {"type": "core:end"}}
}


@pytest.mark.parametrize("tool", ["agents_create", "agents_create_subagent"])
@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        ({"name": "lead"}, "conflict", "another name"),
        ({"name": "WRITER"}, "conflict", "another name"),
        ({"name": " \n"}, "invalid_input", "name"),
        ({"instructions": " "}, "invalid_input", "instructions"),
        ({"graph": LOOSE}, "invalid_input", "nothing was saved: graph"),
        ({"graph": DEAR}, "invalid_input", "names no model"),
        ({"packs": {"core": False}}, "invalid_input", "cannot be off"),
        ({"packs": {"fetch": {"disabledTools": ["nap"]}}}, "invalid_input", "nap"),
        ({"packs": {"fetch": {"what": 1}}}, "invalid_input", "packs.fetch"),
        ({"budget": {}}, "invalid_input", "at least one"),
        ({"budget": {"maxSteps": 0}}, "invalid_input", "maxSteps"),
        ({"hooks": []}, "invalid_input", "hooks"),
        ({"mode": "bypass"}, "invalid_input", "mode"),
        ({"ownerId": "else"}, "invalid_input", "ownerId"),
    ],
)
def test_what_cannot_be_an_agent_is_refused_and_nothing_is_written(
    tool: str, args: dict[str, Any], code: str, words: str
) -> None:
    refused = attempt(LEAD, tool, SMALL | args)

    assert refused["code"] == code and words in str(refused["output"])


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"skills": ["no.such"]}, "no.such"),
        ({"packs": {"nothing": True}}, "unknown pack: nothing"),
        ({"mcpServers": ["nowhere"]}, "nowhere"),
        ({"permissions": {"process": "allow"}}, "permissions"),
    ],
)
def test_create_refuses_what_nobody_has(args: dict[str, Any], words: str) -> None:
    refused = attempt(LEAD, "agents_create", SMALL | args)

    assert refused["code"] == "invalid_input" and words in str(refused["output"])


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"skills": ["web.fetch"]}, "you do not hold web.fetch yourself"),
        ({"packs": {"agents": True}}, "leave this pack out"),
        ({"packs": {"shell": True}}, "you do not hold this pack yourself"),
        ({"packs": {"fetch": {"spec": {"wide": True}}}}, "leave spec out"),
        ({"mcpServers": ["files"]}, "mcpServers"),
    ],
)
def test_create_subagent_refuses_more_than_its_maker_holds(args: dict[str, Any], words: str) -> None:
    refused = attempt(LEAD, "agents_create_subagent", SMALL | args)

    assert refused["code"] == "invalid_input" and words in str(refused["output"])


def attempt(lead: dict[str, Any], tool: str, args: dict[str, Any]) -> dict[str, Any]:
    """A call that is refused, after which everybody at hand is who was before."""
    turns = [[call("agents_list")], [call(tool, **args)], [call("agents_list")], "Done."]
    played = play(lead, turns, agents=OTHERS, input="Begin.")
    assert told(played, 0)["output"] == told(played, 2)["output"]
    assert told(played, 1)["isError"]
    return told(played, 1)


def test_a_name_is_free_again_only_for_nobody() -> None:
    turns = [[call("agents_create_subagent", **SMALL)], [call("agents_create", **SMALL)], "Done."]
    assert told(play(LEAD, turns, input="Begin."))["code"] == "conflict"


def test_writing_an_agent_asks_a_person_unless_the_map_says_otherwise() -> None:
    lead = {**LEAD, "permissions": {}}
    for tool in ("agents_create", "agents_create_subagent"):
        played = play(lead, [[call(tool, **SMALL)], "Done."], input="Begin.")
        assert (played.status, played.events("signal.raised")[0]["action"]["skill"]) == ("needs_input", tool)


def test_a_delegate_makes_none_of_its_own() -> None:
    """It cannot hold the pack; a definition of before, or one by hand, is refused by the row."""
    turns = [
        [call("agents_create_subagent", **SMALL)],
        [call("agents_spawn", calls=[{"agentId": "Checker", "input": "x"}])],
    ]
    child = [[call("agents_create_subagent", **(SMALL | {"name": "Grandchild"}))], "I cannot."]

    def armed(ready: Stage) -> None:
        check, targets = ready.services.check_definition, ready.services.targets

        def with_pack(run: Any) -> Any:
            found = list(targets(run))
            for target in found:
                if target.level == "delegate":
                    target.definition.update(packs={"agents": True}, permissions={"agents": "allow"})
            return found

        ready.services.targets, ready.services.check_definition = with_pack, lambda body, run: check(body, run)

    played = play(LEAD, [*turns, *child, "Done."], input="Begin.", prepare=armed)
    refused = told(played)
    assert refused["code"] == "denied" and "you are a delegate" in str(refused["output"])


# agents_update, agents_delete


def test_a_delegate_is_changed_and_removed_by_its_maker() -> None:
    turns = [
        [call("agents_create_subagent", **SMALL)],
        [
            call(
                "agents_update",
                agentId="Checker",
                role="auditor",
                instructions="Look {$again}.",
                budget={"maxSteps": 3},
            )
        ],
        [call("agents_spawn", calls=[{"agentId": "Checker", "input": "x"}])],
        "seen",
        [call("agents_delete", agentId="Checker")],
        [call("agents_list")],
        "Done.",
    ]
    played = play(LEAD, turns, input="Begin.")

    made, changed = told(played, 0)["output"], told(played, 1)["output"]
    assert changed == made | {"role": "auditor"}
    assert "Look { $again}." in played.requests[3].system
    removed, rows = [result["output"] for result in played.events("tool.result")[-2:]]
    assert removed == {"removed": made["id"], "name": "Checker"}
    assert [row["id"] for row in rows] == ["lead"]


@pytest.mark.parametrize("tool", ["agents_update", "agents_delete"])
@pytest.mark.parametrize(
    ("target", "code", "words"),
    [
        ("writer-one", "not_found", "no delegate of yours"),
        ("lead", "not_found", "no delegate of yours"),
        ("nobody", "invalid_input", "no agent is meant"),
    ],
)
def test_what_is_no_delegate_of_the_caller_stays_as_it_is(tool: str, target: str, code: str, words: str) -> None:
    refused = attempt(LEAD, tool, {"agentId": target} | ({"role": "x"} if tool == "agents_update" else {}))

    assert refused["code"] == code and words in str(refused["output"])


def test_update_needs_something_to_change_and_a_free_name() -> None:
    turns = [
        [call("agents_create_subagent", **SMALL)],
        [call("agents_update", agentId="Checker")],
        [call("agents_update", agentId="Checker", name="Lead")],
        [call("agents_update", agentId="Checker", name="checker")],
        "Done.",
    ]
    played = play(LEAD, turns, agents=OTHERS, input="Begin.")

    assert [(r.get("code"), r["isError"]) for r in played.events("tool.result")[1:]] == [
        ("invalid_input", True),
        ("conflict", True),
        (None, False),
    ]
    assert "nothing to change" in str(told(played, 1)["output"])


def test_a_delegate_belongs_to_its_maker_alone() -> None:
    """After a handoff the new speaker neither sees nor spawns the delegates of the one before."""
    other = LEAD | {"id": "other", "name": "Other"}
    turns = [
        [call("agents_create_subagent", **SMALL)],
        [call("agents_handoff", agentId="other")],
        [call("agents_list", name="Checker")],
        [call("agents_spawn", calls=[{"agentId": "Checker", "input": "x"}])],
        [call("agents_delete", agentId="Checker")],
        "Done.",
    ]
    played = play(LEAD, turns, agents={"other": other}, input="Begin.")

    listed, spawned, deleted = played.events("tool.result")[-3:]
    assert listed["output"] == []
    assert spawned["code"] == deleted["code"] == "invalid_input"


# agents_spawn, agents_handoff


@pytest.mark.parametrize(
    ("calls", "words"),
    [
        ([], "calls"),
        ([{"agentId": "nobody", "input": "x"}], "no agent is meant by 'nobody'; use an id of these: lead (Lead)"),
        ([{"agentId": "WRITER", "input": "x"}], "several agents are meant by 'WRITER'"),
        ([{"agentId": "writer-one"}], "input"),
        ([{"agentId": "writer-one", "input": 3}], "input"),
        ([{"agentId": "writer-one", "input": "x", "budget": {}}], "at least one"),
        ([{"agentId": "writer-one", "input": "x"}] * 257, "calls"),
    ],
)
def test_spawn_refuses_the_whole_and_queues_nothing(calls: list[Any], words: str) -> None:
    played = play(LEAD, [[call("agents_spawn", calls=calls)], "Done."], agents=OTHERS, input="Begin.")

    assert told(played)["code"] == "invalid_input" and words in str(told(played)["output"])
    assert "spawns" not in played.report["state"] and not played.events("agent.spawned")


@pytest.mark.parametrize(
    ("target", "code", "words"),
    [
        ("lead", "invalid_input", "yourself"),
        ("nobody", "invalid_input", "no agent is meant"),
        ("Checker", "invalid_input", "can only be spawned; of level top are: lead (Lead), writer-one"),
        ("broken", "agent_invalid", "cannot run here"),
        ("modelless", "handoff_model_unresolved", "cannot run here"),
    ],
)
def test_handoff_says_why_not_and_to_whom_instead(target: str, code: str, words: str) -> None:
    agents = OTHERS | {name: {"id": name, "instructions": "x"} for name in ("broken", "modelless")}

    def faulty(ready: Stage) -> None:
        faults = {"broken": ["tools_unresolved: gone"], "modelless": ["model_unresolved: none"]}
        ready.services.check_definition = lambda body, _run: faults.get(str(body["id"]), [])

    turns = [[call("agents_create_subagent", **SMALL)], [call("agents_handoff", agentId=target)], "Done."]
    played = play(LEAD, turns, agents=agents, input="Begin.", prepare=faulty)

    assert told(played)["code"] == code and words in str(told(played)["output"])
    assert not played.events("agent.handoff")


def test_a_child_reports_back_instead_of_handing_over() -> None:
    agents = {"helper": LEAD | {"id": "helper", "name": "Helper"}} | OTHERS
    turns = [
        [call("agents_spawn", calls=[{"agentId": "helper", "input": "x"}])],
        [call("agents_handoff", agentId="writer-one")],
        "Then here it is.",
        "Done.",
    ]
    played = play(LEAD, turns, agents=agents, input="Begin.")

    refused = told(played)
    assert refused["code"] == "denied" and "denied in subagent context" in str(refused["output"])


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("agents_spawn", {"calls": [{"agentId": "writer-one", "input": "x"}]}),
        ("agents_handoff", {"agentId": "writer-one"}),
    ],
)
def test_without_the_node_nothing_is_queued(tool: str, args: dict[str, Any]) -> None:
    graph = {
        "nodes": {
            "start": {"type": "core:start"},
            "think": {"type": "llm:generate"},
            "act": {"type": "tool:call", "calls": "$output.toolCalls"},
            "end": {"type": "core:end"},
        },
        "edges": [
            {"from": "start", "to": "think"},
            {"from": "think", "to": "act", "when": '$output.finishReason = "tool-calls"'},
            {"from": "think", "to": "end"},
            {"from": "act", "to": "think"},
        ],
    }
    lead = LEAD | {"graph": graph, "budget": {"maxSteps": 20}}
    assert one(tool, lead=lead, **args)["code"] == "no_control_node"


def test_ids_promised_to_calls_that_a_graph_drops_are_given_to_nobody() -> None:
    """A graph may add to the queue, too: each child that was promised an id has it, the rest get new ones."""
    graph = {
        "nodes": {
            "start": {"type": "core:start"},
            "think": {"type": "llm:generate"},
            "act": {"type": "tool:call", "calls": "$output.toolCalls"},
            "more": {"type": "control:assign", "patch": {"spawns": [{"agentId": "writer-one", "input": "own"}]}},
            "spawn": {"type": "control:spawn", "calls": "$state.spawns"},
            "end": {"type": "core:end", "output": "$output.results"},
        },
        "edges": [
            {"from": "start", "to": "think"},
            {"from": "think", "to": "act"},
            {"from": "act", "to": "more"},
            {"from": "more", "to": "spawn"},
            {"from": "spawn", "to": "end"},
        ],
    }
    calls = [{"agentId": "writer-one", "input": "asked"}] * 2
    played = play(LEAD | {"graph": graph}, [[call("agents_spawn", calls=calls)], "a", "b", "c"], agents=OTHERS)

    promised = [q["spawnId"] for q in told(played)["output"]["queued"]]
    ids = [result["spawnId"] for result in played.output]
    assert ids[:2] == promised and len(set(ids)) == 3
