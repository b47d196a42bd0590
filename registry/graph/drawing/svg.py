"""A scene as SVG: one file without scripts, fonts or links, that reads on light and on dark pages.

Everything a definition says goes in as text of elements and attributes, written by an XML serializer.
"""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Final
from xml.etree.ElementTree import Element, SubElement, tostring

from registry.agents import AgentDefinition
from registry.graph.drawing import cards, look, scene, texts
from registry.graph.drawing.cards import Card
from registry.graph.drawing.scene import Part, Plate, Scene, Tie
from registry.graph.drawing.shapes import Point, Route
from registry.graph.model import Graph

#: Around the drawing; height of the head line and of the line that explains the signs.
_MARGIN, _HEAD, _FOOT = 24.0, 34.0, 30.0
#: Room for the title.
_TITLE = 640.0
#: Length and half width of the head of an arrow.
_TIP, _HALF = 9.0, 4.2
_DASHES: Final = {"item": "2 4", "ignored": "1 4"}
#: Sentences of the description that a screen reader gets, and characters of a condition in it.
_TOLD, _CONDITION = 400, 160


def draw(agent: AgentDefinition) -> str:
    """The graph of an agent as an SVG document, all of it ASCII: other characters are written as references."""
    graph = agent.effective_graph()
    whole = scene.of_graph(graph)
    foot = _legend(whole)
    title = texts.cut(f"Graph of {texts.plain(agent.name)}", _TITLE, 14, bold=True)
    heading = texts.width(title, 14, bold=True) + 2 * _MARGIN
    wide = max(whole.layout.width + 2 * _MARGIN, heading, texts.width(foot, 10.5) + 2 * _MARGIN)
    high = whole.layout.height + 2 * _MARGIN + _HEAD + (_FOOT if foot else 0)
    root = _root(wide, high, title, describe(graph))
    _text(root, _MARGIN, _MARGIN + 8, title, size=14, bold=True)
    inside = _group(root, (wide - whole.layout.width) / 2, _MARGIN + _HEAD)
    _paint(inside, whole)
    if foot:
        _text(root, _MARGIN, high - 16, foot, size=10.5, fill=look.MUTED)
    written: bytes = tostring(root, encoding="us-ascii", xml_declaration=False)
    return written.decode() + "\n"


def describe(graph: Graph) -> str:
    """The graph in sentences, for those who cannot see it."""
    said = [f"{len(graph.nodes)} nodes and {len(graph.edges)} edges."]
    for node_id, node in graph.nodes.items():
        ways = [_way(edge.target, edge.when) for edge in graph.edges_from(node_id)]
        facts = f"{texts.plain(node_id)} is {node.type}"
        said.append(f"{facts}, then {', else '.join(ways)}." if ways else f"{facts}.")
    more = [f"And {len(said) - _TOLD} more nodes."] if len(said) > _TOLD else []
    return " ".join([*said[:_TOLD], *more])


def _way(target: str, when: str | None) -> str:
    if when is None:
        return texts.plain(target)
    shown = texts.plain(when)
    return f"{texts.plain(target)} when {shown if len(shown) <= _CONDITION else shown[:_CONDITION] + '…'}"


def _root(wide: float, high: float, title: str, described: str) -> Element:
    # Several drawings may stand in one page: ids that say what they belong to keep their titles apart.
    mark = sha256((title + described).encode("utf-8", "replace")).hexdigest()[:8]
    size = {"width": _n(wide), "height": _n(high), "viewBox": f"0 0 {_n(wide)} {_n(high)}"}
    named = {"role": "img", "aria-labelledby": f"title-{mark} desc-{mark}"}
    root = Element("svg", {"xmlns": "http://www.w3.org/2000/svg", **size, **named, "font-family": look.SANS})
    SubElement(root, "title", {"id": f"title-{mark}"}).text = title
    SubElement(root, "desc", {"id": f"desc-{mark}"}).text = described
    frame = {"x": "0.5", "y": "0.5", "width": _n(wide - 1), "height": _n(high - 1), "rx": "10"}
    SubElement(root, "rect", {**frame, "fill": look.BACKGROUND, "stroke": look.BORDER})
    return root


def _legend(whole: Scene) -> str:
    """What the signs of this drawing mean."""
    ties = list(_all_ties(whole))
    said = []
    if any(route.back for _, route in ties):
        said.append("dashed: goes back")
    if any(tie.kind == "else" for tie, _ in ties):
        said.append("“else”, with a stroke across: taken when no condition holds")
    if any(tie.plate is not None and tie.plate.number is not None for tie, _ in ties):
        said.append("numbers: order in which conditions are tried")
    return "  ·  ".join(said)


def _all_ties(whole: Scene) -> Iterator[tuple[Tie, Route]]:
    yield from zip(whole.ties, whole.layout.routes, strict=True)
    for part in whole.parts:
        if part.inner is not None:
            yield from _all_ties(part.inner)


def _paint(parent: Element, whole: Scene) -> None:
    """Lines first, then cards, then what is written on the lines."""
    for tie, route in zip(whole.ties, whole.layout.routes, strict=True):
        _line(parent, tie, route)
    for part in whole.parts:
        _part(parent, part, whole.layout.boxes[part.card.id])
    for tie, route in zip(whole.ties, whole.layout.routes, strict=True):
        if tie.plate is not None and route.label is not None:
            _plate(parent, tie, tie.plate, route)


def _part(parent: Element, part: Part, at: Point) -> None:
    group = _group(parent, at.x, at.y)
    if part.inner is None or part.inner_at is None or part.head is None:
        _card(group, part.card)
        return
    style = look.LOOKS[part.card.type]
    box = {"width": _n(part.card.width), "height": _n(part.card.height), "rx": "12"}
    frame = {"fill": style.fill, "fill-opacity": "0.35", "stroke": style.stroke, "stroke-width": "1.2"}
    SubElement(group, "rect", {**box, **frame, "stroke-dasharray": "2 4", "stroke-linecap": "round"})
    _card(group, part.head)
    _paint(_group(group, *part.inner_at), part.inner)


def _card(group: Element, card: Card) -> None:
    style = look.LOOKS[card.type]
    line = {"fill": style.fill, "stroke": style.stroke, "stroke-width": "1.4", "stroke-linejoin": "round"}
    for path in style.outline(card.width, card.height):
        SubElement(group, "path", {"d": path, **line})
    if card.type == "item":
        _text(
            group, card.width / 2, card.height / 2 + 4, card.name, size=cards.KIND, fill=style.stroke, anchor="middle"
        )
        return
    icon = _group(group, cards.PADDING, 13)
    SubElement(icon, "path", {"d": style.icon, **line, "fill": "none", "stroke-linecap": "round"})
    left = cards.PADDING + cards.ICON + cards.BESIDE
    _text(group, left, 19, card.name, size=cards.NAME, bold=True)
    _text(group, left, 34, card.kind, size=cards.KIND, fill=look.MUTED)
    for number, fact in enumerate(card.facts):
        x = left if card.type == "core:end" else cards.PADDING  # clear of its round corners
        _text(group, x, 54 + number * cards.LINE, fact.text, size=cards.FACT, mono=fact.code)


def _line(parent: Element, tie: Tie, route: Route) -> None:
    colour = look.BACK if route.back else look.LINE
    *curve, last = route.curve
    before = curve[-1]
    # The line ends where the head of the arrow begins, in the direction in which it arrives.
    x, y = _direction(before, last)
    neck = Point(last.x - x * _TIP, last.y - y * _TIP)
    moves = [f"M{_at(route.curve[0])}"]
    points = [*route.curve[1:-1], neck]
    moves += [f"C{_at(a)} {_at(b)} {_at(c)}" for a, b, c in _threes(points)]
    dash = {"plain": "", "else": "", "goto": "", "item": "2 4", "ignored": "1 4"}[tie.kind] or (
        "7 4" if route.back else ""
    )
    style = {"fill": "none", "stroke": colour, "stroke-width": "1.5", "stroke-linecap": "round"}
    SubElement(parent, "path", {"d": "".join(moves), **style, **({"stroke-dasharray": dash} if dash else {})})
    head = [last, Point(neck.x - y * _HALF, neck.y + x * _HALF), Point(neck.x + y * _HALF, neck.y - x * _HALF)]
    SubElement(parent, "path", {"d": "M" + "L".join(map(_at, head)) + "Z", "fill": colour})
    if tie.kind == "else":
        x, y = _direction(route.curve[0], route.curve[1])
        middle = Point(route.curve[0].x + x * 6, route.curve[0].y + y * 6)
        slash = f"M{_n(middle.x - 5)} {_n(middle.y + 4)}L{_n(middle.x + 5)} {_n(middle.y - 4)}"
        SubElement(parent, "path", {"d": slash, **style})


def _plate(parent: Element, tie: Tie, plate: Plate, route: Route) -> None:
    assert route.label is not None
    colour = look.BACK if route.back else look.LINE
    group = _group(parent, route.label.x - plate.width / 2, route.label.y - plate.height / 2)
    if tie.when is not None:
        SubElement(group, "title").text = texts.plain(tie.when)
    box = {"width": _n(plate.width), "height": _n(plate.height), "rx": "5"}
    SubElement(group, "rect", {**box, "fill": look.PLATE, "stroke": colour, "stroke-width": "0.8"})
    left = scene.PLATE_X
    if plate.number is not None:
        middle = {"cx": _n(left + 5.5), "cy": _n(scene.PLATE_Y + scene.LINE / 2), "r": "7"}
        SubElement(group, "circle", {**middle, "fill": colour})
        y = scene.PLATE_Y + scene.LINE / 2 + 3.5
        _text(group, left + 5.5, y, str(plate.number), size=9.5, bold=True, fill=look.PLATE, anchor="middle")
        left += scene.NUMBER
    size = scene.CONDITION if plate.code else cards.KIND
    for number, line in enumerate(plate.lines):
        y = scene.PLATE_Y + number * scene.LINE + (11 if plate.code else 10)
        _text(group, left, y, line, size=size, mono=plate.code, fill=look.INK if plate.code else look.MUTED)


def _direction(a: Point, b: Point) -> Point:
    length = ((b.x - a.x) ** 2 + (b.y - a.y) ** 2) ** 0.5
    return Point((b.x - a.x) / length, (b.y - a.y) / length) if length else Point(0.0, 1.0)


def _threes(points: Sequence[Point]) -> Iterator[tuple[Point, Point, Point]]:
    for i in range(0, len(points), 3):
        yield points[i], points[i + 1], points[i + 2]


def _group(parent: Element, x: float, y: float) -> Element:
    return SubElement(parent, "g", {"transform": f"translate({_n(x)} {_n(y)})"})


def _text(
    parent: Element,
    x: float,
    y: float,
    words: str,
    *,
    size: float,
    fill: str = look.INK,
    bold: bool = False,
    mono: bool = False,
    anchor: str = "start",
) -> None:
    attributes: dict[str, str] = {"x": _n(x), "y": _n(y), "font-size": _n(size), "fill": fill}
    if bold:
        attributes["font-weight"] = "600"
    if mono:
        attributes["font-family"] = look.MONO
    if anchor != "start":
        attributes["text-anchor"] = anchor
    SubElement(parent, "text", attributes).text = words


def _at(point: Point) -> str:
    return f"{_n(point.x)} {_n(point.y)}"


def _n(number: float) -> str:
    """A coordinate with one digit after the point: more cannot be seen."""
    return f"{round(number, 1):g}" if abs(number) < 99_999 else f"{number:.1f}"


__all__ = ["describe", "draw"]
