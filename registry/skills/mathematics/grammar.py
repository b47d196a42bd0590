"""The grammar, and the reading of a text into nodes.

Three things hang on neighbours and are settled on the token stream, before the parser sees it: whether `%` is a
percentage or the remainder, whether a name is a call, and where two operands side by side are multiplied.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

from lark import Lark, Token, Transformer, UnexpectedInput, v_args
from lark.exceptions import UnexpectedCharacters, UnexpectedToken
from lark.lark import PostLex

from registry.skills.mathematics import nodes
from registry.skills.mathematics.nodes import Node
from registry.skills.mathematics.values import invalid

GRAMMAR = r"""
    start: _END* statement (_END+ statement)* _END*

    ?statement: NAME "=" disjunction        -> assign
              | disjunction
    ?disjunction: conjunction (OR conjunction)*   -> chain
    ?conjunction: negation (AND negation)*        -> chain
    ?negation: NOT negation                 -> prefix
             | comparison
    ?comparison: sum COMPARE sum            -> binary
               | sum
    ?sum: product (SIGN product)*           -> chain
    ?product: signed ((TIMES | MOD) signed)*      -> chain
    ?signed: SIGN signed                    -> prefix
           | power
    ?power: postfix POWER exponent          -> binary
          | postfix
    ?exponent: SIGN exponent                -> prefix
             | power
    ?postfix: postfix (FACTORIAL | PERCENT) -> postfix
            | atom
    ?atom: NUMBER                           -> number
         | NAME                             -> name
         | CALL "(" [disjunction ("," disjunction)*] ")"  -> call
         | "(" disjunction ")"              -> group
         | "[" [disjunction ("," disjunction)*] "]"       -> items

    NUMBER: /([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?/
    NAME: /[A-Za-z_][A-Za-z0-9_]*|π/
    POWER: "^" | "**"
    TIMES: /[*\/×·÷]/
    SIGN: /[+−-]/
    FACTORIAL: /!(?!=(?!=))/
    PERCENT: "%"
    COMPARE: /==|!=(?!=)|<=|>=|<|>/
    _END: ";" | "\n"
    %declare MOD CALL AND OR NOT
    %ignore /[ \t\r]+/
"""

#: Words that are operators, never names.
WORDS = {"and": "AND", "or": "OR", "not": "NOT"}
#: Other ways to write an operator or a constant, and ours.
SPELLINGS = {"×": "*", "·": "*", "÷": "/", "−": "-", "**": "^", "π": "pi"}


def read(text: str) -> list[Node]:
    """The statements of an expression.

    Raises:
        SkillError: `invalid_input`; the message names the column, from 1.
    """
    try:
        statements: list[Node] = _parser().parse(text.rstrip())  # type: ignore[assignment]
    except UnexpectedInput as error:
        raise invalid(_explain(text, error)) from None
    return statements


class _Neighbours(PostLex):
    """Settles what a token is by what stands next to it."""

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        tokens = [_respelled(token) for token in stream]
        before: Token | None = None
        for at in range(len(tokens)):
            settled = _settled(tokens, at, before)
            if before is not None and _side_by_side(before, settled):
                yield Token.new_borrow_pos("TIMES", "*", settled)
            yield settled
            before = settled


def _respelled(token: Token) -> Token:
    if token.type == "NAME" and token in WORDS:
        return Token.new_borrow_pos(WORDS[token], token, token)
    return Token.new_borrow_pos(token.type, SPELLINGS.get(token, str(token)), token)


def _settled(tokens: list[Token], at: int, before: Token | None) -> Token:
    token = tokens[at]
    if token.type == "PERCENT" and _opens_operand(tokens, at + 1) and not _is_remainder_word(tokens, at + 1):
        return Token.new_borrow_pos("MOD", "mod", token)
    if token.type == "NAME" and _ends_operand(before) and _is_remainder_word(tokens, at):
        return Token.new_borrow_pos("MOD", "mod", token)
    if token.type == "NAME" and _type(tokens, at + 1) == "LPAR":
        return Token.new_borrow_pos("CALL", token, token)
    return token


def _opens_operand(tokens: list[Token], at: int) -> bool:
    return _type(tokens, at) in ("NUMBER", "NAME", "LPAR", "LSQB")


def _ends_operand(token: Token | None) -> bool:
    return token is not None and token.type in ("NUMBER", "NAME", "RPAR", "RSQB", "FACTORIAL", "PERCENT")


def _side_by_side(left: Token, right: Token) -> bool:
    if left.type == "NUMBER":
        return right.type in ("NAME", "CALL", "LPAR")
    return left.type == "RPAR" and right.type in ("NAME", "CALL", "LPAR")


def _is_remainder_word(tokens: list[Token], at: int) -> bool:
    """Whether the name here is the word in `7 mod 3`, and not the call in `2 mod(7, 3)`."""
    if _type(tokens, at) != "NAME" or tokens[at] != "mod":
        return False
    return _type(tokens, at + 1) != "LPAR" or not _has_comma(tokens, at + 1)


def _has_comma(tokens: list[Token], opening: int) -> bool:
    """Whether the parentheses that open here hold a comma of their own."""
    level = 0
    for token in tokens[opening:]:
        level += (token.type in ("LPAR", "LSQB")) - (token.type in ("RPAR", "RSQB"))
        if level == 0:
            return False
        if level == 1 and token.type == "COMMA":
            return True
    return False


def _type(tokens: list[Token], at: int) -> str:
    return tokens[at].type if at < len(tokens) else ""


@v_args(inline=True)
class _Builder(Transformer[Token, Any]):
    """Nodes of parsed pieces, made as the parser reduces them: nothing here recurses."""

    def start(self, *statements: Node) -> list[Node]:
        return list(statements)

    def assign(self, name: Token, value: Node) -> Node:
        return nodes.Assign(str(name), value, _where(name))

    def chain(self, first: Node, *rest: Any) -> Node:
        links = tuple((str(operator), operand) for operator, operand in zip(rest[::2], rest[1::2], strict=True))
        return nodes.Chain(first, links) if links else first

    def prefix(self, operator: Token, operand: Node) -> Node:
        return nodes.Prefix(str(operator), operand)

    def binary(self, left: Node, operator: Token, right: Node) -> Node:
        return nodes.Binary(str(operator), left, right)

    def postfix(self, operand: Node, operator: Token) -> Node:
        return nodes.Postfix(str(operator), operand)

    def number(self, token: Token) -> Node:
        return nodes.Number(str(token))

    def name(self, token: Token) -> Node:
        return nodes.Name(str(token), _where(token))

    def call(self, name: Token, *arguments: Node) -> Node:
        return nodes.Call(str(name), arguments, _where(name))

    def group(self, inner: Node) -> Node:
        return nodes.Group(inner)

    def items(self, *items: Node) -> Node:
        return nodes.Items(items)


@cache
def _parser() -> Lark:
    return Lark(
        GRAMMAR,
        parser="lalr",
        lexer="basic",
        postlex=_Neighbours(),
        transformer=_Builder(),
        maybe_placeholders=False,
    )


def _explain(text: str, error: UnexpectedInput) -> str:
    if isinstance(error, UnexpectedCharacters):
        character = text[error.pos_in_stream or 0]
        shown = character if character.isascii() and character.isprintable() else f"U+{ord(character):04X}"
        return f"the character {shown} has no meaning here ({_position(error.line, error.column)})"
    if isinstance(error, UnexpectedToken) and error.token.type != "$END":
        token = error.token
        found = "the line" if token == "\n" else f"{str(token)[:40]!r}"
        end = " ends too early" if token == "\n" else " cannot stand here"
        return f"{found}{end} ({_where(token)})"
    if not text.strip(" \t\r\n;"):
        return "there is nothing to evaluate (column 1)"
    lines = text.rstrip().split("\n")
    end = _position(len(lines), len(lines[-1]) + 1)
    return f"it ends where a value or a closing bracket should follow ({end})"


def _where(token: Token) -> str:
    return _position(token.line, token.column)


def _position(line: int | None, column: int | None) -> str:
    return f"column {column}" if line in (None, 1) else f"line {line}, column {column}"


# This module is loaded with the first call, and before its second begins: the parser is not to take its time from it.
_parser()
