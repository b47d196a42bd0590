"""What an expression is made of, once read."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Number:
    """A literal, still as text: how large it may be is judged before it is computed."""

    text: str


@dataclass(frozen=True)
class Name:
    name: str
    where: str


@dataclass(frozen=True)
class Call:
    name: str
    arguments: tuple["Node", ...]
    where: str


@dataclass(frozen=True)
class Group:
    """Parentheses. Kept, because a percentage inside them is a plain number to what stands outside."""

    inner: "Node"


@dataclass(frozen=True)
class Items:
    """A list."""

    items: tuple["Node", ...]


@dataclass(frozen=True)
class Postfix:
    """`!` or `%` after an operand."""

    operator: str
    operand: "Node"


@dataclass(frozen=True)
class Prefix:
    """A sign, or `not`."""

    operator: str
    operand: "Node"


@dataclass(frozen=True)
class Binary:
    """A power or a comparison."""

    operator: str
    left: "Node"
    right: "Node"


@dataclass(frozen=True)
class Chain:
    """Operands of one rank, worked from left to right: one level however long it is."""

    first: "Node"
    rest: tuple[tuple[str, "Node"], ...]


@dataclass(frozen=True)
class Assign:
    name: str
    value: "Node"
    where: str


Node: TypeAlias = Number | Name | Call | Group | Items | Postfix | Prefix | Binary | Chain | Assign


def children(node: Node) -> Iterator[Node]:
    match node:
        case Call(arguments=parts) | Items(items=parts):
            yield from parts
        case Group(inner=one) | Postfix(operand=one) | Prefix(operand=one) | Assign(value=one):
            yield one
        case Binary(left=left, right=right):
            yield from (left, right)
        case Chain(first=first, rest=rest):
            yield first
            yield from (operand for _, operand in rest)


def weight(node: Node) -> int:
    """How many nodes one node counts for: each operator of a chain is one, parentheses are none."""
    if isinstance(node, Chain):
        return len(node.rest)
    return 0 if isinstance(node, Group) else 1
