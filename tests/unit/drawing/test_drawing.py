"""The picture of an agent's graph: everything in it can be found, and nothing in it is more than text."""

import json
import time
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.agents import AgentDefinition
from registry.graph.drawing import look, texts
from registry.graph.drawing.cards import duration
from registry.graph.drawing.scene import of_graph
from registry.graph.drawing.svg import describe, draw
from registry.graph.model import Graph
from registry.graph.validation import parse_agent
from registry.presets import SHIPPED, load

SVG = "{http://www.w3.org/2000/svg}"
CALLS = '$output.finishReason = "tool-calls"'

#: Every node type once.
EVERY: dict[str, Any] = {
    "nodes": {
        "start": {"type": "core:start"},
        "think": {"type": "llm:generate", "label": "Think it over"},
        "act": {"type": "tool:call", "calls": "$output.toolCalls", "approve": {"tools": ["email.send"]}},
        "keep": {"type": "control:assign", "patch": {"done": True}},
        "again": {"type": "control:goto", "target": '"think"'},
        "ask": {"type": "control:interrupt", "reason": "Which of the two?"},
        "give": {"type": "control:spawn", "calls": [{"agentId": "scout", "input": "look"}]},
        "each": {"type": "control:map", "items": "$state.items", "enter": "look", "body": ["look", "found"]},
        "look": {"type": "llm:generate", "tools": []},
        "found": {"type": "control:yield", "value": "$output.text"},
        "rest": {"type": "control:wait", "delayMs": 90_000},
        "over": {"type": "control:handoff", "agentId": "desk"},
        "end": {"type": "core:end", "output": "$state.done"},
    },
    "edges": [
        {"from": "start", "to": "think"},
        {"from": "think", "to": "act", "when": CALLS},
        {"from": "think", "to": "keep", "when": "exists($state.items) && length($state.items) > 1"},
        {"from": "think", "to": "over"},
        {"from": "act", "to": "think"},
        {"from": "keep", "to": "ask"},
        {"from": "ask", "to": "give"},
        {"from": "give", "to": "each"},
        {"from": "each", "to": "rest"},
        {"from": "look", "to": "found"},
        {"from": "rest", "to": "again"},
        {"from": "over", "to": "end"},
    ],
}


def agent(graph: Any = None, **fields: Any) -> AgentDefinition:
    body = {"id": "one", "instructions": "Work.", "budget": {"maxSteps": 9}} | fields
    found, findings = parse_agent(body | ({"graph": graph} if graph else {}))
    assert found is not None, [str(finding) for finding in findings]
    return found


def words(picture: str) -> list[str]:
    """Everything that can be read in the picture."""
    return [element.text or "" for element in ElementTree.fromstring(picture).iter(SVG + "text")]


def test_every_node_is_there_with_its_name_its_type_and_what_it_does() -> None:
    read = words(draw(agent(EVERY)))
    for node_id, node in EVERY["nodes"].items():
        assert node.get("label", node_id) in read
        assert node["type"] in read or f"{node['type']} · {node_id}" in read
    for fact in (
        "asks before email.send",
        "sets done",
        "Which of the two?",
        "scout",
        "for 1.5 min",
        "desk",
        "no tools",
    ):
        assert fact in read


def test_conditions_stand_on_their_edges_with_the_order_in_which_they_are_tried() -> None:
    read = words(draw(agent(EVERY)))
    assert CALLS in read
    assert [w for w in read if "$state.items" in w][1:] == ["exists($state.items)", "&& length($state.items) > 1"]
    assert {"1", "2", "else"} <= set(read)


def test_an_edge_without_a_choice_carries_nothing() -> None:
    nodes = {"a": {"type": "core:start"}, "b": {"type": "core:end"}}
    assert "else" not in words(draw(agent({"nodes": nodes, "edges": [{"from": "a", "to": "b"}]})))


def test_an_agent_without_a_graph_shows_the_default_loop() -> None:
    read = words(draw(agent()))
    assert {"start", "think", "act", "spawn", "handoff", "end"} <= set(read)
    assert read[0] == "Graph of one"


def test_the_body_of_a_map_lies_in_the_frame_of_its_map() -> None:
    scene = of_graph(Graph.model_validate(EVERY))
    ids = {part.card.id for part in scene.parts}
    assert not ids & {"look", "found"}
    (frame,) = (part for part in scene.parts if part.card.id == "each")
    assert frame.inner is not None
    assert frame.inner_at is not None
    assert {part.card.id for part in frame.inner.parts} == {"each item", "look", "found"}
    assert frame.inner_at.x + frame.inner.layout.width <= frame.card.width
    assert frame.inner_at.y + frame.inner.layout.height <= frame.card.height


def test_a_goto_leads_where_it_says_and_loops_are_told_from_the_way_on() -> None:
    scene = of_graph(Graph.model_validate(EVERY))
    back = {(t.source, t.target) for t, r in zip(scene.ties, scene.layout.routes, strict=True) if r.back}
    assert back == {("again", "think"), ("act", "think")}
    root = ElementTree.fromstring(draw(agent(EVERY)))
    dashed = [e for e in root.iter(SVG + "path") if e.get("stroke-dasharray") == "7 4"]
    assert len(dashed) == 2
    assert {e.get("stroke") for e in dashed} == {look.BACK}


def test_types_can_be_told_apart_without_colour() -> None:
    shapes = {type_: (style.outline(160, 60), style.icon) for type_, style in look.LOOKS.items()}
    assert len(set(shapes.values())) == len(shapes)
    assert set(shapes) == {node["type"] for node in EVERY["nodes"].values()} | {"item"}


def contrast(a: str, b: str) -> float:
    """WCAG 2 contrast of two colours."""

    def light(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((light(a), light(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_every_text_has_the_contrast_that_people_with_weak_eyes_need() -> None:
    grounds = [look.BACKGROUND, look.PLATE, *(style.fill for style in look.LOOKS.values())]
    assert min(contrast(ink, ground) for ink in (look.INK, look.MUTED) for ground in grounds) >= 4.5
    assert min(contrast(style.stroke, style.fill) for style in look.LOOKS.values()) >= 4.5
    assert min(contrast(line, look.BACKGROUND) for line in (look.LINE, look.BACK)) >= 4.5


def test_who_cannot_see_it_gets_it_in_words() -> None:
    root = ElementTree.fromstring(draw(agent(EVERY)))
    assert root.get("role") == "img"
    title, desc = root.find(SVG + "title"), root.find(SVG + "desc")
    assert title is not None
    assert desc is not None
    assert root.get("aria-labelledby") == f"{title.get('id')} {desc.get('id')}"
    told = desc.text or ""
    assert told.startswith("13 nodes and 12 edges.")
    assert f"think is llm:generate, then act when {CALLS}, else keep when exists($state.items)" in told
    assert told == describe(Graph.model_validate(EVERY))


#: No NUL is in it: a definition that holds one is refused.
HOSTILE = '</text><script>alert("1")</script>&amp;<!-- \u202e\u0001\u200b]]>'


def test_what_a_definition_says_is_text_and_nothing_else() -> None:
    graph = json.loads(json.dumps(EVERY))
    graph["nodes"]["think"]["label"] = HOSTILE
    graph["nodes"]["ask"]["reason"] = HOSTILE
    graph["nodes"][HOSTILE[:80]] = {"type": "core:end", "output": HOSTILE}
    graph["edges"].insert(1, {"from": "think", "to": HOSTILE[:80], "when": "$state.x = '</g><script>'"})
    picture = draw(agent(graph, name=HOSTILE))
    root = ElementTree.fromstring(picture)
    kinds = {element.tag.removeprefix(SVG) for element in root.iter()}
    assert kinds == {"svg", "title", "desc", "rect", "circle", "path", "text", "g"}
    assert not [name for element in root.iter() for name in element.attrib if name.startswith("on") or "href" in name]
    assert picture.isascii()
    assert not set("\u202e\u0001\u200b") & set("".join(root.itertext()))


KEPT = st.characters(codec="utf-8", exclude_characters="\0")


@given(st.text(KEPT, max_size=120), st.text(KEPT, max_size=80))
@settings(max_examples=60)
def test_no_name_breaks_the_picture(name: str, label: str) -> None:
    graph = {"nodes": {"a": {"type": "core:start", "label": label}, "b": {"type": "core:end"}}, "edges": []}
    graph["edges"] = [{"from": "a", "to": "b"}]
    body = {"id": "one", "name": name.encode("utf-8", "ignore").decode(), "graph": graph}
    ElementTree.fromstring(draw(AgentDefinition.model_validate(body)))


def test_texts_of_any_length_take_little_room_and_little_time() -> None:
    graph = json.loads(json.dumps(EVERY))
    graph["nodes"]["think"]["label"] = "x" * 200_000
    graph["nodes"]["keep"]["patch"] = {"k" * 200_000: 1}
    began = time.process_time()
    root = ElementTree.fromstring(draw(agent(graph, name="y" * 200_000)))
    assert time.process_time() - began < 5
    assert float(root.get("width", "")) < 2_000
    assert max(len(element.text or "") for element in root.iter(SVG + "text")) < 150


def test_several_drawings_in_one_page_do_not_share_ids() -> None:
    roots = [ElementTree.fromstring(draw(one)) for one in (agent(), agent(EVERY))]
    ids = [{element.get("id") for element in root.iter()} - {None} for root in roots]
    assert all(ids)
    assert not ids[0] & ids[1]


def test_a_long_condition_is_cut_on_its_plate_and_whole_in_its_title() -> None:
    when = " && ".join(f"$state.key{n} = {n}" for n in range(40))
    graph = {
        "nodes": {"a": {"type": "core:start"}, "b": {"type": "core:end"}, "c": {"type": "core:end"}},
        "edges": [{"from": "a", "to": "b", "when": when}, {"from": "a", "to": "c"}],
    }
    root = ElementTree.fromstring(draw(agent(graph)))
    lines = [e.text or "" for e in root.iter(SVG + "text") if "$state.key" in (e.text or "")]
    assert len(lines) == 6
    assert lines[-1].endswith("…")
    assert when in [e.text for e in root.iter(SVG + "title")]


@given(st.text(st.characters(codec="ascii", categories=["L", "N", "P", "S"]), min_size=1, max_size=300), st.booleans())
def test_wrapped_lines_fit_and_lose_nothing_until_they_are_cut(text: str, mono: bool) -> None:
    lines = texts.wrap(text, 120, 11, most=4, mono=mono)
    assert len(lines) <= 4
    assert all(texts.width(line, 11, mono=mono) <= 120 for line in lines)
    if not lines[-1].endswith("…"):
        assert "".join(lines) == text


@pytest.mark.parametrize(
    ("ms", "said"), [(1, "1 ms"), (999, "999 ms"), (1_500, "1.5 s"), (600_000, "10 min"), (5_400_000, "1.5 h")]
)
def test_times_are_said_in_their_largest_unit(ms: int, said: str) -> None:
    assert duration(ms) == said


@pytest.mark.parametrize("id_", list(load([SHIPPED])))
def test_every_shipped_preset_can_be_drawn_and_its_nodes_do_not_touch(id_: str) -> None:
    preset = load([SHIPPED])[id_].agent
    scene = of_graph(preset.effective_graph())
    rows = sorted((scene.layout.boxes[part.card.id], part.card) for part in scene.parts)
    assert rows
    for (a, card), (b, other) in pairwise(rows):
        apart = b.x >= a.x + card.width or b.y >= a.y + card.height or a.y >= b.y + other.height
        assert apart, (card.id, other.id)
    ElementTree.fromstring(draw(preset))


def test_the_command_writes_to_standard_output_or_a_file(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from orchestrator.cli import application

    file, out = tmp_path / "scout.json", tmp_path / "scout.svg"
    file.write_text(json.dumps({"name": "Scout", "instructions": "Look.", "graph": EVERY, "budget": {"maxSteps": 9}}))
    run = CliRunner().invoke
    shown = run(application(), ["graph", "draw", str(file)])
    assert shown.exit_code == 0
    assert run(application(), ["graph", "draw", str(file), "--out", str(out)]).exit_code == 0
    assert out.read_text() == shown.stdout == draw(agent(EVERY, id="scout", name="Scout", instructions="Look."))


def test_the_command_refuses_a_definition_with_errors_and_draws_nothing(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from orchestrator.cli import application

    file = tmp_path / "scout.json"
    file.write_text(json.dumps({"instructions": "Look.", "graph": {"nodes": {}, "edges": []}}))
    shown = CliRunner().invoke(application(), ["graph", "draw", str(file)])
    assert shown.exit_code == 1
    assert shown.stdout == ""
    assert "start_count" in shown.stderr
