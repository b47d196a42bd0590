"""The layout: whatever the graph, nothing lies on anything else, links join what they say, and time is bounded."""

import time
from itertools import combinations, pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from registry.graph.drawing.coordinates import nearest
from registry.graph.drawing.layout import Box, Layout, Link, Point, arrange

WIDE, HIGH = 120.0, 48.0
LABEL = (90.0, 22.0)
#: Rounding of sums of floats.
SLACK = 0.01

Rectangle = tuple[float, float, float, float]


def boxes(count: int) -> list[Box]:
    return [Box(str(n), WIDE + 10 * (n % 3), HIGH + 8 * (n % 2)) for n in range(count)]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[Box], list[Link]]:
    count = draw(st.integers(1, 14))
    ends = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    links = draw(st.lists(st.tuples(ends, st.booleans()), max_size=30))
    return boxes(count), [Link(str(a), str(b), LABEL if labelled else None) for (a, b), labelled in links]


def rectangles(drawn: Layout, placed: list[Box]) -> dict[str, Rectangle]:
    corners = ((box, drawn.boxes[box.id]) for box in placed)
    return {box.id: (at.x, at.y, at.x + box.width, at.y + box.height) for box, at in corners}


def around(centre: Point, size: tuple[float, float]) -> Rectangle:
    return centre.x - size[0] / 2, centre.y - size[1] / 2, centre.x + size[0] / 2, centre.y + size[1] / 2


def overlap(a: Rectangle, b: Rectangle) -> bool:
    return min(a[2], b[2]) - max(a[0], b[0]) > SLACK and min(a[3], b[3]) - max(a[1], b[1]) > SLACK


def touches(point: Point, box: Rectangle) -> bool:
    inside = box[0] - SLACK <= point.x <= box[2] + SLACK and box[1] - SLACK <= point.y <= box[3] + SLACK
    edge = min(abs(point.x - box[0]), abs(point.x - box[2]), abs(point.y - box[1]), abs(point.y - box[3]))
    return inside and edge <= SLACK


@given(graphs())
@settings(max_examples=150)
def test_boxes_and_labels_never_lie_on_each_other_and_all_are_inside(graph: tuple[list[Box], list[Link]]) -> None:
    placed, links = graph
    drawn = arrange(placed, links)
    shapes = list(rectangles(drawn, placed).values())
    # Loops of a box on itself share its side; there is one label for each of them, in a row.
    shapes += [around(r.label, LABEL) for r in drawn.routes if r.label is not None]
    assert not [pair for pair in combinations(shapes, 2) if overlap(*pair)]
    for x1, y1, x2, y2 in shapes:
        assert -SLACK <= x1 <= x2 <= drawn.width + SLACK
        assert -SLACK <= y1 <= y2 <= drawn.height + SLACK


@given(graphs())
@settings(max_examples=150)
def test_every_link_leads_from_the_edge_of_its_source_to_that_of_its_target(
    graph: tuple[list[Box], list[Link]],
) -> None:
    placed, links = graph
    drawn = arrange(placed, links)
    at = rectangles(drawn, placed)
    for link, route in zip(links, drawn.routes, strict=True):
        assert touches(route.curve[0], at[link.source])
        assert touches(route.curve[-1], at[link.target])
        assert len(route.curve) % 3 == 1
        assert (route.label is None) == (link.label is None)


@given(graphs())
@settings(max_examples=150)
def test_links_go_down_but_for_those_that_close_a_cycle(graph: tuple[list[Box], list[Link]]) -> None:
    placed, links = graph
    drawn = arrange(placed, links)
    at = rectangles(drawn, placed)
    for link, route in zip(links, drawn.routes, strict=True):
        if link.source == link.target:
            assert route.back
        elif route.back:
            assert at[link.target][3] < at[link.source][1]
        else:
            assert at[link.source][3] < at[link.target][1]


@given(graphs())
@settings(max_examples=50)
def test_a_link_never_runs_through_a_box(graph: tuple[list[Box], list[Link]]) -> None:
    placed, links = graph
    drawn = arrange(placed, links)
    at = rectangles(drawn, placed)
    for link, route in zip(links, drawn.routes, strict=True):
        others = [box for id_, box in at.items() if id_ not in (link.source, link.target)]
        for a, b in zip(route.curve[::3], route.curve[3::3], strict=False):
            if a.x == b.x:  # bends lie between the layers, where no box is
                low, high = sorted((a.y, b.y))
                assert not [box for box in others if overlap((a.x - 1, low, a.x + 1, high), box)]


@given(st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=25))
def test_without_a_cycle_nothing_goes_back(pairs: list[tuple[int, int]]) -> None:
    links = [Link(str(min(pair)), str(max(pair))) for pair in pairs if pair[0] != pair[1]]
    assert not any(route.back for route in arrange(boxes(12), links).routes)


@given(graphs())
@settings(max_examples=25)
def test_the_same_graph_is_always_laid_out_the_same(graph: tuple[list[Box], list[Link]]) -> None:
    assert arrange(*graph) == arrange(*graph)


@given(
    st.lists(st.tuples(st.floats(-500, 500), st.floats(0.1, 9)), min_size=1, max_size=12), st.floats(0, 60, width=32)
)
def test_positions_keep_their_gaps_and_stay_where_wanted_when_they_can(
    given_: list[tuple[float, float]], gap: float
) -> None:
    wanted, weights = [want for want, _ in given_], [weight for _, weight in given_]
    found = nearest(wanted, weights, [gap] * (len(wanted) - 1))
    assert all(b - a >= gap - SLACK for a, b in pairwise(found))
    if all(b - a >= gap for a, b in pairwise(wanted)):
        assert all(abs(a - b) < SLACK for a, b in zip(wanted, found, strict=True))


def test_a_chain_is_one_straight_line() -> None:
    drawn = arrange([Box(str(n), WIDE, HIGH) for n in range(20)], [Link(str(n), str(n + 1)) for n in range(19)])
    assert len({point.x for route in drawn.routes for point in route.curve}) == 1
    assert drawn.width == WIDE


def test_a_fan_is_even_and_its_ends_stand_in_the_middle() -> None:
    arms = [str(n) for n in range(1, 8)]
    links = [Link("0", arm) for arm in arms] + [Link(arm, "8") for arm in arms]
    drawn = arrange([Box(str(n), WIDE, HIGH) for n in range(9)], links)
    places = sorted(drawn.boxes[arm].x for arm in arms)
    gaps = {round(b - a, 1) for a, b in pairwise(places)}
    assert len(gaps) == 1
    assert abs(drawn.boxes["0"].x - places[3]) < 1
    assert abs(drawn.boxes["8"].x - places[3]) < 1


def test_a_complete_bipartite_pair_can_be_drawn_and_a_ladder_has_no_crossing() -> None:
    links = [Link(f"a{n}", f"b{5 - n}") for n in range(6)]
    drawn = arrange([Box(f"{side}{n}", WIDE, HIGH) for side in "ab" for n in range(6)], links)
    ends = [(route.curve[0].x, route.curve[-1].x) for route in drawn.routes]
    assert not [1 for p, q in combinations(ends, 2) if (p[0] - q[0]) * (p[1] - q[1]) < 0]


def test_an_empty_graph_takes_no_room() -> None:
    assert arrange([], []) == Layout(0, 0, {}, ())


def test_the_largest_graph_we_take_is_laid_out_in_seconds() -> None:
    placed = boxes(500)
    spine = [Link(str(n), str(n + 1), LABEL) for n in range(499)]
    jumps = [Link(str(n * 7 % 500), str(n * 131 % 500), LABEL) for n in range(1501)]
    began = time.process_time()
    drawn = arrange(placed, spine + jumps)
    assert time.process_time() - began < 20
    assert len(drawn.routes) == 2000
    shapes = sorted(rectangles(drawn, placed).values(), key=lambda box: box[1])
    assert not [pair for pair in pairwise(shapes) if overlap(*pair)]
