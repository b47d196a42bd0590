"""What the parser complains about, in the words of a person who wrote the expression."""

import re
from typing import Final

from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from registry.graph.paths import ROOTS, ExpressionError

_ROOTS: Final = "a path begins with one of " + ", ".join(f"${root}" for root in ROOTS)
_FOUND: Final = re.compile(r"\$?[A-Za-z_][A-Za-z0-9_]*|[\s\S]")
#: Characters of a found word that a message repeats.
_WORD_CHARS: Final = 40
_EXPECTED: Final = {
    "NUMBER": "a value",
    "ROOT": "a path",
    "INDEX": "a key in quotes or an index",
    "RSQB": "']'",
}
_HINTS: Final = {
    **dict.fromkeys("+-*/%", "there is no arithmetic"),
    **dict.fromkeys(("&", "and", "AND"), "'and' is written &&"),
    **dict.fromkeys(("|", "or", "OR"), "'or' is written ||"),
    **dict.fromkeys(("not", "NOT"), "'not' is written !"),
    **dict.fromkeys(("True", "False", "None", "undefined"), "the words are true, false and null"),
    "$": _ROOTS,
    ".": "a path has no blanks, and a dot is followed by a name of letters, digits and _; other keys stand in brackets",
    "[": "a bracket touches the path before it and holds a quoted key or an index",
    '"': "the text is not closed",
    "'": "the text is not closed",
    "`": "texts stand in ' or \"",
}


def explained(text: str, error: UnexpectedInput) -> ExpressionError:
    """The `expr_syntax` error for a text the parser refused: what it expected, what it found, and the likely remedy."""
    at_end = isinstance(error, UnexpectedToken) and error.token.type == "$END"
    position = len(text) if at_end else (error.pos_in_stream or 0)
    open_here = text.count("(", 0, position) > text.count(")", 0, position)
    expected = _expected(_wanted(error), closing=open_here)
    if not text.strip(" \t\n\r"):
        reason = "the expression is blank"
    elif at_end:
        reason = f"the expression ends where {expected} should follow"
    else:
        reason = f"expected {expected}, found {_found(text, position)}"
    return ExpressionError("expr_syntax", reason, text, position + 1)


def _expected(wanted: set[str], *, closing: bool) -> str:
    for token, words in _EXPECTED.items():
        if token in wanted:
            return words
    if "SAME" in wanted:
        return "an operator or ')'" if closing else "an operator or the end"
    return "')'" if "RPAR" in wanted else "'('"


def _wanted(error: UnexpectedInput) -> set[str]:
    """The kinds of tokens that may stand where the parser stopped."""
    if isinstance(error, UnexpectedToken):
        return error.expected
    return (error.allowed if isinstance(error, UnexpectedCharacters) else None) or set()


def _found(text: str, position: int) -> str:
    if text[position] in "'\"" and text.find(text[position], position + 1) > 0:
        return "a text"
    match = _FOUND.match(text, position)
    found = match[0] if match else ""
    hint = _HINTS.get(found, "")
    if not hint and found.startswith("$"):
        hint = _ROOTS
    elif not hint and found[:1].isidentifier():
        hint = "texts stand in quotes, and the only functions are exists(path) and length(path)"
    shown = found if len(found) <= _WORD_CHARS else f"{found[:_WORD_CHARS]}…"
    return f"{shown!r}: {hint}" if hint else f"{shown!r}"
