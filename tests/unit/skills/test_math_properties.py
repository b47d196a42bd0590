"""math.evaluate against other ways to the same number."""

import random
import re
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import mpmath
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from registry.errors import SkillError
from registry.skills.mathematics.evaluate import evaluate

CODES = {"invalid_input", "domain_error", "too_large"}

literals = st.one_of(
    st.integers(0, 10**6).map(str),
    st.tuples(st.integers(0, 999), st.integers(0, 999)).map(lambda p: f"{p[0]}.{p[1]:03}"),
)
trees = st.recursive(
    literals,
    lambda inner: st.tuples(inner, st.sampled_from(["+", "-", "*", "/"]), inner).map(
        lambda t: f"({t[0]} {t[1]} {t[2]})"
    ),
    max_leaves=12,
)


def exactly(text: str) -> Fraction | None:
    """What Python's own grammar makes of the same text, every literal a fraction."""
    try:
        return Fraction(eval(re.sub(r"[0-9]+(\.[0-9]+)?", lambda m: f"F('{m[0]}')", text), {"F": Fraction}))
    except ZeroDivisionError:
        return None


@given(trees)
def test_rational_arithmetic_is_exact(text: str) -> None:
    expected = exactly(text)
    if expected is None:
        with pytest.raises(SkillError) as caught:
            evaluate(text)
        assert caught.value.code == "domain_error"
        return

    answer = evaluate(f"a = {text}; [a == {expected.numerator}/{expected.denominator}, a]", precision=50)

    assert answer.value[0] is True
    assert answer.value[1] == (expected.numerator / expected.denominator) or expected.denominator == 1


@given(trees, st.integers(2, 50))
def test_what_is_printed_reads_back_as_the_same_number_to_its_digits(text: str, precision: int) -> None:
    expected = exactly(text)
    assume(expected)
    assert expected is not None

    printed = Fraction(evaluate(text, precision=precision).result.replace("+", ""))

    assert abs(printed - expected) <= abs(expected) * Fraction(1, 2 * 10 ** (precision - 1))
    if expected.denominator == 1:
        assert printed == expected


@given(st.integers(-(10**40), 10**40), st.integers(-(10**40), 10**40).filter(bool))
def test_remainder_has_the_sign_of_the_divisor(left: int, right: int) -> None:
    assert evaluate(f"({left}) % ({right})").result == str(left % right)


@given(
    st.sampled_from(
        ["sin", "cos", "tan", "exp", "sinh", "cosh", "tanh", "atan", "asinh", "ln", "log2", "sqrt", "cbrt"]
    ),
    st.integers(1, 10**9),
    st.integers(1, 10**6),
)
def test_functions_agree_with_the_library_at_a_higher_precision(name: str, top: int, bottom: int) -> None:
    context = mpmath.MPContext()
    context.dps = 90
    argument = context.mpf(top) / bottom
    assume(name not in ("exp", "sinh", "cosh") or argument < 20_000)
    names = {"log2": lambda x: context.log(x, 2)}
    expected = names.get(name, getattr(context, name, None))(argument)

    shown = context.mpf(evaluate(f"{name}({top}/{bottom})", precision=50).result)

    assert abs(shown - expected) <= abs(expected) * context.mpf(10) ** -49


@given(st.integers(2, 10**6), st.integers(1, 10**6), st.integers(-60, 60), st.integers(1, 12))
def test_powers_and_roots_undo_each_other(top: int, bottom: int, power: int, root: int) -> None:
    assume(power)
    text = f"x = {top}/{bottom}; ((x^{root})^(1/{root}) == x) and ((x^(1/{root}))^{root} == x)"

    assert evaluate(text).value is True
    assert evaluate(f"x = {top}/{bottom}; x^{power} * x^({-power}) == 1").value is True


PIECES = st.sampled_from(
    [
        *"0123456789+-*/^!%()[],;=<>. \n²'_\\×π",
        "==",
        "!=",
        "pi",
        "e",
        "i",
        "x",
        "sin(",
        "log(",
        "mod",
        "sum(",
        "true",
        "1e9",
    ]
)


@settings(max_examples=400)
@given(st.lists(PIECES, min_size=1, max_size=25).map("".join))
def test_any_text_gets_an_answer_or_a_coded_refusal(text: str) -> None:
    try:
        answer = evaluate(text, {"x": 2.5})
    except SkillError as error:
        assert error.code in CODES
        assert error.message
        return
    assert answer.result
    assert answer.type in ("number", "boolean", "complex", "list")


def test_calls_in_many_threads_do_not_disturb_each_other() -> None:
    jobs = [
        (f"{function}({n}/7)", precision)
        for function in ("sin", "ln", "exp", "atan", "log10", "sqrt")
        for n in range(1, 12)
        for precision in (2, 15, 33, 50)
    ]
    jobs += [(f"sin(10^{n}) + ln(3^{n})", 50) for n in range(50, 3000, 190)]
    expected = [evaluate(text, precision=precision) for text, precision in jobs]
    order = list(range(len(jobs)))
    random.Random(7).shuffle(order)

    with ThreadPoolExecutor(8) as pool:
        answers = dict(zip(order, pool.map(lambda n: evaluate(jobs[n][0], precision=jobs[n][1]), order), strict=True))

    assert [answers[n] for n in range(len(jobs))] == expected
