"""The functions and constants an expression may name."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from registry.skills.mathematics import counting, samples
from registry.skills.mathematics.arithmetic import ONE, ZERO, Arithmetic
from registry.skills.mathematics.powers import cube_root, judge_exponential, square_root
from registry.skills.mathematics.values import (
    Complex,
    Real,
    Value,
    domain_error,
    fraction,
    invalid,
    is_exact,
)


@dataclass(frozen=True)
class Function:
    """One name: how many arguments it takes, and what it does with them.

    Attributes:
        most: None for any number.
        spreads: takes its arguments one by one or as one list.
    """

    apply: Callable[..., Value]
    least: int = 1
    most: int | None = 1
    spreads: bool = False

    def call(self, arithmetic: Arithmetic, name: str, arguments: list[Value]) -> Value:
        """The value of a call.

        Raises:
            SkillError: `invalid_input` for a wrong count or kind of arguments, `domain_error`, `too_large`.
        """
        if self.spreads and len(arguments) == 1 and isinstance(arguments[0], list):
            arguments = arguments[0]
            if not arguments:
                raise domain_error(f"{name} of an empty list")
        if len(arguments) < self.least or (self.most is not None and len(arguments) > self.most):
            raise invalid(f"{name} takes {self._count()}, and got {len(arguments)}{_hint(name)}")
        return self.apply(arithmetic, *(arithmetic.number(argument, name) for argument in arguments))

    def _count(self) -> str:
        if self.most is None:
            return f"at least {self.least} argument{'s' * (self.least > 1)}"
        if self.most > self.least:
            return f"{self.least} or {self.most} arguments"
        return f"{self.least} argument{'s' * (self.least > 1)}"


def constant(arithmetic: Arithmetic, name: str) -> Value:
    """The value of one of `CONSTANTS`."""
    if name in _FIXED:
        return _FIXED[name]
    return arithmetic.multiply(Fraction(2), arithmetic.constant("pi")) if name == "tau" else arithmetic.constant(name)


def _hint(name: str) -> str:
    return "; use ln, log10, log2, or name a base: log(x, base)" if name == "log" else ""


def _library(function: str) -> Callable[[Arithmetic, Value], Value]:
    return lambda arithmetic, x: arithmetic.apply(function, x)


def _growing(function: str) -> Callable[[Arithmetic, Value], Value]:
    """A function that grows like e^x along the real axis."""

    def apply(arithmetic: Arithmetic, x: Value) -> Value:
        judge_exponential(x.re if isinstance(x, Complex) else x)
        return arithmetic.apply(function, x)

    return apply


def _circular(function: str) -> Callable[[Arithmetic, Value], Value]:
    """sin or cos: it grows along the imaginary axis, and counts as 0 where only rounding keeps it from that."""

    def apply(arithmetic: Arithmetic, x: Value) -> Value:
        if isinstance(x, Complex):
            judge_exponential(x.im)
            return arithmetic.apply(function, x)
        made = arithmetic.apply(function, x)
        return ZERO if abs(fraction(made)) < _slack(arithmetic, x) else made

    return apply


def _slack(arithmetic: Arithmetic, x: Real) -> Fraction:
    """How near to 0 the sine of x is 0. An exact x, however large, leaves no more doubt than its digits shown."""
    slack = abs(fraction(x)) * arithmetic.tiny / 10**5
    return min(slack, arithmetic.tiny) if is_exact(x) else slack


_sin = _circular("sin")
_cos = _circular("cos")


def _tan(arithmetic: Arithmetic, x: Value) -> Value:
    if isinstance(x, Complex):
        judge_exponential(x.im)
        return arithmetic.apply("tan", x)
    below = _cos(arithmetic, x)
    if below == 0:
        raise domain_error("tan has no value there")
    return arithmetic.divide(_sin(arithmetic, x), below)


def _tanh(arithmetic: Arithmetic, x: Value) -> Value:
    if isinstance(x, Complex):
        judge_exponential(x.re)
    return arithmetic.apply("tanh", x)


def _logarithm(function: str) -> Callable[[Arithmetic, Value], Value]:
    def apply(arithmetic: Arithmetic, x: Value) -> Value:
        if x == 0:
            raise domain_error("0 has no logarithm")
        return arithmetic.apply(function, x)

    return apply


def _log2(arithmetic: Arithmetic, x: Value) -> Value:
    return _log(arithmetic, x, Fraction(2))


def _log(arithmetic: Arithmetic, x: Value, base: Value) -> Value:
    if x == 0 or base == 0:
        raise domain_error("0 has no logarithm, and is no base of one")
    if base == 1:
        raise domain_error("1 is no base of a logarithm")
    return arithmetic.apply("log", x, base)


def _absolute(arithmetic: Arithmetic, x: Value) -> Value:
    if isinstance(x, Complex):
        square = arithmetic.add(arithmetic.multiply(x.re, x.re), arithmetic.multiply(x.im, x.im))
        return square_root(arithmetic, square)
    return abs(x)


def _re(_: Arithmetic, x: Value) -> Value:
    return x.re if isinstance(x, Complex) else x


def _im(_: Arithmetic, x: Value) -> Value:
    return x.im if isinstance(x, Complex) else ZERO


def _conj(_: Arithmetic, x: Value) -> Value:
    return Complex(x.re, -x.im) if isinstance(x, Complex) else x


def _arg(arithmetic: Arithmetic, x: Value) -> Value:
    return ZERO if x == 0 else arithmetic.apply("arg", x)


_FIXED: Final[dict[str, Value]] = {"i": Complex(ZERO, ONE), "true": True, "false": False}
CONSTANTS: Final = frozenset({"pi", "e", "tau", "phi", *_FIXED})

FUNCTIONS: Final[dict[str, Function]] = {
    "sqrt": Function(square_root),
    "cbrt": Function(cube_root),
    "abs": Function(_absolute),
    "exp": Function(_growing("exp")),
    "ln": Function(_logarithm("ln")),
    "log": Function(_log, 2, 2),
    "log2": Function(_log2),
    "log10": Function(_logarithm("log10")),
    "sin": Function(_sin),
    "cos": Function(_cos),
    "tan": Function(_tan),
    "sinh": Function(_growing("sinh")),
    "cosh": Function(_growing("cosh")),
    "tanh": Function(_tanh),
    **{name: Function(_library(name)) for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh")},
    "re": Function(_re),
    "im": Function(_im),
    "conj": Function(_conj),
    "arg": Function(_arg),
    "sign": Function(counting.sign),
    "round": Function(counting.rounded, 1, 2),
    "floor": Function(counting.floor),
    "ceil": Function(counting.ceil),
    "mod": Function(counting.modulo, 2, 2),
    "gcd": Function(counting.gcd, 1, None),
    "lcm": Function(counting.lcm, 1, None),
    "factorial": Function(counting.factorial),
    "combinations": Function(counting.combinations, 2, 2),
    "permutations": Function(counting.permutations, 2, 2),
    "min": Function(samples.least, 1, None, spreads=True),
    "max": Function(samples.greatest, 1, None, spreads=True),
    "sum": Function(samples.total, 1, None, spreads=True),
    "mean": Function(samples.mean, 1, None, spreads=True),
    "median": Function(samples.median, 1, None, spreads=True),
    "std": Function(samples.deviation, 1, None, spreads=True),
    "var": Function(samples.variance, 1, None, spreads=True),
}
