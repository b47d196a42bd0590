"""The expression language: what parses, what it means, and what it says when it cannot."""

import pytest

from registry.graph import expressions
from registry.graph.expressions import ExpressionError, Slots, evaluate_patch, evaluate_value, render, truth

SLOTS = Slots(
    input={"n": 3, "text": "hi"},
    state={
        "count": 2,
        "name": "Ann",
        "nil": None,
        "tags": ["x", "y"],
        "none": {},
        "empty": [],
        "by key": {"größe": 1},
        "length": 7,
    },
    output={"finishReason": "tool-calls"},
)


def value_of(text, slots=SLOTS):
    return expressions.compile(text).evaluate(slots)


def error_of(text, slots=SLOTS):
    with pytest.raises(ExpressionError) as caught:
        expressions.compile(text).evaluate(slots)
    return caught.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 = 1", True),
        ("1 == 1.0", True),
        ("2 = '2'", False),
        ("true = 1", False),
        ("false = 0", False),
        ("null = false", False),
        ("$state.nil = null", True),
        ("1 != 2", True),
        ("1 = 1 = true", True),
        ("3 > 2 > 1", False),
        ("2 < 10 && '2' > '10'", True),
        ("'a' < 'b'", True),
        ("1 < '2'", False),
        ("null >= null", False),
        ("true > false", False),
        ("9007199254740993 = 9007199254740992.0", False),
        ("123456789012345678901234567890 > 123456789012345678901234567889", True),
        ("-1 < 0", True),
        ("007", 7),
        ("1.50", 1.5),
        ("!0", True),
        ("!!'a'", True),
        ("!1 = 0", False),
        ("(1 = 2) || ('a')", "a"),
        ("0 || '' || null", None),
        ("1 && 'b' && ''", ""),
        ("true || false && false", True),
        ("$input.n > 1 || $state.absent", True),
        ("$state.absent = 1", "unknown_path"),
        ("false && $state.absent", False),
        (r"'it\'s' = " + '"it\'s"', True),
        (r"'a\n\t\r\q\\'", "a\n\t\rq\\"),
        ("'a\nb'", "a\nb"),
        ("$state['by key'][ \"größe\" ]", 1),
        ("$state.tags[ 1 ]", "y"),
        ("$state.tags[2]", "unknown_path"),
        ("$state.tags[-1]", "unknown_path"),
        ("$state.tags['0']", "unknown_path"),
        ("$state.none[0]", "unknown_path"),
        ("$state.name[0]", "unknown_path"),
        ("$state.tags.length", "unknown_path"),
        ("$state.name.upper", "unknown_path"),
        ("$state.__class__", "unknown_path"),
        ("$state.length", 7),
        ("$state.nil.x", "unknown_path"),
        ("$resume", None),
        ("$item", "unknown_path"),
        ("exists($index)", False),
        ("exists($state.nil)", True),
        ("exists($state.nil.x)", False),
        ("exists ( $resume )", True),
        ("length('abc')", "expr_syntax"),
        ("length($state.name)", 3),
        ("length($state.tags)", 2),
        ("length($state.none)", 0),
        ("length($state.nil)", "unknown_path"),
        ("length($state.count)", "unknown_path"),
        ("\t\r\n 1 ", 1),
    ],
)
def test_an_expression_has_its_value_or_its_code(text, value):
    try:
        got = value_of(text)
    except ExpressionError as error:
        got = error.code
    assert expressions.equal(got, value), got


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "1 +1",
        "1 - 1",
        "- 1",
        "1.",
        ".5",
        "1e3",
        "1 1",
        "a",
        "True",
        "trueish",
        "NULL",
        "contains($state.tags)",
        "exists(1)",
        "exists($state.a",
        "exists(($state.a))",
        "length",
        "$",
        "$$state",
        "$foo",
        "$states",
        "$state1",
        "$State.a",
        "$state .a",
        "$state. a",
        "$state.a .b",
        "$state ['a']",
        "$state.größe",
        "$state.9",
        "$state[1.5]",
        "$state[a]",
        "$state[]",
        "$state['a'",
        "'open",
        "1 & 2",
        "1 | 2",
        "1 === 1",
        "! = 1",
        "1 not 2",
        "(1",
        "1)",
        "()",
        "1 = ",
        "1 \u00a0= 1",
        "true || ~",
        "1" * 400 + ".0",
        "'" + "a" * 3999 + "'",
    ],
)
def test_what_the_grammar_does_not_name_is_a_syntax_error(text):
    assert error_of(text).code == "expr_syntax"


def test_a_broken_right_side_fails_even_where_it_is_never_read():
    assert error_of("true || (").code == "expr_syntax"


@pytest.mark.parametrize("mark", ["!", "("])
def test_up_to_64_levels_are_open_at_once(mark):
    def nested(levels):
        return mark * levels + "1" + (")" * levels if mark == "(" else "")

    assert value_of(nested(64)) in (1, True)
    assert error_of(nested(65)).code == "expr_syntax"


def test_the_parenthesis_of_a_function_is_a_level_too():
    assert value_of("(" * 63 + "exists($state.name)" + ")" * 63) is True
    assert error_of("(" * 64 + "exists($state.name)" + ")" * 64).code == "expr_syntax"


def test_levels_that_are_closed_do_not_count():
    assert value_of(" || ".join(["!(1)"] * 200)) is False


def test_a_long_chain_is_evaluated_without_recursion():
    assert value_of(" = ".join(["true"] * 500)) is True
    assert value_of(" && ".join(["1"] * 500)) == 1


def test_4000_characters_are_the_most():
    assert value_of("'" + "a" * 3998 + "'") == "a" * 3998


def test_values_of_any_depth_are_compared():
    deep, same = [], []
    for _ in range(50_000):
        deep, same = [deep], [same]
    assert expressions.equal(deep, same)
    assert not expressions.equal(deep, [same])


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ({"a": 1, "b": [1, {}]}, {"b": [1.0, {}], "a": 1}, True),
        ({"a": None}, {}, False),
        ([1, 2], [2, 1], False),
        ([], {}, False),
        ([True], [1], False),
        ("", None, False),
    ],
)
def test_equality_goes_by_type_and_value(a, b, same):
    assert expressions.equal(a, b) is same


@pytest.mark.parametrize("value", [False, 0, 0.0, "", None])
def test_these_five_are_false(value):
    assert not truth(value)


@pytest.mark.parametrize("value", [True, 1, -0.5, " ", "false", [], {}, [0]])
def test_everything_else_is_true(value):
    assert truth(value)


def test_a_syntax_error_points_at_its_place():
    error = error_of("$output.finishReason ~ 1")
    assert error.column == 22
    assert error.message.splitlines()[1:] == ["  $output.finishReason ~ 1", "  " + " " * 21 + "^"]


def test_an_unknown_path_points_at_the_path_and_names_the_step():
    error = error_of("1 = 2 || $state.tags.length")
    assert (error.code, error.column) == ("unknown_path", 10)
    assert error.reason == "$state.tags is a list, not an object"


def test_the_column_counts_over_lines_and_long_texts_are_cut_around_it():
    error = error_of("'" + "a" * 200 + "'\n ~")
    assert error.column == 205
    shown, caret = error.message.splitlines()[1:]
    assert shown[caret.index("^")] == "~"
    assert len(shown) < 80


def test_common_slips_get_the_remedy():
    assert "&&" in error_of("$state.a and $state.b").reason
    assert "no arithmetic" in error_of("1 + 1").reason
    assert "not closed" in error_of("$state.a = 'b").reason
    assert "$input" in error_of("$inputs").reason
    assert "item run" in error_of("$item.x").reason


def test_an_error_as_a_condition_is_false():
    assert not expressions.compile("$state.absent").holds(SLOTS)
    assert expressions.compile("$state.empty").holds(SLOTS)


def test_an_expression_tells_what_it_is_made_of():
    one = expressions.compile("$state['a b'].c[-1]")
    assert one.path is not None and one.path.is_same("state", "a b", "c", -1)
    assert one.path.has_negative_index
    assert expressions.compile("$state.a").state_key == "a"
    assert expressions.compile("$state.a.b").state_key is None
    assert expressions.compile("$input.a").state_key is None
    assert expressions.compile("($state.a)").path is None
    assert expressions.compile("(('think'))").literal == "think"
    assert expressions.compile("!'think'").literal is None
    many = expressions.compile("exists($state.a) && length($input.b) > 0 || !($item = $index)")
    assert [path.root for path in many.paths] == ["state", "input", "item", "index"]


def test_a_value_is_evaluated_at_every_depth_and_keys_stay():
    value = {"$input.n": ["$input.n", "n", {"deep": "$state.tags"}], "price": "$$5", "n": 1, "nil": None}
    assert evaluate_value(value, SLOTS) == {
        "$input.n": [3, "n", {"deep": ["x", "y"]}],
        "price": "$5",
        "n": 1,
        "nil": None,
    }


def test_what_an_expression_gives_is_data_and_not_evaluated_again():
    assert evaluate_value("$state.x", Slots(state={"x": "$input"})) == "$input"
    assert render("{$state.x}", Slots(state={"x": "{$input}"}), plain=True) == "{$input}"


def test_a_value_fails_with_its_first_error_unless_literals_are_wanted():
    with pytest.raises(ExpressionError):
        evaluate_value(["$state.absent"], SLOTS)
    assert evaluate_value(["$state.absent", "$5 each", "$input.n"], SLOTS, literal_on_error=True) == [
        "$state.absent",
        "$5 each",
        3,
    ]


def test_parts_of_a_prompt_are_compact_json_and_those_of_a_patch_plain():
    text = "n={$input.n} name={$state.name} tags={$state.tags} nil={$state.nil}"
    assert render(text, SLOTS, plain=False) == 'n=3 name="Ann" tags=["x","y"] nil=null'
    assert render(text, SLOTS, plain=True) == 'n=3 name=Ann tags=["x","y"] nil=null'


def test_a_part_that_fails_stays_as_written():
    text = '{$state.absent} {$ } {$} {not one} {"$x": 1} { $input.n} {$input.n'
    assert render(text, SLOTS, plain=True) == text


def test_a_part_ends_at_the_next_brace():
    assert render("{$state['a}']}", Slots(state={"a}": 1}), plain=True) == "{$state['a}']}"


def test_patch_texts_are_expressions_or_have_parts():
    patch = {"a": "$input.n", "b": ["n is {$input.n}"], "c": "$$ {$input.n}", "d": 4}
    assert evaluate_patch(patch, SLOTS) == {"a": 3, "b": ["n is 3"], "c": "$ {$input.n}", "d": 4}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 1", "an operator or the end"),
        ("(1 1)", "an operator or ')'"),
        ("1 =", "a value"),
        ("exists(1)", "a path"),
        ("exists($state", "')'"),
        ("length", "'('"),
        ("$state[", "a key in quotes or an index"),
        ("$state[0", "']'"),
    ],
)
def test_a_syntax_error_says_what_should_stand_there(text, expected):
    assert expected in error_of(text).reason
