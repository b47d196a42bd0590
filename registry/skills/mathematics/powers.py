"""Powers and roots: exact where the answer is rational, and judged for size before anything is computed."""

from fractions import Fraction

from registry.skills.mathematics.arithmetic import ONE, ZERO, Arithmetic
from registry.skills.mathematics.values import (
    MAX_BITS,
    Complex,
    Real,
    Value,
    bits,
    domain_error,
    fraction,
    is_exact,
    is_real,
    too_large,
    whole,
)

LN2 = 0.6931471805599453
#: Exponents of more bits than this are not worked off by squaring.
_MAX_SQUARINGS = 64


def power(arithmetic: Arithmetic, base: Value, exponent: Value) -> Value:
    """`base ^ exponent`; the principal value where there are several, 1 for `0^0`.

    Raises:
        SkillError: `domain_error` for 0 to a negative power, `too_large`.
    """
    if base == 0:
        return _of_zero(exponent)
    times = whole(exponent) if is_real(exponent) else None
    if times is not None and is_exact(base):
        return _exact(arithmetic, base, times)
    if times is not None and isinstance(base, Complex) and times.bit_length() <= _MAX_SQUARINGS:
        _judge(arithmetic, base, exponent)
        return _squared(arithmetic, base, times)
    if is_exact(base) and is_exact(exponent):
        return _radical(arithmetic, base, exponent)
    return _general(arithmetic, base, exponent)


def square_root(arithmetic: Arithmetic, value: Value) -> Value:
    return power(arithmetic, value, Fraction(1, 2))


def cube_root(arithmetic: Arithmetic, value: Value) -> Value:
    """The real root of a real number, the principal one of a complex."""
    if is_real(value) and value < 0:
        return arithmetic.negate(power(arithmetic, -value, Fraction(1, 3)))
    return power(arithmetic, value, Fraction(1, 3))


def _of_zero(exponent: Value) -> Value:
    if exponent == 0:
        return ONE
    if (exponent.re if isinstance(exponent, Complex) else exponent) > 0:
        return ZERO
    raise domain_error("0 has no negative or imaginary power")


def _exact(arithmetic: Arithmetic, base: Fraction, times: int) -> Value:
    """A whole power of a rational number."""
    if abs(base) == 1:
        return base if times % 2 else ONE
    if (bits(base) - 1) * abs(times) < MAX_BITS:
        # At most twice as long as it may be: what it came to is judged then.
        return arithmetic.settle(base**times)
    if base.denominator == 1 and times > 0:
        raise too_large(f"the power has more than {MAX_BITS} bits")
    return _general(arithmetic, base, Fraction(times))


def _radical(arithmetic: Arithmetic, base: Fraction, exponent: Fraction) -> Value:
    """A broken power of a rational number: exact when the root is."""
    if base < 0 and exponent.denominator != 2:
        return _general(arithmetic, base, exponent)
    size = _positive_radical(arithmetic, abs(base), exponent)
    if base > 0:
        return size
    # i^n for an odd n is i or -i.
    return Complex(ZERO, size if exponent.numerator % 4 == 1 else -size)


def _positive_radical(arithmetic: Arithmetic, base: Fraction, exponent: Fraction) -> Real:
    top = arithmetic.root(base.numerator, exponent.denominator)
    bottom = arithmetic.root(base.denominator, exponent.denominator)
    if top is None or bottom is None:
        return _general(arithmetic, base, exponent)
    return _exact(arithmetic, Fraction(top, bottom), exponent.numerator)


def _squared(arithmetic: Arithmetic, base: Complex, times: int) -> Value:
    result: Value = ONE
    factor: Value = base if times > 0 else arithmetic.divide(ONE, base)
    left = abs(times)
    while left:
        if left & 1:
            result = arithmetic.multiply(result, factor)
        left >>= 1
        if left:
            factor = arithmetic.multiply(factor, factor)
    return result


def _general(arithmetic: Arithmetic, base: Value, exponent: Value) -> Value:
    _judge(arithmetic, base, exponent)
    return arithmetic.exponential(base, exponent)


def _judge(arithmetic: Arithmetic, base: Value, exponent: Value) -> None:
    """Refuses a power that would be too large, or nearer to 0 than its counterpart."""
    logarithm = arithmetic.multiply(exponent, arithmetic.apply("ln", base))
    judge_exponential(logarithm.re if isinstance(logarithm, Complex) else logarithm)


def judge_exponential(exponent: Real) -> None:
    """Refuses `e ^ exponent` when it would be too large, or nearer to 0 than its counterpart."""
    if abs(fraction(exponent)) > MAX_BITS * LN2:
        raise too_large(f"a result would be beyond 2^{MAX_BITS}, or nearer to 0 than 2^-{MAX_BITS}")
