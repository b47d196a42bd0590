"""How a value is shown to people, and what of it a JSON number can hold."""

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Final

from registry.base import Json
from registry.skills.mathematics.values import Complex, Real, Value, fraction, is_exact, whole

#: Whole numbers up to here are the same in every JSON reader.
MAX_SAFE: Final = 2**53 - 1
#: Powers of ten between which a number is shown without an exponent: from 1e-6 to below 1e21.
LEAST_PLAIN: Final = -6
FIRST_EXPONENT: Final = 21


def significant(value: Real, digits: int) -> Decimal:
    """The number to so many significant digits, rounded once from its full value."""
    exact = fraction(value)
    context = Context(prec=digits, rounding=ROUND_HALF_UP)
    return context.divide(Decimal(exact.numerator), Decimal(exact.denominator))


def show(value: Value, precision: int, check: Callable[[], None] = lambda: None) -> str:
    """A value as text: `5`, `2.5e+30`, `1 + 2i`, `[1, 2, 3]`, `true`. `check` raises when the time is over."""
    check()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ", ".join(show(item, precision, check) for item in value) + "]"
    if isinstance(value, Complex):
        return _complex(value, precision)
    return _real(value, precision)


def as_json(value: Value) -> Json:
    """The nearest JSON value: whole numbers as integers, null for what a double cannot hold."""
    if isinstance(value, bool):
        return value
    if isinstance(value, list):
        return [as_json(item) for item in value]
    if isinstance(value, Complex):
        return {"re": _double(value.re), "im": _double(value.im)}
    return _double(value)


def _real(value: Real, precision: int) -> str:
    number = whole(value)
    if number is not None:
        # Not str(int): Python refuses that beyond 4,300 digits.
        return str(Decimal(number))
    rounded = significant(value, precision)
    power = rounded.adjusted()
    if LEAST_PLAIN <= power < FIRST_EXPONENT or not rounded:
        plain = format(rounded, "f")
        return plain.rstrip("0").rstrip(".") if "." in plain else plain
    digits = "".join(map(str, rounded.as_tuple().digits)).rstrip("0")
    sign = "-" if rounded < 0 else ""
    return f"{sign}{digits[0]}{'.' + digits[1:] if digits[1:] else ''}e{power:+d}"


def _complex(value: Complex, precision: int) -> str:
    size = _real(abs(value.im), precision)
    imaginary = "i" if size == "1" else f"{size}i"
    negative = value.im < 0
    if value.re == 0:
        return f"-{imaginary}" if negative else imaginary
    return f"{_real(value.re, precision)} {'-' if negative else '+'} {imaginary}"


def _double(value: Real) -> Json:
    number = whole(value)
    if number is not None:
        return number if abs(number) <= MAX_SAFE else None
    exact = fraction(value)
    try:
        double = exact.numerator / exact.denominator
    except OverflowError:
        return None
    if double == 0 and exact != 0:
        return None
    return int(double) if double.is_integer() and abs(double) <= MAX_SAFE and not is_exact(value) else double
