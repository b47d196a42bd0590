"""An expression from text to value: read, judged for size, then computed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from registry.base import Json
from registry.skills.mathematics import grammar, nodes
from registry.skills.mathematics.arithmetic import Arithmetic
from registry.skills.mathematics.counting import factorial, modulo
from registry.skills.mathematics.functions import CONSTANTS, FUNCTIONS, constant
from registry.skills.mathematics.nodes import Node
from registry.skills.mathematics.powers import power
from registry.skills.mathematics.printing import as_json, show
from registry.skills.mathematics.values import (
    MAX_BITS,
    Kind,
    Value,
    bits,
    domain_error,
    invalid,
    is_real,
    kind,
    too_large,
)

MAX_NODES: Final = 500
#: Parentheses, calls, signs and powers inside one another; a chain of sums or products is one level.
MAX_LEVELS: Final = 50
HUNDRED: Final = Fraction(100)
#: Names that no statement and no caller may give a value.
RESERVED: Final = frozenset({*CONSTANTS, *FUNCTIONS, *grammar.WORDS})
#: A power of ten beyond which a literal is refused unseen: an expression has no digits enough to bring it back.
_MAX_EXPONENT: Final = MAX_BITS


@dataclass(frozen=True)
class Answer:
    """The last value of an expression: as text, as JSON, and what kind it is."""

    result: str
    value: Json
    type: Kind


def evaluate(
    expression: str,
    variables: Mapping[str, int | float] | None = None,
    *,
    precision: int = 15,
    check: Callable[[], None] = lambda: None,
) -> Answer:
    """Evaluates an expression.

    Args:
        expression: statements of the grammar (spec: skills 7.16).
        variables: names with a value from the start.
        precision: significant digits shown; twenty more are worked with.
        check: called between the steps; raises when the time is over.

    Raises:
        SkillError: `invalid_input`, `domain_error`, `too_large`, or what `check` raises.
    """
    statements = grammar.read(expression)
    _judge(statements)
    # A decimal fraction of the caller is meant as it is written, not as the double that comes nearest.
    known = {n: Fraction(v if isinstance(v, int) else repr(v)) for n, v in (variables or {}).items()}
    evaluation = _Evaluation(Arithmetic(precision, check), known)
    value: Value = None
    for statement in statements:
        value = evaluation.of(statement)
    value = evaluation.arithmetic.final(value)
    return Answer(show(value, precision, check), as_json(value), kind(value))


def _judge(statements: list[Node]) -> None:
    layer, count = statements, 0
    for _ in range(MAX_LEVELS + 1):
        count += sum(map(nodes.weight, layer))
        if count > MAX_NODES:
            raise too_large(f"the expression has more than {MAX_NODES} nodes")
        layer = [child for node in layer for child in nodes.children(node)]
        if not layer:
            return
    raise too_large(f"the expression nests deeper than {MAX_LEVELS} levels")


class _Evaluation:
    """One walk through the statements, with what they assigned so far."""

    def __init__(self, arithmetic: Arithmetic, variables: dict[str, Value]) -> None:
        self.arithmetic = arithmetic
        self._variables = variables

    def of(self, node: Node) -> Value:
        match node:
            case nodes.Number(text):
                return _literal(text)
            case nodes.Name():
                return self._name(node)
            case nodes.Group(inner):
                return self.of(inner)
            case nodes.Items(items):
                return [self.of(item) for item in items]
            case nodes.Call():
                return self._call(node)
            case nodes.Prefix(operator, operand):
                return self._prefix(operator, self.of(operand))
            case nodes.Postfix(operator, operand):
                return self._postfix(operator, self.of(operand))
            case nodes.Binary("^", left, right):
                base, exponent = self._number(left, "^"), self._number(right, "^")
                return power(self.arithmetic, base, exponent)
            case nodes.Binary(operator, left, right):
                return self._compare(operator, self.of(left), self.of(right))
            case nodes.Chain():
                return self._chain(node)
            case nodes.Assign():
                return self._assign(node)

    def _number(self, node: Node, what: str) -> Value:
        return self.arithmetic.number(self.of(node), what)

    def _name(self, node: nodes.Name) -> Value:
        if node.name in self._variables:
            return self._variables[node.name]
        if node.name in CONSTANTS:
            return constant(self.arithmetic, node.name)
        if node.name in FUNCTIONS:
            raise invalid(f"{node.name} is a function and needs its arguments in parentheses ({node.where})")
        raise invalid(f"the name {node.name[:40]!r} is not known ({node.where})")

    def _call(self, node: nodes.Call) -> Value:
        function = FUNCTIONS.get(node.name)
        if function is None:
            known = node.name in self._variables or node.name in CONSTANTS
            remedy = "; write * to multiply" if known else ""
            raise invalid(f"there is no function {node.name[:40]!r}{remedy} ({node.where})")
        arguments = [self.of(argument) for argument in node.arguments]
        return function.call(self.arithmetic, node.name, arguments)

    def _assign(self, node: nodes.Assign) -> Value:
        if node.name in RESERVED:
            raise invalid(f"{node.name} has its meaning already and takes no value ({node.where})")
        value = self.of(node.value)
        self._variables[node.name] = value
        return value

    def _prefix(self, operator: str, value: Value) -> Value:
        if operator == "not":
            return not _boolean(value, "not")
        number = self.arithmetic.number(value, operator)
        return self.arithmetic.negate(number) if operator == "-" else number

    def _postfix(self, operator: str, value: Value) -> Value:
        number = self.arithmetic.number(value, operator)
        return factorial(self.arithmetic, number) if operator == "!" else self.arithmetic.divide(number, HUNDRED)

    def _chain(self, node: nodes.Chain) -> Value:
        value = self.of(node.first)
        for operator, operand in node.rest:
            value = self._link(operator, value, operand)
        return value

    def _link(self, operator: str, left: Value, operand: Node) -> Value:
        if operator in ("and", "or"):
            # Both sides are computed and have to be booleans, whatever the first one says.
            one, other = _boolean(left, operator), _boolean(self.of(operand), operator)
            return (one and other) if operator == "and" else (one or other)
        one, other = self.arithmetic.number(left, operator), self._number(operand, operator)
        if operator in "+-" and isinstance(operand, nodes.Postfix) and operand.operator == "%":
            other = self.arithmetic.multiply(one, other)
        match operator:
            case "+":
                return self.arithmetic.add(one, other)
            case "-":
                return self.arithmetic.subtract(one, other)
            case "*":
                return self.arithmetic.multiply(one, other)
            case "/":
                return self.arithmetic.divide(one, other)
        return modulo(self.arithmetic, one, other)

    def _compare(self, operator: str, left: Value, right: Value) -> bool:
        if operator in ("==", "!="):
            return self._equal(left, right) is (operator == "==")
        one, other = (self.arithmetic.number(side, operator) for side in (left, right))
        if not (is_real(one) and is_real(other)):
            raise domain_error("complex numbers have no order")
        if operator in (">", "<="):
            one, other = other, one
        below = self.arithmetic.less(one, other)
        return below if operator in ("<", ">") else not below

    def _equal(self, left: Value, right: Value) -> bool:
        if isinstance(left, list) and isinstance(right, list):
            return len(left) == len(right) and all(map(self._equal, left, right))
        if isinstance(left, bool) and isinstance(right, bool):
            return left is right
        if isinstance(left, bool | list) or isinstance(right, bool | list):
            raise invalid(f"a {kind(left)} and a {kind(right)} cannot be compared")
        return self.arithmetic.alike(left, right)


def _boolean(value: Value, operator: str) -> bool:
    if not isinstance(value, bool):
        raise invalid(f"{operator} takes booleans, and got a {kind(value)}")
    return value


def _literal(text: str) -> Fraction:
    mantissa, _, exponent = text.lower().partition("e")
    number = Fraction(mantissa)
    power_of_ten = int(exponent or 0)
    if number and abs(power_of_ten) > _MAX_EXPONENT:
        raise too_large(f"a literal has more than {MAX_BITS} bits")
    value = number * Fraction(10) ** power_of_ten if number else number
    if bits(value) > MAX_BITS:
        raise too_large(f"a literal has more than {MAX_BITS} bits")
    return value
