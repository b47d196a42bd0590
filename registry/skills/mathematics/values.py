"""What an expression may come to, and the limits of its size.

A real number is exact (`Fraction`) as long as it can be, else an mpf of the call's own context. The library publishes
no types, so both go by the name `Real`.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias, TypeGuard

from registry.errors import Detail, SkillError

#: A Fraction, or an mpf.
Real: TypeAlias = Any


@dataclass(frozen=True)
class Complex:
    """A number with an imaginary part other than 0."""

    re: Real
    im: Real


#: Real, Complex, bool, or a list of values.
Value: TypeAlias = Any
Kind: TypeAlias = Literal["number", "boolean", "complex", "list"]

#: Bits of a whole number, and of the size of any other: the largest is below 2^40,000, the least above 2^-40,000.
MAX_BITS = 40_000


def is_exact(value: Value) -> TypeGuard[Fraction]:
    return isinstance(value, Fraction)


def is_real(value: Value) -> bool:
    return not isinstance(value, bool | list | Complex)


def fraction(value: Real) -> Fraction:
    """The value of a real number without any loss."""
    return value if is_exact(value) else Fraction(*value.as_integer_ratio())


def bits(value: Fraction) -> int:
    """The bits of the longer of numerator and denominator."""
    return max(value.numerator.bit_length(), value.denominator.bit_length())


def whole(value: Real) -> int | None:
    """The integer an exact number is, or None."""
    return value.numerator if is_exact(value) and value.denominator == 1 else None


def kind(value: Value) -> Kind:
    """The word for a value in messages and in the output: number, boolean, complex, list."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, list):
        return "list"
    return "complex" if isinstance(value, Complex) else "number"


def domain_error(what: str) -> SkillError:
    return SkillError("domain_error", what)


def invalid(what: str) -> SkillError:
    return SkillError("invalid_input", f"expression: {what}", details=[Detail("expression", what)])


def too_large(what: str) -> SkillError:
    return SkillError("too_large", what)
