"""What holds for every expression and every text, whoever wrote it."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from registry.graph import expressions
from registry.graph.expressions import ExpressionError, Slots, equal, evaluate_value, render, truth

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
json = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12)
words = st.sampled_from(
    [
        "$state",
        ".a",
        "['b']",
        "[0]",
        "[-1]",
        "(",
        ")",
        "!",
        "&&",
        "||",
        "=",
        "!=",
        "<",
        ">=",
        "exists",
        "length",
        "1",
        "2.5",
        "'t'",
        '"',
        "true",
        "null",
        " ",
        "$",
        "{",
        "}",
        "\\",
        "é",
        "\n",
    ]
)
soup = st.lists(words, max_size=40).map("".join)


def atom(draw):
    """A valid primary and what it gives with the slots below."""
    return draw(
        st.sampled_from(
            [("1", 1), ("2.5", 2.5), ("'t'", "t"), ("true", True), ("false", False), ("null", None), ("$state.a", [1])]
        )
    )


@st.composite
def trees(draw, depth=4):
    """An expression written with every parenthesis it might need, and its value computed by hand."""
    if depth == 0 or draw(st.booleans()):
        return atom(draw)
    operator = draw(st.sampled_from(["&&", "||", "=", "!=", "!"]))
    left, a = draw(trees(depth=depth - 1))
    if operator == "!":
        return f"!({left})", not truth(a)
    right, b = draw(trees(depth=depth - 1))
    value = {
        "&&": b if truth(a) else a,
        "||": a if truth(a) else b,
        "=": equal(a, b),
        "!=": not equal(a, b),
    }[operator]
    return f"({left}) {operator} ({right})", value


@settings(deadline=None)
@given(soup | st.text(), json)
@example("'\ud800'", None)
@example("(" * 4000, None)
@example("!" * 4000, None)
@example("$state" + "[0]" * 1000, [])
@example("1" * 4000, None)
def test_no_text_raises_anything_but_the_two_codes(text, state):
    try:
        expressions.compile(text).evaluate(Slots(state=state))
    except ExpressionError as error:
        assert error.code in ("expr_syntax", "unknown_path")
        assert 1 <= error.column <= len(text) + 1


@settings(deadline=None)
@given(trees())
def test_evaluation_follows_the_tree(tree):
    text, value = tree
    assert equal(expressions.compile(text).evaluate(Slots(state={"a": [1]})), value)


@settings(deadline=None)
@given(json, json)
def test_equality_is_symmetric_and_reflexive(a, b):
    assert equal(a, a)
    assert equal(a, b) == equal(b, a)


@settings(deadline=None)
@given(json)
def test_a_value_without_dollars_is_itself(value):
    if "$" not in repr(value):
        assert equal(evaluate_value(value, Slots()), value)


@settings(deadline=None)
@given(json)
def test_data_comes_through_a_path_unchanged(value):
    assert equal(evaluate_value("$state.x", Slots(state={"x": value})), value)


@settings(deadline=None)
@given(soup | st.text(), json)
def test_rendering_never_fails(text, state):
    render(text, Slots(state=state), plain=True)
    render(text, Slots(state=state), plain=False)
