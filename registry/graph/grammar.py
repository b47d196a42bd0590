"""The grammar of expressions and what each rule becomes: a closure over the slots (spec: engine 3.1).

The parser calls `_Compiler` while it reduces, so no tree is built and no input makes the compiler recurse. Chains of
one operator become one loop, so an evaluated expression nests no deeper than its parentheses and its `!`.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Final

from lark import Lark, Token
from lark.exceptions import UnexpectedInput

from registry.base import Json
from registry.graph.limits import EXPRESSION_CHARS, EXPRESSION_DEPTH
from registry.graph.paths import ABSENT, ExpressionError, Path, Slots
from registry.graph.slips import explained
from registry.graph.values import equal, ordered, truth

# A path has no blanks inside: its dots and opening brackets refuse to follow one. Names and words end where no
# letter, digit or underscore follows.
_GRAMMAR: Final = r"""
?start: disjunction
?disjunction: conjunction ("||" conjunction)*
?conjunction: equality ("&&" equality)*
?equality: comparison (SAME comparison)*
?comparison: unary (ORDER unary)*
?unary: NOT unary -> negation
      | primary
?primary: OPEN disjunction ")" -> group
        | path                 -> reading
        | TEXT                 -> text
        | NUMBER               -> number
        | TRUE                 -> true
        | FALSE                -> false
        | NULL                 -> null
        | EXISTS OPEN path ")" -> exists
        | LENGTH OPEN path ")" -> length
path: ROOT (key | bracket)*
key: DOTTED
bracket: BRACKET TEXT "]"  -> named
       | BRACKET INDEX "]" -> indexed

ROOT: /\$(?:input|state|output|resume|item|index)(?![A-Za-z0-9_])/
DOTTED: /(?<![ \t\n\r])\.[A-Za-z_][A-Za-z0-9_]*/
BRACKET: /(?<![ \t\n\r])\[/
INDEX: /-?[0-9]+/
NUMBER: /-?[0-9]+(?:\.[0-9]+)?/
TEXT: /'[^'\\]*(?:\\[\s\S][^'\\]*)*'|"[^"\\]*(?:\\[\s\S][^"\\]*)*"/
TRUE: /true(?![A-Za-z0-9_])/
FALSE: /false(?![A-Za-z0-9_])/
NULL: /null(?![A-Za-z0-9_])/
EXISTS: /exists(?![A-Za-z0-9_])/
LENGTH: /length(?![A-Za-z0-9_])/
SAME: "==" | "=" | "!="
ORDER: ">=" | "<=" | ">" | "<"
NOT: "!"
OPEN: "("
%ignore /[ \t\n\r]+/
"""

_ESCAPED: Final = re.compile(r"\\([\s\S])")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r"}

Reader = Callable[[Slots], Json]


@dataclass(frozen=True, slots=True)
class Term:
    """A compiled part of an expression.

    Attributes:
        evaluate: gives its value, or raises `Unread`.
        depth: its open levels.
        paths: every path in it, in the order written.
        path: set when it is nothing but this path.
        text: set when it is nothing but this text, in parentheses or not.
    """

    evaluate: Reader
    depth: int = 0
    paths: tuple[Path, ...] = ()
    path: Path | None = None
    text: str | None = None


def parse(text: str) -> Term:
    """Compiles an expression.

    Raises:
        ExpressionError: `expr_syntax`.
    """
    if len(text) > EXPRESSION_CHARS:
        reason = f"an expression has at most {EXPRESSION_CHARS} characters, this one has {len(text)}"
        raise ExpressionError("expr_syntax", reason, text, EXPRESSION_CHARS + 1)
    try:
        term = _parser().parse(text)
    except UnexpectedInput as error:
        raise explained(text, error) from None
    except _Misfit as misfit:
        raise ExpressionError("expr_syntax", str(misfit), text, misfit.column) from None
    assert isinstance(term, Term)
    return term


class Unread(Exception):
    """Control flow inside an evaluation: there is nothing to read at this path."""

    def __init__(self, path: Path) -> None:
        self.path = path


class _Misfit(Exception):
    """Control flow inside the parser: a rule matched, but its value is beyond the limits."""

    def __init__(self, reason: str, token: Token) -> None:
        super().__init__(reason)
        self.column = _column(token)


@cache
def _parser() -> Lark:
    return Lark(_GRAMMAR, parser="lalr", transformer=_Compiler(), maybe_placeholders=False)


class _Compiler:
    """One method a rule; the parser hands each its children, already compiled."""

    def disjunction(self, terms: list[Term]) -> Term:
        return _joined(_first(terms, stop_at=True), terms)

    def conjunction(self, terms: list[Term]) -> Term:
        return _joined(_first(terms, stop_at=False), terms)

    def equality(self, children: list[Term | Token]) -> Term:
        return _chain(children)

    def comparison(self, children: list[Term | Token]) -> Term:
        return _chain(children)

    def negation(self, children: tuple[Token, Term]) -> Term:
        mark, term = children
        inner = term.evaluate
        return Term(lambda slots: not truth(inner(slots)), _deeper(term.depth, mark), term.paths)

    def group(self, children: tuple[Token, Term]) -> Term:
        mark, term = children
        return Term(term.evaluate, _deeper(term.depth, mark), term.paths, text=term.text)

    def reading(self, children: tuple[Path]) -> Term:
        (path,) = children
        read = path.reader()

        def evaluate(slots: Slots) -> Json:
            value = read(slots)
            if value is ABSENT:
                raise Unread(path)
            return value

        return Term(evaluate, paths=(path,), path=path)

    def exists(self, children: tuple[Token, Token, Path]) -> Term:
        path = children[2]
        read = path.reader()
        return Term(lambda slots: read(slots) is not ABSENT, 1, (path,))

    def length(self, children: tuple[Token, Token, Path]) -> Term:
        path = children[2]
        read = path.reader()

        def evaluate(slots: Slots) -> Json:
            value = read(slots)
            if not isinstance(value, (str, list, dict)):
                raise Unread(path)
            return len(value)

        return Term(evaluate, 1, (path,))

    def text(self, children: tuple[Token]) -> Term:
        value = _unquoted(children[0])
        return Term(lambda slots: value, text=value)

    def number(self, children: tuple[Token]) -> Term:
        (token,) = children
        value: int | float = float(token) if "." in token else int(token)
        if isinstance(value, float) and math.isinf(value):
            raise _Misfit("the number is beyond the range of a 64-bit float", token)
        return Term(lambda slots: value)

    def true(self, _: list[Token]) -> Term:
        return Term(lambda slots: True)

    def false(self, _: list[Token]) -> Term:
        return Term(lambda slots: False)

    def null(self, _: list[Token]) -> Term:
        return Term(lambda slots: None)

    def path(self, children: list[Token | str | int]) -> Path:
        root, *steps = children
        assert isinstance(root, Token)
        return Path(root[1:], tuple(steps), _column(root))

    def key(self, children: tuple[Token]) -> str:
        return str(children[0][1:])

    def named(self, children: tuple[Token, Token]) -> str:
        return _unquoted(children[1])

    def indexed(self, children: tuple[Token, Token]) -> int:
        return int(children[1])


def _joined(evaluate: Reader, terms: list[Term]) -> Term:
    return Term(evaluate, max(term.depth for term in terms), tuple(path for term in terms for path in term.paths))


def _first(terms: list[Term], *, stop_at: bool) -> Reader:
    """The first operand whose truth is `stop_at`, or else the last one, as it is."""
    *early, last = (term.evaluate for term in terms)

    def evaluate(slots: Slots) -> Json:
        for operand in early:
            value = operand(slots)
            if truth(value) is stop_at:
                return value
        return last(slots)

    return evaluate


_OPERATORS: Final[dict[str, Callable[[Json, Json], bool]]] = {
    "=": equal,
    "==": equal,
    "!=": lambda a, b: not equal(a, b),
    ">": lambda a, b: ordered(a, b) and a > b,
    "<": lambda a, b: ordered(a, b) and a < b,
    ">=": lambda a, b: ordered(a, b) and a >= b,
    "<=": lambda a, b: ordered(a, b) and a <= b,
}


def _chain(children: list[Term | Token]) -> Term:
    terms = [child for child in children if isinstance(child, Term)]
    operators = [_OPERATORS[child] for child in children if isinstance(child, Token)]
    first, *rest = (term.evaluate for term in terms)
    steps = tuple(zip(operators, rest, strict=True))

    def evaluate(slots: Slots) -> Json:
        value = first(slots)
        for compare, operand in steps:
            value = compare(value, operand(slots))
        return value

    return _joined(evaluate, terms)


def _deeper(depth: int, mark: Token) -> int:
    if depth >= EXPRESSION_DEPTH:
        raise _Misfit(f"more than {EXPRESSION_DEPTH} levels of ( and ! are open", mark)
    return depth + 1


def _unquoted(token: Token) -> str:
    return _ESCAPED.sub(lambda match: _ESCAPES.get(match[1], match[1]), token[1:-1])


def _column(token: Token) -> int:
    return (token.start_pos or 0) + 1
