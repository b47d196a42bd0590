"""Functions of real and of whole numbers: rounding, remainders, counting."""

import math
from fractions import Fraction

from registry.skills.mathematics.arithmetic import ONE, ZERO, Arithmetic
from registry.skills.mathematics.values import (
    MAX_BITS,
    Complex,
    Real,
    Value,
    domain_error,
    fraction,
    is_exact,
    too_large,
)

MAX_FACTORIAL = 1_000
#: 10^12,041 is the last power of ten within the bits of a number.
MAX_PLACES = 12_041


def real(value: Value, name: str) -> Real:
    """The value, when it is no complex number."""
    if isinstance(value, Complex):
        raise domain_error(f"{name} takes real numbers: complex ones have no order")
    return value


def sign(_: Arithmetic, x: Value) -> Value:
    number = real(x, "sign")
    return ZERO if number == 0 else ONE if number > 0 else -ONE


def floor(arithmetic: Arithmetic, x: Value) -> Value:
    number = real(x, "floor")
    if not arithmetic.is_resolved(number):
        return number
    closest = arithmetic.nearest(number)
    return closest if closest is not None else Fraction(math.floor(fraction(number)))


def ceil(arithmetic: Arithmetic, x: Value) -> Value:
    return arithmetic.negate(floor(arithmetic, arithmetic.negate(real(x, "ceil"))))


def rounded(arithmetic: Arithmetic, x: Value, places: Value = ZERO) -> Value:
    """To so many decimal places, half away from zero; a negative count rounds to tens, hundreds and on."""
    number, count = real(x, "round"), integer(arithmetic, places, "round")
    if abs(count) > MAX_PLACES:
        raise too_large(f"round takes at most {MAX_PLACES} places")
    unit = Fraction(10) ** -count
    halves = number * 2 / unit if is_exact(number) else arithmetic.divide(number, unit / 2)
    if not arithmetic.is_resolved(halves):
        return number
    closest = arithmetic.nearest(halves)
    exact = (closest if closest is not None else fraction(halves)) / 2
    away = math.floor(abs(exact) + Fraction(1, 2))
    return arithmetic.settle((away if exact >= 0 else -away) * unit)


def modulo(arithmetic: Arithmetic, x: Value, divisor: Value) -> Value:
    """The remainder with the sign of the divisor."""
    left, right = real(x, "mod"), real(divisor, "mod")
    if right == 0:
        raise domain_error("mod by zero")
    quotient = floor(arithmetic, arithmetic.divide(left, right))
    if not is_exact(quotient):
        raise too_large("mod of a number whose units are beyond the digits worked with; raise precision")
    return arithmetic.subtract(left, arithmetic.multiply(right, quotient))


def gcd(arithmetic: Arithmetic, *numbers: Value) -> Value:
    found = 0
    for number in numbers:
        arithmetic.check()
        found = math.gcd(found, integer(arithmetic, number, "gcd"))
    return Fraction(found)


def lcm(arithmetic: Arithmetic, *numbers: Value) -> Value:
    found = ONE
    for number in numbers:
        found = arithmetic.settle(Fraction(math.lcm(found.numerator, integer(arithmetic, number, "lcm"))))
    return found


def factorial(arithmetic: Arithmetic, x: Value) -> Value:
    number = natural(arithmetic, x, "factorial")
    if number > MAX_FACTORIAL:
        raise too_large(f"factorial takes numbers up to {MAX_FACTORIAL}")
    return Fraction(math.factorial(number))


def combinations(arithmetic: Arithmetic, of: Value, take: Value) -> Value:
    n, k = natural(arithmetic, of, "combinations"), natural(arithmetic, take, "combinations")
    if k > n:
        return ZERO
    k = min(k, n - k)
    # C(n, k) is at least (n/k)^k, and at most (e n/k)^k.
    if k and k * (math.log2(n) - math.log2(k)) > MAX_BITS:
        raise too_large(f"combinations would have more than {MAX_BITS} bits")
    return arithmetic.settle(Fraction(math.comb(n, k)))


def permutations(arithmetic: Arithmetic, of: Value, take: Value) -> Value:
    n, k = natural(arithmetic, of, "permutations"), natural(arithmetic, take, "permutations")
    if k > n:
        return ZERO
    # The larger half of the k factors are each at least n/2.
    if k and k / 2 * (math.log2(n) - 1) > MAX_BITS:
        raise too_large(f"permutations would have more than {MAX_BITS} bits")
    return arithmetic.settle(Fraction(math.perm(n, k)))


def integer(arithmetic: Arithmetic, value: Value, name: str) -> int:
    closest = arithmetic.nearest(real(value, name))
    if closest is None:
        raise domain_error(f"{name} takes whole numbers")
    return closest.numerator


def natural(arithmetic: Arithmetic, value: Value, name: str) -> int:
    number = integer(arithmetic, value, name)
    if number < 0:
        raise domain_error(f"{name} takes no negative numbers")
    return number
