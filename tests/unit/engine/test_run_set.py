"""The run set: where its tools come from, what is hidden in it, and what `load_tools` shows (spec: engine 10, 15)."""

import json
from typing import Any

import pytest

from orchestrator.limits import Limits
from registry.base import Model
from registry.errors import WrongUse
from registry.packs import PACKS, Pack
from registry.packs.names import taken
from registry.skills.context import SkillContext
from registry.skills.registry import SkillRegistry
from registry.skills.skill import Skill, skill
from tests.unit.engine.graphs import ACT, CALLS, THINK, agent, ask, looper, once
from tests.unit.engine.stages import Played, call, play
from tests.unit.engine.test_batches import batch
from tests.unit.engine.test_fan_outs import mapping


class Nothing(Model):
    pass


def tool(name: str, about: str = "") -> Skill:
    """A tool that says its name."""

    def answer(_given: Nothing, _context: SkillContext) -> str:
        return f"{name} was here"

    answer.__doc__ = about or f"What {name} does."
    return skill(name, title=name, timeout_s=5, catalogued=False, documented=False)(answer)


def box(*names: str, about: str = "") -> dict[str, Pack]:
    return {**PACKS, "box": Pack("box", "test tools", tuple(tool(name, about) for name in names))}


def played(definition: dict[str, Any], turns: list[Any], packs: dict[str, Pack], **more: Any) -> Played:
    def prepare(stage: Any) -> None:
        stage.services.packs = packs

    return play(definition, turns, prepare=prepare, **more)


def holding(**box_settings: Any) -> dict[str, Any]:
    return looper(packs={"box": box_settings})


def offers(run: Played) -> list[set[str]]:
    return [{tool.name for tool in request.tools} for request in run.requests]


def note(run: Played, turn: int = 0) -> str:
    """What the notes of a model call say of deferred tools; nothing when they do not."""
    text = str(run.requests[turn].messages[-1]["content"])
    return text.partition('kind="deferred-tools">')[2].partition("</note>")[0]


DEFERRED = {"exposure": {"hammer": "deferred", "saw": "deferred"}}


def test_a_deferred_tool_is_hidden_and_listed_until_it_is_loaded() -> None:
    turns = [[call("load_tools", names=["hammer"])], [call("hammer")], "done"]

    run = played(holding(**DEFERRED), turns, box("hammer", "saw", "level"))

    first, second, third = offers(run)
    assert {"level", "load_tools"} <= first and not first & {"hammer", "saw"}
    assert second - first == {"hammer"} and third == second
    assert "hammer: What hammer does." in note(run, 0) and "- hammer" not in note(run, 1) and "- saw" in note(run, 1)
    answer = json.loads(run.said[0])
    assert answer["loaded"] == ["hammer"] and answer["unknown"] == []
    assert answer["tools"][0]["name"] == "hammer" and answer["tools"][0]["input"]["type"] == "object"
    assert run.said[1] == "hammer was here" and run.report["state"]["loadedTools"] == ["hammer"]


def test_a_hidden_tool_cannot_be_called_unseen_nor_beside_the_call_that_loads_it() -> None:
    turns = [[call("saw")], [call("load_tools", names=["saw"]), call("saw")], [call("saw")], "done"]

    run = played(looper("sequential", packs={"box": DEFERRED}), turns, box("hammer", "saw"))

    assert [r.get("code") for r in run.events("tool.result")] == ["tool_not_offered", None, "tool_not_offered", None]


def test_what_was_loaded_outlives_a_park() -> None:
    turns = [[call("load_tools", names=["saw"])], [call("gated")], [call("saw")], "done"]

    run = played(
        holding(**DEFERRED), turns, box("hammer", "saw"), tools={"gated": ask("process")}, answers=[{"approved": True}]
    )

    assert run.status == "completed" and run.said[-1] == "saw was here"
    assert len(run.report["interrupts"]) == 1 and "saw" in offers(run)[2]


def test_names_nobody_has_are_told_and_loading_twice_changes_nothing() -> None:
    turns = [[call("load_tools", names=["saw", "drill", "level"])], [call("load_tools", names=["saw"])], "done"]

    run = played(holding(**DEFERRED), turns, box("hammer", "saw", "level"))

    answer = json.loads(run.said[0])
    assert answer["loaded"] == ["saw", "level"] and answer["unknown"] == ["drill"]
    assert json.loads(run.said[1])["loaded"] == ["saw"] and run.report["state"]["loadedTools"] == ["saw"]


@pytest.mark.parametrize("names", [[], [f"n{i}" for i in range(17)], "saw", [""], [3]])
def test_load_tools_takes_one_to_sixteen_names(names: Any) -> None:
    run = played(holding(), [[call("load_tools", names=names)], "done"], box("saw"))
    assert run.events("tool.result")[0]["code"] == "invalid_input"


def test_a_node_with_tools_sees_the_service_only_when_it_lists_it_and_loads_no_more_than_its_own() -> None:
    def with_tools(*names: str) -> dict[str, Any]:
        made = holding(**DEFERRED)
        made["graph"]["nodes"]["think"] = THINK | {"tools": list(names)}
        return made

    turns = [[call("load_tools", names=["saw", "hammer"])], "done"]
    blind = played(with_tools("level", "saw"), turns, box("hammer", "saw", "level"))
    seeing = played(with_tools("load_tools", "saw"), turns, box("hammer", "saw", "level"))

    assert offers(blind)[0] == {"level"} and not note(blind)
    assert blind.events("tool.result")[0]["code"] == "tool_not_offered"
    assert offers(seeing) == [{"load_tools"}, {"load_tools", "saw"}]
    assert json.loads(seeing.said[0])["unknown"] == ["hammer"] and "hammer" not in note(seeing)


def test_a_call_of_the_graph_itself_may_use_every_tool_of_the_set() -> None:
    run = played(once(batch(call("saw")), packs={"box": DEFERRED}), [], box("hammer", "saw"))
    assert run.output["results"][0]["result"] == "saw was here"


def test_more_tools_than_a_request_takes_are_deferred_the_last_ones_by_name() -> None:
    names = [f"t{i:02}" for i in range(12)]
    made = looper(packs={"box": True, "core": {"disabledTools": ["ask_user", "map", "wait"]}})
    turns = [[call("load_tools", names=["t11"])], [call("t11")], [call("t03")], "done"]

    run = played(made, turns, box(*names), limits=Limits(tools_per_request=5))

    first, second, *_ = offers(run)
    assert first == {"load_tools", "t00", "t01", "t02", "t03"}
    assert second == {"load_tools", "t11", "t00", "t01", "t02"} and "- t03" in note(run, 1)
    assert run.said[1] == "t11 was here" and "tool_not_offered" in run.said[2]


def test_the_usual_request_holds_128_tools() -> None:
    run = played(holding(), ["done"], box(*[f"tool{i:03}" for i in range(200)]))
    assert len(run.requests[0].tools) == 128 and "load_tools" in offers(run)[0]


def test_the_list_of_deferred_tools_keeps_to_its_caps() -> None:
    names = [f"tool{i:03}" for i in range(90)]
    hidden = {"exposure": dict.fromkeys(names, "deferred")}

    run = played(holding(**hidden), ["done"], box(*names, about="What it does, in words. " * 30))
    long = [f"{'x' * 50}{i:03}" for i in range(90)]
    big = played(
        holding(exposure=dict.fromkeys(long, "deferred")), ["done"], box(*long), limits=Limits(prompt_chars=1000)
    )

    text = note(run).strip()
    assert len(text) <= 4000 and text.count("\n- tool") == 60 and text.endswith("and 30 more")
    assert len(note(big).strip()) <= 4000 and note(big).count("x" * 50) >= 50


def test_an_agent_without_deferred_tools_carries_nothing_for_them() -> None:
    run = played(holding(), [[call("saw")], "done"], box("saw"))
    assert not note(run) and "loadedTools" not in run.report["state"]


def test_what_is_disabled_or_disallowed_does_not_exist() -> None:
    made = looper(packs={"box": {"disabledTools": ["saw"]}}, disallowedTools=["hammer", "wait"])

    run = played(made, [[call("saw"), call("hammer"), call("level")], "done"], box("saw", "hammer", "level"))

    assert offers(run)[0] == {"level", "ask_user", "map", "load_tools"}
    codes = {r["name"]: r.get("code") for r in run.events("tool.result")}
    assert codes == {"saw": "unknown_skill", "hammer": "unknown_skill", "level": None}


def test_the_services_come_with_core_alone_and_reading_documents_with_documents() -> None:
    with_both = played(looper(skills=["house-style"], packs={}), ["done"], box())
    without_core = played(looper(skills=["house-style"], packs={"core": False}), ["done"], box())

    assert {"load_tools", "load_skill"} <= offers(with_both)[0]
    assert "load_skill" not in offers(played(looper(), ["done"], box()))[0]
    assert offers(without_core)[0] == set()
    assert "load_tools" not in offers(played(looper(disallowedTools=["load_tools"]), ["done"], box()))[0]


def test_load_skill_is_also_called_skill() -> None:
    made = looper(skills=["house-style"])
    made["graph"]["nodes"]["think"] = THINK | {"tools": ["Skill"]}

    run = played(made, [[{"name": "Skill", "args": {"name": "other"}}], "done"], box())

    assert offers(run)[0] == {"load_skill"}
    assert run.events("tool.result")[0]["name"] == "load_skill" and "not_found" in run.said[0]


def test_children_lack_what_needs_a_person_and_have_the_services() -> None:
    body = {"w": THINK, "act": ACT}
    made = mapping([1], body, f"w -> act if {CALLS}", "w -> y", "act -> w", value="$output.text")
    made |= {"packs": {"box": DEFERRED}, "budget": {"maxSteps": 20}}

    run = played(made, [[call("load_tools", names=["saw"])], [call("saw")], "ok"], box("hammer", "saw"))

    assert "load_tools" in offers(run)[0] and not offers(run)[0] & {"ask_user", "wait", "map"}
    assert "saw" in offers(run)[1] and run.status == "completed"


@pytest.mark.parametrize("value", ["saw", 3, {"a": 1}, [["saw"], 4, None]])
def test_a_graph_that_writes_the_key_breaks_nothing(value: Any) -> None:
    nodes = {"put": {"type": "control:assign", "patch": {"loadedTools": value}}, "think": THINK, "act": ACT}
    made = agent(
        nodes,
        "start -> put",
        "put -> think",
        f"think -> act if {CALLS}",
        "think -> end",
        "act -> think",
        end=None,
        packs={"box": DEFERRED},
        budget={"maxSteps": 20},
    )

    run = played(made, [[call("load_tools", names=["saw"])], [call("saw")], "done"], box("hammer", "saw"))

    assert run.status == "completed" and run.said[-1] == "saw was here"


def test_a_name_given_twice_stops_the_start() -> None:
    with pytest.raises(WrongUse, match=r"'map' is given twice, by the pack core and the pack box"):
        taken([], box("map"))
    with pytest.raises(WrongUse, match="load_tools"):
        taken([], box("load_tools"))
    twin = skill("web.search", title="x", timeout_s=5)(lambda_like)
    with pytest.raises(WrongUse, match="the catalogue and the catalogue"):
        taken([twin, twin])
    assert "web__search" in taken([twin])


def lambda_like(_given: Nothing, _context: SkillContext) -> str:
    """Says nothing."""
    return ""


def test_the_names_of_this_release_are_given_once() -> None:
    from registry.skills import catalogue

    assert {"web__search", "ask_user", "load_tools", "Skill"} <= taken(catalogue.build())
    assert isinstance(catalogue.build(), SkillRegistry)
