"""Numbers added, multiplied and compared: exactly while they are rational, else with twenty digits to spare.

Every thread has an mpmath context of its own, because the working precision of the global one is shared by all threads;
one for each call would cost more than most of what is calculated.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import cached_property
from threading import Lock, local
from typing import Any, Final

from mpmath import MPContext

from registry.skills.mathematics.printing import significant
from registry.skills.mathematics.values import (
    MAX_BITS,
    Complex,
    Real,
    Value,
    bits,
    domain_error,
    fraction,
    invalid,
    is_exact,
    is_real,
    kind,
    too_large,
)

ZERO: Final = Fraction(0)
ONE: Final = Fraction(1)
_DIGITS_PER_BIT: Final = 0.30103
#: Digits beyond the working ones inside one formula: the size of the largest exponent, and some.
_GUARD: Final = 10
#: mpmath keeps the digits of pi, ln 2 and the like in memos that two threads may tear: value first, precision after.
_MEMOS: Final = Lock()
_OWN: Final = local()


class Arithmetic:
    """The arithmetic of one call.

    Args:
        precision: digits that are shown.
        check: called before every costly step; raises when the time is over.

    Attributes:
        precision: digits that are shown.
        digits: digits that are worked with.
        tiny: the part of a number below which two are alike, or one vanishes beside the other.
        noise: the part below which a difference is only what rounding left over.
    """

    def __init__(self, precision: int, check: Callable[[], None] = lambda: None) -> None:
        self.check = check
        self.precision = precision
        self.digits = precision + 20
        self.tiny = Fraction(1, 10**precision)
        self.noise = Fraction(1, 10 ** (precision + 16))

    @cached_property
    def _mp(self) -> Any:
        """Asked for with the first number that is not rational; no two calls of a thread are under way at once."""
        context = getattr(_OWN, "context", None)
        if context is None:
            context = _OWN.context = MPContext()
        context.dps = self.digits
        return context

    def constant(self, name: str) -> Real:
        with _MEMOS:
            return +getattr(self._mp, name)

    def apply(self, function: str, *arguments: Value) -> Value:
        """A function of mpmath. An exact argument goes in with all its digits, so none of them cancels away.

        Raises:
            SkillError: `domain_error` where the function has no finite value.
        """
        return self._applied(getattr(self._mp, function), function, arguments)

    def exponential(self, base: Value, exponent: Value) -> Value:
        """The power by way of the logarithm: as quick for an exponent of 10,000 digits as for a small one.

        Raises:
            SkillError: `domain_error` where the power has no finite value.
        """
        return self._applied(lambda b, e: self._mp.exp(e * self._mp.ln(b)), "the power", (base, exponent))

    def root(self, number: int, degree: int) -> int | None:
        """The whole root of a natural number, or None when it has none."""
        if number < 2:
            return number
        if degree >= number.bit_length():
            return None
        size = int(number.bit_length() / degree * _DIGITS_PER_BIT) + 20
        with _MEMOS, self._mp.workdps(size):
            candidate = int(self._mp.nint(self._mp.mpf(number) ** (self._mp.one / degree)))
        return candidate if candidate**degree == number else None

    def settle(self, value: Real) -> Real:
        """A result that is not too large; a fraction too long to be carried exactly goes on with the working digits.

        Raises:
            SkillError: `too_large`.
        """
        self.check()
        if is_exact(value):
            if bits(value) <= MAX_BITS:
                return value
            if value.denominator == 1:
                raise too_large(f"a result has more than {MAX_BITS} bits")
            value = self._library(value)
        if value and abs(self._mp.mag(value)) > MAX_BITS:
            raise too_large(f"a result is beyond 2^{MAX_BITS}, or nearer to 0 than 2^-{MAX_BITS}")
        return value

    def complex(self, re: Real, im: Real) -> Value:
        """A complex number, plain when its imaginary part vanishes. A part known exactly vanishes only as 0."""
        if im == 0 or (not is_exact(im) and self.negligible(im, re)):
            return re
        if re != 0 and not is_exact(re) and self.negligible(re, im):
            return Complex(ZERO, im)
        return Complex(re, im)

    def final(self, value: Value) -> Value:
        """A value as it is answered: there a small part vanishes beside a large one even when it is exact."""
        if isinstance(value, list):
            return [self.final(item) for item in value]
        if isinstance(value, Complex):
            if self.negligible(value.im, value.re):
                return value.re
            return Complex(ZERO, value.im) if self.negligible(value.re, value.im) else value
        return value

    def negligible(self, part: Real, other: Real) -> bool:
        return abs(fraction(part)) < self.tiny * abs(fraction(other))

    def number(self, value: Value, what: str) -> Value:
        """The value, when it is a number; `what` names its place in the refusal."""
        if isinstance(value, bool | list):
            raise invalid(f"{what} takes numbers, and got a {kind(value)}")
        return value

    def add(self, left: Value, right: Value) -> Value:
        if is_real(left) and is_real(right):
            return self._plus(left, right)
        a, b = _parts(left), _parts(right)
        return self.complex(self._plus(a.re, b.re), self._plus(a.im, b.im))

    def subtract(self, left: Value, right: Value) -> Value:
        return self.add(left, self.negate(right))

    def negate(self, value: Value) -> Value:
        return Complex(-value.re, -value.im) if isinstance(value, Complex) else -value

    def multiply(self, left: Value, right: Value) -> Value:
        if is_real(left) and is_real(right):
            return self._times(left, right)
        a, b = _parts(left), _parts(right)
        re = self._plus(self._times(a.re, b.re), -self._times(a.im, b.im))
        im = self._plus(self._times(a.re, b.im), self._times(a.im, b.re))
        return self.complex(re, im)

    def divide(self, left: Value, right: Value) -> Value:
        if isinstance(right, Complex):
            square = self._plus(self._times(right.re, right.re), self._times(right.im, right.im))
            return self.divide(self.multiply(left, Complex(right.re, -right.im)), square)
        if right == 0:
            raise domain_error("division by zero")
        if isinstance(left, Complex):
            return self.complex(self._over(left.re, right), self._over(left.im, right))
        return self._over(left, right)

    def alike(self, left: Value, right: Value) -> bool:
        """Whether two numbers are equal: rational ones exactly, others to the digits that are shown."""
        a, b = _parts(left), _parts(right)
        if all(map(is_exact, (a.re, a.im, b.re, b.im))):
            return a == b
        apart = _square(Complex(fraction(a.re) - fraction(b.re), fraction(a.im) - fraction(b.im)))
        if apart <= self.tiny**2 * max(_square(a), _square(b)):
            return True
        return is_real(left) and is_real(right) and self._shown(left) == self._shown(right)

    def less(self, left: Real, right: Real) -> bool:
        return not self.alike(left, right) and self.order(left, right) < 0

    def order(self, left: Real, right: Real) -> int:
        """Below, at or above 0 as the first of two numbers is smaller, the same or larger to the last digit."""
        self.check()
        one, other = fraction(left), fraction(right)
        return (one > other) - (one < other)

    def nearest(self, value: Real) -> Fraction | None:
        """The whole number an inexact one stands for, when only rounding keeps them apart."""
        if is_exact(value):
            return value if value.denominator == 1 else None
        exact = fraction(value)
        closest = Fraction(round(exact))
        return closest if abs(exact - closest) <= self.noise * abs(exact) else None

    def is_resolved(self, value: Real) -> bool:
        """Whether the digits of a number reach down to its units."""
        return is_exact(value) or not value or self._mp.mag(value) * _DIGITS_PER_BIT < self.digits - 4

    def _applied(self, formula: Callable[..., Any], name: str, arguments: tuple[Value, ...]) -> Value:
        self.check()
        try:
            made = self._compute(formula, arguments)
        except (ArithmeticError, ValueError):
            raise domain_error(f"{name} has no value there") from None
        if not self._mp.isfinite(made):
            raise domain_error(f"{name} has no finite value there")
        if isinstance(made, self._mp.mpc):
            return self.complex(self.settle(made.real), self.settle(made.imag))
        return self._recognised(made) if all(map(is_exact, arguments)) else self.settle(made)

    def _compute(self, formula: Callable[..., Any], arguments: tuple[Value, ...]) -> Any:
        """A formula with enough digits for its exact arguments, rounded to the working ones."""
        parts = [part for a in arguments for part in ((a.re, a.im) if isinstance(a, Complex) else (a,))]
        extra = sum(bits(part) for part in parts if is_exact(part))
        with _MEMOS, self._mp.workdps(self.digits + _GUARD + int(extra * _DIGITS_PER_BIT)):
            made = formula(*map(self._library, arguments))
        return +made

    def _library(self, value: Value) -> Any:
        """A number as mpmath takes it, at the precision set right now."""
        if isinstance(value, Complex):
            return self._mp.mpc(self._library(value.re), self._library(value.im))
        return self._mp.mpf(value.numerator) / value.denominator if is_exact(value) else value

    def _recognised(self, made: Real) -> Real:
        """What came of exact arguments: whole when all its digits say so, as log10(1000) is."""
        closest = self.nearest(made) if abs(made) < 10**10 else None
        return closest if closest is not None else self.settle(made)

    def _shown(self, value: Real) -> Any:
        return significant(value, self.precision)

    def _plus(self, left: Real, right: Real) -> Real:
        if is_exact(left) and is_exact(right):
            return self.settle(left + right)
        a, b = self._library(left), self._library(right)
        total = a + b
        if abs(fraction(total)) <= self.noise * max(abs(fraction(a)), abs(fraction(b))):
            return ZERO
        return self.settle(total)

    def _times(self, left: Real, right: Real) -> Real:
        if left == 0 or right == 0:
            return ZERO
        if is_exact(left) and is_exact(right):
            return self.settle(left * right)
        return self.settle(self._library(left) * self._library(right))

    def _over(self, left: Real, right: Real) -> Real:
        if is_exact(left) and is_exact(right):
            return self.settle(left / right)
        return self.settle(self._library(left) / self._library(right))


def _parts(value: Value) -> Complex:
    return value if isinstance(value, Complex) else Complex(value, ZERO)


def _square(value: Complex) -> Fraction:
    return fraction(value.re) ** 2 + fraction(value.im) ** 2
