"""An agent's graph as a scene: cards and ties with their places. A map holds a scene of its own, its body."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from registry.graph import expressions
from registry.graph.drawing import texts
from registry.graph.drawing.cards import KIND, Card, card, item_card
from registry.graph.drawing.layout import Box, Layout, Link, arrange
from registry.graph.drawing.shapes import Point
from registry.graph.model import End, Goto, Graph, Map, Yield

#: Font size of a condition, the room for one of its lines, and the height of a line.
CONDITION, ROOM, LINE = 11.0, 236.0, 14.5
#: Around the text of a plate; room for the number before it.
PLATE_X, PLATE_Y, NUMBER = 8.0, 5.0, 18.0
#: Around the body of a map.
FRAME: Final = 18.0

#: `plain` and `else` are edges; `goto` is the way of a goto, `item` that into a map's body; `ignored` is an edge that
#: nothing follows.
TieKind = Literal["plain", "else", "goto", "item", "ignored"]


@dataclass(frozen=True)
class Plate:
    """What stands on a tie."""

    lines: tuple[str, ...]
    width: float
    height: float
    #: Which condition of its node it is, where the node has several.
    number: int | None = None
    code: bool = False


@dataclass(frozen=True)
class Tie:
    source: str
    target: str
    kind: TieKind
    plate: Plate | None = None
    #: The condition whole, for those who hover or listen.
    when: str | None = None


@dataclass(frozen=True)
class Part:
    """A card, and the body of its map."""

    card: Card
    inner: "Scene | None" = None
    #: Where the body's upper left corner lies, from that of the card.
    inner_at: Point | None = None
    #: The card of the map itself, at the top of its frame.
    head: Card | None = None


@dataclass(frozen=True)
class Scene:
    parts: tuple[Part, ...]
    ties: tuple[Tie, ...]
    layout: Layout


def of_graph(graph: Graph) -> Scene:
    """The scene of a graph that validation let through."""
    homes = {inner: node_id for node_id, node in graph.nodes.items() if isinstance(node, Map) for inner in node.body}
    inside: dict[str, list[Tie]] = {}
    outside: list[Tie] = []
    for tie in _ties(graph):
        source, target = homes.get(tie.source), homes.get(tie.target)
        if source is not None and source == target:
            inside.setdefault(source, []).append(tie)
        else:  # nothing leads out of a body; what leads into one from elsewhere ends at its frame
            outside.append(replace(tie, source=source or tie.source, target=target or tie.target))
    parts = [_part(graph, node_id, inside.get(node_id, [])) for node_id in graph.nodes if node_id not in homes]
    return _scene(parts, outside)


def _part(graph: Graph, node_id: str, ties: list[Tie]) -> Part:
    node = graph.nodes[node_id]
    own = card(node_id, node)
    if not isinstance(node, Map):
        return Part(own)
    begin = _unused("each item", graph.nodes)
    body = [Part(item_card(begin)), *(Part(card(inner, graph.nodes[inner])) for inner in node.body)]
    inner = _scene(body, [Tie(begin, node.enter, "item"), *ties])
    width = max(own.width, inner.layout.width + 2 * FRAME)
    height = own.height + inner.layout.height + 2 * FRAME
    at = Point((width - inner.layout.width) / 2, own.height + FRAME)
    return Part(replace(own, width=width, height=height), inner, at, replace(own, width=width))


def _unused(wanted: str, taken: Mapping[str, object]) -> str:
    while wanted in taken:
        wanted += "'"
    return wanted


def _scene(parts: Iterable[Part], ties: Iterable[Tie]) -> Scene:
    parts, ties = tuple(parts), tuple(ties)
    boxes = [Box(part.card.id, part.card.width, part.card.height) for part in parts]
    links = [
        Link(tie.source, tie.target, (tie.plate.width, tie.plate.height) if tie.plate is not None else None)
        for tie in ties
    ]
    return Scene(parts, ties, arrange(boxes, links))


def _ties(graph: Graph) -> Iterator[Tie]:
    """Edges in list order, then the ways of gotos whose target is written out."""
    tried: dict[str, int] = {}
    for edge in graph.edges:
        siblings = graph.edges_from(edge.source)
        if isinstance(graph.nodes[edge.source], (End, Goto, Yield)):
            yield Tie(edge.source, edge.target, "ignored", _word("ignored"), edge.when)
        elif edge.when is None:
            yield (
                Tie(edge.source, edge.target, "else", _word("else"))
                if siblings[1:]
                else Tie(edge.source, edge.target, "plain")
            )
        else:
            tried[edge.source] = number = tried.get(edge.source, 0) + 1
            several = sum(sibling.when is not None for sibling in siblings) > 1
            yield Tie(edge.source, edge.target, "plain", _condition(edge.when, number if several else None), edge.when)
    for node_id, node in graph.nodes.items():
        target = expressions.compile(node.target).literal if isinstance(node, Goto) else None
        if target is not None:
            yield Tie(node_id, target, "goto")


def _word(word: str) -> Plate:
    return Plate((word,), texts.width(word, KIND) + 2 * PLATE_X, LINE + 2 * PLATE_Y - 2)


def _condition(when: str, number: int | None) -> Plate:
    lines = texts.wrap_expression(texts.plain(when), ROOM, CONDITION, most=6)
    wide = max((texts.width(line, CONDITION, mono=True) for line in lines), default=0.0)
    room = NUMBER if number is not None else 0.0
    return Plate(tuple(lines), wide + room + 2 * PLATE_X, len(lines) * LINE + 2 * PLATE_Y, number, code=True)
