"""math.evaluate: what each line of the grammar comes to, and what is refused (spec: skills 7.16)."""

import time
from typing import Any

import mpmath
import pytest

from registry.errors import SkillError
from registry.skills.context import Caller, SkillContext
from registry.skills.data import SKILLS
from registry.skills.mathematics.evaluate import evaluate
from registry.skills.registry import SkillRegistry, SkillResult

REGISTRY = SkillRegistry(SKILLS)


def invoke(expression: str, **more: Any) -> SkillResult:
    return REGISTRY.invoke("math.evaluate", {"expression": expression, **more}, SkillContext(Caller("person")))


def result(expression: str, **more: Any) -> str:
    answer = invoke(expression, **more)
    assert answer.ok, f"{expression}: {answer.code} {answer.error}"
    return str(answer.output["result"])


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        # Factorial and percent come first.
        ("3!!", "720"),
        ("-3!", "-6"),
        ("2^3!", "64"),
        ("10%", "0.1"),
        ("10%%", "0.001"),
        ("50%!=1", "true"),
        ("5! == 120", "true"),
        ("5!==120", "true"),
        ("5 != 120", "true"),
        # `%` before an operand is the remainder.
        ("10 % 3", "1"),
        ("10%3", "1"),
        ("7%(2+1)", "1"),
        ("x = 4; 10 % x", "2"),
        ("5% - 3", "-2.95"),
        ("10% mod 3", "0.1"),
        ("10% and_ == 0", "true"),
        ("10% == 0.1 and true", "true"),
        ("7 mod 3", "1"),
        ("7 mod (3)", "1"),
        ("2 mod(7, 4)", "6"),
        ("10 % mod(7, 4)", "1"),
        # Powers go right to left and may carry a sign.
        ("2^3^2", "512"),
        ("2**10", "1024"),
        ("2^-2", "0.25"),
        ("2^-3^2", "0.001953125"),
        ("2^+2", "4"),
        # Signs.
        ("-2^2", "-4"),
        ("(-2)^2", "4"),
        ("--2", "2"),
        ("2 - -3", "5"),
        ("2*-3", "-6"),
        # Side by side.
        ("6/2(1+2)", "9"),
        ("2(3)(4)", "24"),
        ("(1+2)x", "12"),
        ("2x^2", "32"),
        ("2^3x", "32"),
        ("2^-1(6)", "3"),
        ("-2x", "-8"),
        ("2sqrt(9)", "6"),
        ("(2)sqrt(9)", "6"),
        ("1/2pi == pi/2", "true"),
        ("1e3x", "4000"),
        ("2i^2", "-2"),
        # A bare percentage is of the left side.
        ("100 + 10%", "110"),
        ("100 - 10%", "90"),
        ("100 + 10% * 2", "100.2"),
        ("100 + (10%)", "100.1"),
        ("100 + -10%", "99.9"),
        ("100 + 10% + 10%", "121"),
        ("10% + 5", "5.1"),
        ("100 + 10%%", "100.1"),
        ("50% * 8", "4"),
        # Comparisons and booleans.
        ("0.1 + 0.2 == 0.3", "true"),
        ("1/3 == 0.333333333333333", "false"),
        ("sqrt(2)^2 == 2", "true"),
        ("sqrt(2)^2 < 2", "false"),
        ("sqrt(2)^2 <= 2", "true"),
        ("sqrt(2) == 1.41421356", "false"),
        ("pi > 3 and pi < 4", "true"),
        ("not 1 == 2", "true"),
        ("not true or true", "true"),
        ("true or true and false", "true"),
        ("(1 < 2) == true", "true"),
        ("[1, 1/2] == [1, 0.5]", "true"),
        ("2i == 2i", "true"),
        ("1 + i != 1", "true"),
        # Statements.
        ("a = 3; b = a^2\na + b", "12"),
        ("a = 1; a = a + 1; a", "2"),
        ("y = 5", "5"),
        ("\n 1; ;2;\r\n", "2"),
        # Numbers and other spellings.
        (".5 + 1. + 1e-1 + 1E+1", "11.6"),
        ("3 × 4 ÷ 2 · 5 − 1", "29"),
        ("2π == tau", "true"),
    ],
)
def test_an_expression_means_what_the_grammar_says(expression: str, expected: str) -> None:
    assert result(expression, variables={"x": 4, "and_": 10}) == expected


@pytest.mark.parametrize(
    ("expression", "column"),
    [
        ("2 +", 4),
        ("2 + ", 4),
        ("2 + * 3", 5),
        ("(1 + 2", 7),
        ("1 2", 3),
        ("(1)2", 4),
        ("x y", 3),
        ("x 2", 3),
        ("3! x", 4),
        ("3!(2)", 3),
        ("[1](2)", 4),
        ("2[1]", 2),
        ("1 < 2 < 3", 7),
        ("1 == 2 == 3", 8),
        ("1..5", 3),
        ("1.2.3", 4),
        ("a.b", 2),
        ("'a'", 1),
        ('"a"', 1),
        ("import os", 8),
        ("f(x) = x", 6),
        ("1 = 2", 3),
        ("٣ + 1", 1),
        ("2 ≤ 3", 3),
        ("x² + 1", 2),
        ("１", 1),
        ("\x00", 1),
        ("1,2", 2),
        ("[1, 2", 6),
        ("sin(", 5),
        ("   ", 1),
        (";", 1),
        ("unknown + 1", 1),
        ("1 + sin", 5),
        ("2 + x(3)", 5),
        ("eval(1)", 1),
    ],
)
def test_a_syntax_error_names_its_column(expression: str, column: int) -> None:
    answer = invoke(expression, variables={"x": 4})

    assert answer.code == "invalid_input"
    assert answer.error is not None
    assert f"column {column}" in answer.error
    assert answer.details[0].path == "expression"


def test_a_column_counts_from_the_start_of_its_line() -> None:
    answer = invoke("1;\n  2 + * 3")

    assert "line 2, column 7" in str(answer.error)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("sqrt(3^2 + 4^2)", "5"),
        ("sqrt(4/9)", "0.666666666666667"),
        ("sqrt(4/9) == 2/3", "true"),
        ("sqrt(10^60)", "1" + "0" * 30),
        ("sqrt(-4)", "2i"),
        ("cbrt(-8)", "-2"),
        ("cbrt(2)", "1.25992104989487"),
        ("8^(1/3)", "2"),
        ("(-8)^(1/3)", "1 + 1.73205080756888i"),
        ("(-4)^(3/2)", "-8i"),
        ("(-4)^(-1/2)", "-0.5i"),
        ("0^0", "1"),
        ("0^2.5", "0"),
        ("abs(-3.5) + abs(3 + 4i)", "8.5"),
        ("[sign(-3), sign(0), sign(1/2)]", "[-1, 0, 1]"),
        ("[round(2.5), round(-2.5), round(2.4)]", "[3, -3, 2]"),
        ("[round(1234.567, 2), round(1234.567, -2)]", "[1234.57, 1200]"),
        ("round(sqrt(2)^2 * 1.25)", "3"),
        ("[floor(-0.5), ceil(-0.5), floor(3), ceil(1.2)]", "[-1, 0, 3, 2]"),
        ("floor(sqrt(2)^2)", "2"),
        ("[exp(0), ln(1), ln(e), log(8, 2), log2(10), log10(1000)]", "[1, 0, 1, 3, 3.32192809488736, 3]"),
        ("ln(-1)", "3.14159265358979i"),
        ("log10(-10)", "1 + 1.36437635384184i"),
        ("ln(1 + 1e-30)", "1e-30"),
        ("[sin(pi/6), cos(pi/3), tan(pi/4)]", "[0.5, 0.5, 1]"),
        ("[asin(1)/pi, acos(0)/pi, atan(1)/pi]", "[0.5, 0.5, 0.25]"),
        ("[sinh(1), cosh(1), tanh(1)]", "[1.1752011936438, 1.54308063481524, 0.761594155955765]"),
        ("[asinh(1), acosh(2), atanh(1/2)]", "[0.881373587019543, 1.31695789692482, 0.549306144334055]"),
        ("acosh(1/2)", "1.0471975511966i"),
        ("sin(1e22)", "-0.852200849767189"),
        ("[gcd(12, 18), gcd(12, 18, 8), lcm(4, 6), gcd(0, 5)]", "[6, 2, 12, 5]"),
        ("[factorial(5), combinations(5, 2), permutations(5, 2), combinations(2, 5)]", "[120, 10, 20, 0]"),
        ("factorial(log10(1000))", "6"),
        ("[min(3, 1, 2), max([3, 1, 2]), sum(1, 2, 3), mean([1, 2])]", "[1, 3, 6, 1.5]"),
        ("[median(3, 1, 2), median([1, 2, 3, 4])]", "[2, 2.5]"),
        ("[var(1, 2, 3, 4), std([2, 4, 4, 4, 5, 5, 7, 9])]", "[1.66666666666667, 2.1380899352994]"),
        ("[mod(-7, 3), mod(7, -3), mod(5.5, 2), mod(3pi, pi)]", "[2, -2, 1.5, 0]"),
        ("[re(1+2i), im(1+2i), conj(1+2i), arg(-1), arg(0), im(3)]", "[1, 2, 1 - 2i, 3.14159265358979, 0, 0]"),
        ("sum(i, 1, -i)", "1"),
        ("[pi, e, tau]", "[3.14159265358979, 2.71828182845905, 6.28318530717959]"),
        ("phi^2 == phi + 1", "true"),
        ("(1+2i)*(3-i)", "5 + 5i"),
        ("(1+2i)/(3-i)", "0.1 + 0.7i"),
        ("(1+2i)^-2", "-0.12 - 0.16i"),
        ("i^(10^12000 + 3)", "-i"),
        ("i^i", "0.207879576350762"),
        ("sqrt(2i)", "1 + i"),
        ("(1 + 0.05/365)^(365*10)", "1.64866481376547"),
        ("(1 + 1e-25)^1e25", "2.71828182845905"),
        ("(1 + 1/3^20000)^(3^20000)", "2.71828182845905"),
    ],
)
def test_functions_and_powers(expression: str, expected: str) -> None:
    assert result(expression) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("e^(i*pi)", "-1"),
        ("e^(i*pi) + 1", "0"),
        ("e^(i*pi) < 0", "true"),
        ("sin(pi)", "0"),
        ("cos(pi/2)", "0"),
        ("sin(1e6*pi)", "0"),
        ("tan(pi)", "0"),
        ("sin(1e-30)", "1e-30"),
        ("sin(3.14159265358979)", "3.23846264338328e-15"),
        ("1 + 1e-16i", "1"),
        ("1 + 1e-14i", "1 + 1e-14i"),
        ("1e-16 + i", "i"),
        ("10^20 + i - 10^20", "i"),
    ],
)
def test_what_rounding_leaves_over_is_zero(expression: str, expected: str) -> None:
    assert result(expression) == expected


@pytest.mark.parametrize(
    ("expression", "precision", "expected"),
    [
        ("1/3", 15, "0.333333333333333"),
        ("2/3", 2, "0.67"),
        ("pi", 50, "3.1415926535897932384626433832795028841971693993751"),
        ("1e-6", 15, "0.000001"),
        ("1e-7", 15, "1e-7"),
        ("0.99999999999999999e-6", 15, "0.000001"),
        ("1/7e10", 3, "1.43e-11"),
        ("2.5e30", 15, "2500000000000000000000000000000"),
        ("2.5e30 + 0.5", 15, "2.5e+30"),
        ("1e20 + 0.5", 15, "100000000000000000000"),
        ("1e21 + 0.5", 15, "1e+21"),
        ("999999999999999999999.9", 15, "1e+21"),
        ("-1/8", 15, "-0.125"),
        ("120.50", 15, "120.5"),
        ("12345.678", 3, "12300"),
        ("0", 15, "0"),
        ("1 + 2i", 15, "1 + 2i"),
        ("-i", 15, "-i"),
        ("2 - i", 15, "2 - i"),
        ("0.5i", 15, "0.5i"),
        ("-1.5 - 2.25i", 15, "-1.5 - 2.25i"),
        ("[1, 2, [3, true]]", 15, "[1, 2, [3, true]]"),
        ("[]", 15, "[]"),
    ],
)
def test_printing(expression: str, precision: int, expected: str) -> None:
    assert result(expression, precision=precision) == expected


@pytest.mark.parametrize(
    ("expression", "value", "kind"),
    [
        ("sqrt(3^2 + 4^2)", 5, "number"),
        ("1/3", 1 / 3, "number"),
        ("0.1 + 0.2", 0.3, "number"),
        ("sqrt(2)^2", 2, "number"),
        ("2^53 - 1", 2**53 - 1, "number"),
        ("2^53", None, "number"),
        ("-2^53", None, "number"),
        ("e^100", 2.6881171418161356e43, "number"),
        ("1e308 * 10 + 0.5", None, "number"),
        ("1e-400", None, "number"),
        ("5e-324", 5e-324, "number"),
        ("1 < 2", True, "boolean"),
        ("1/2 + 2i", {"re": 0.5, "im": 2}, "complex"),
        ("2^60 * i", {"re": 0, "im": None}, "complex"),
        ("[1, 1/2, true, 2i, 2^60]", [1, 0.5, True, {"re": 0, "im": 2}, None], "list"),
    ],
)
def test_the_value_is_the_nearest_json(expression: str, value: Any, kind: str) -> None:
    output = invoke(expression).output

    assert (output["value"], output["type"]) == (value, kind)
    assert type(output["value"]) is type(value)


@pytest.mark.parametrize(
    "expression",
    [
        "sin()",
        "sin(1, 2)",
        "log(8)",
        "round()",
        "gcd()",
        "sum()",
        "combinations(5)",
        "[1] + 1",
        "true + 1",
        "-true",
        "true!",
        "[1]%",
        "2^[1]",
        "sqrt(true)",
        "sum([1], 2)",
        "sum(1, [2])",
        "min([true])",
        "not 1",
        "true and 1",
        "false and 1",
        "1 or true",
        "true == 1",
        "[1] == 1",
        "true < false",
        "[1] < [2]",
        "pi = 3",
        "sin = 3",
        "i = 2",
        "mod = 2",
        "and = 1",
        "x = 1; x(2)",
    ],
)
def test_what_makes_no_sense_is_invalid_input(expression: str) -> None:
    answer = invoke(expression)

    assert answer.code == "invalid_input"
    assert not answer.retryable


def test_a_logarithm_without_a_base_says_what_to_write() -> None:
    assert "ln, log10" in str(invoke("log(8)").error)


@pytest.mark.parametrize(
    "expression",
    [
        "1/0",
        "1 % 0",
        "mod(1, 0)",
        "5 / (sqrt(2)^2 - 2)",
        "ln(0)",
        "log10(0)",
        "log(0, 2)",
        "log(2, 0)",
        "0^-1",
        "0^i",
        "log(2, 1)",
        "log(2, cos(0))",
        "(-1)!",
        "2.5!",
        "i!",
        "combinations(-1, 2)",
        "gcd(1.5, 2)",
        "min([])",
        "sum([])",
        "std(1)",
        "var([1])",
        "i < 1",
        "max(i, 1)",
        "floor(i)",
        "tan(pi/2)",
        "atanh(1)",
        "atan(i)",
        "round(1, 0.5)",
    ],
)
def test_where_mathematics_has_no_answer_is_a_domain_error(expression: str) -> None:
    answer = invoke(expression)

    assert answer.code == "domain_error"
    assert not answer.retryable


@pytest.mark.parametrize(
    "expression",
    [
        "9^9^9",
        "2^40000",
        "10^20000",
        "1.5^99999",
        "0.5^40001",
        "1e20000",
        "1e-20000",
        "1e" + "9" * 900,
        "1001!",
        "factorial(10^9)",
        "combinations(10^9, 5*10^8)",
        "permutations(10^9, 10^9)",
        "2^39999 * 2",
        "lcm(2^39999, 3)",
        "exp(30000)",
        "sinh(10^100)",
        "cos(10^100 * i)",
        "e^(10^12000)",
        "sqrt(2)^(10^30)",
        "(1+i)^100000",
        "i^(10^6*i)",
        "round(1, 10^9)",
        "mod(pi^20000, 3)",
        "+".join(["1"] * 251),
        "(" * 51 + "1" + ")" * 51,
        "-" * 51 + "1",
        "2^" * 51 + "1",
        "sqrt(" * 51 + "2" + ")" * 51,
        "[" * 51 + "1" + "]" * 51,
        "(" * 490 + "1" + ")" * 490,
    ],
)
def test_what_is_too_large_is_refused_before_it_is_computed(expression: str) -> None:
    # Computed first, each of these would run into the second that a call may take.
    assert invoke(expression).code == "too_large"


@pytest.mark.parametrize(
    "expression",
    [
        "2^39999",
        "0.5^39999",
        "1000!",
        "+".join(["1"] * 250),
        "(" * 50 + "1" + ")" * 50,
        "-" * 50 + "1",
        "0e" + "9" * 900,
        "[" + ",".join(["1"] * 499) + "]",
    ],
)
def test_bounds_are_inclusive(expression: str) -> None:
    assert invoke(expression).ok


def test_a_whole_number_of_thousands_of_digits_is_printed_in_full() -> None:
    assert result("10^4999") == "1" + "0" * 4999
    assert result("-10^12000 + 1") == "-" + "9" * 12000
    assert invoke("10^4999").output["value"] is None


@pytest.mark.parametrize(
    "expression",
    [
        "+".join(["sin(3^25000)"] * 60),
        "a = 3^25000/7^14000; b = a/3; std(" + ",".join(["a,b"] * 200) + ")",
        "a = 3^25000/7^14000; b = a/3; median(" + ",".join(["a,b"] * 200) + ")",
        "a = 3^25000/7^14000; [" + ",".join(["a"] * 400) + "]",
    ],
)
def test_work_that_takes_too_long_ends_with_a_timeout(expression: str) -> None:
    started = time.monotonic()
    answer = invoke(expression)

    assert (answer.code, answer.retryable) == ("timeout", True)
    assert time.monotonic() - started < 5


def test_a_cancelled_run_ends_the_call() -> None:
    asked = iter([False])
    context = SkillContext(Caller("run"), cancelled=lambda: next(asked, True))

    answer = REGISTRY.invoke("math.evaluate", {"expression": "1 + 1"}, context)

    assert answer.code == "cancelled"


def test_variables_are_decimal_numbers_as_written() -> None:
    assert result("2 * x + 1", variables={"x": 3.25}) == "7.5"
    assert result("3x == 0.3", variables={"x": 0.1}) == "true"
    assert result("x", variables={"x": 0.1}, precision=50) == "0.1"
    assert result("x + 1", variables={"x": 2**70}) == str(2**70 + 1)
    assert result("x = x + 1; x", variables={"x": 1}) == "2"


@pytest.mark.parametrize(
    "more",
    [
        {"variables": {"pi": 3}},
        {"variables": {"sin": 3}},
        {"variables": {"and": 3}},
        {"variables": {"2x": 3}},
        {"variables": {"é": 3}},
        {"variables": {"": 3}},
        {"variables": {"x\n": 3}},
        {"variables": {"x": "3"}},
        {"variables": {"x": True}},
        {"variables": {"x": None}},
        {"variables": {"x": float("inf")}},
        {"variables": {f"x{n}": n for n in range(33)}},
        {"precision": 1},
        {"precision": 51},
        {"precision": 15.0},
        {"approved": True},
        {"expression": ""},
        {"expression": "1" * 1001},
        {"expression": 1},
    ],
)
def test_input_out_of_bounds_is_refused(more: dict[str, Any]) -> None:
    answer = REGISTRY.invoke("math.evaluate", {"expression": "1", **more}, SkillContext(Caller("person")))

    assert answer.code == "invalid_input"


def test_the_global_precision_is_left_alone() -> None:
    mpmath.mp.dps = 7
    try:
        assert result("pi", precision=30) == "3.14159265358979323846264338328"
        assert mpmath.mp.dps == 7
    finally:
        mpmath.mp.dps = 15


def test_evaluate_raises_coded_errors_of_its_own() -> None:
    with pytest.raises(SkillError) as caught:
        evaluate("1/0")

    assert caught.value.code == "domain_error"


def test_what_the_skill_says_of_itself() -> None:
    definition = SKILLS[0].definition()

    assert definition["name"] == "math.evaluate"
    assert (definition["operations"], definition["effect"], definition["timeoutS"]) == ([], "pure", 1)
    assert definition["catalogued"] and definition["documented"]
    assert not (definition["worldActing"] or definition["costBearing"] or definition["openWorld"])
