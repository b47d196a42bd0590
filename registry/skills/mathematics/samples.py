"""Functions of many numbers, given one by one or as a list."""

from fractions import Fraction
from functools import cmp_to_key, reduce

from registry.skills.mathematics.arithmetic import ZERO, Arithmetic
from registry.skills.mathematics.counting import real
from registry.skills.mathematics.powers import square_root
from registry.skills.mathematics.values import Value, domain_error


def least(arithmetic: Arithmetic, *numbers: Value) -> Value:
    return min((real(number, "min") for number in numbers), key=cmp_to_key(arithmetic.order))


def greatest(arithmetic: Arithmetic, *numbers: Value) -> Value:
    return max((real(number, "max") for number in numbers), key=cmp_to_key(arithmetic.order))


def total(arithmetic: Arithmetic, *numbers: Value) -> Value:
    return reduce(arithmetic.add, numbers, ZERO)


def mean(arithmetic: Arithmetic, *numbers: Value) -> Value:
    return arithmetic.divide(total(arithmetic, *numbers), Fraction(len(numbers)))


def median(arithmetic: Arithmetic, *numbers: Value) -> Value:
    ordered = sorted((real(number, "median") for number in numbers), key=cmp_to_key(arithmetic.order))
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return mean(arithmetic, ordered[middle - 1], ordered[middle])


def variance(arithmetic: Arithmetic, *numbers: Value) -> Value:
    """Of a sample: the sum of squares over n - 1."""
    if len(numbers) < 2:
        raise domain_error("var and std need two values or more")
    centre = mean(arithmetic, *(real(number, "var and std") for number in numbers))
    apart = [arithmetic.subtract(number, centre) for number in numbers]
    squares = [arithmetic.multiply(difference, difference) for difference in apart]
    return arithmetic.divide(total(arithmetic, *squares), Fraction(len(numbers) - 1))


def deviation(arithmetic: Arithmetic, *numbers: Value) -> Value:
    return square_root(arithmetic, variance(arithmetic, *numbers))
