"""Skills about data: mathematics."""

from typing import Annotated

from pydantic import Field, StringConstraints, field_validator

from registry.base import Json, Model
from registry.skills.context import SkillContext
from registry.skills.mathematics.values import Kind
from registry.skills.skill import Skill, skill

VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=100)]


class Evaluate(Model):
    expression: str = Field(
        min_length=1,
        max_length=1000,
        description="for example sqrt(3^2 + 4^2), 100 + 10%, x = 5; 2x^2; the last statement's value is the answer",
    )
    variables: dict[VariableName, int | float] = Field(
        default={}, max_length=32, description="values of names the expression uses"
    )
    precision: int = Field(default=15, ge=2, le=50, description="significant digits of the result")

    @field_validator("variables")
    @classmethod
    def _free_names(cls, variables: dict[str, int | float]) -> dict[str, int | float]:
        from registry.skills.mathematics.evaluate import RESERVED

        taken = sorted(RESERVED.intersection(variables))
        if taken:
            raise ValueError(f"{taken[0]} names a constant, a function or an operator; choose another name")
        return variables


class Evaluated(Model):
    #: For people: rounded to `precision`, whole numbers in full.
    result: str
    #: For programs: null when no JSON number can hold it.
    value: Json
    type: Kind


@skill("math.evaluate", title="Evaluate mathematics", timeout_s=1, loads=("registry.skills.mathematics.evaluate",))
def math_evaluate(arguments: Evaluate, context: SkillContext) -> Evaluated:
    """Evaluates a mathematical expression exactly and returns the result as text and as a number.
    Knows + - * / ^ ! %, mod, comparisons, and or not, lists, complex numbers, pi e tau phi i, and
    sqrt cbrt abs sign round floor ceil exp ln log(x, base) log2 log10, circular and hyperbolic functions and their
    inverses, gcd lcm factorial combinations permutations, min max sum mean median std var, re im conj arg.
    2pi and 2(3+4) multiply; 100 + 10% is 110; angles are radians; statements end at ; or a new line, and
    name = value assigns. At most 1,000 characters and 1 second. It has no strings, units, equations to solve, user
    functions, random numbers, dates, or access to files and the network.
    """
    from registry.skills.mathematics.evaluate import evaluate  # its libraries cost more than all other skills

    answer = evaluate(arguments.expression, arguments.variables, precision=arguments.precision, check=context.check)
    return Evaluated(result=answer.result, value=answer.value, type=answer.type)


SKILLS: tuple[Skill, ...] = (math_evaluate,)

__all__ = ["SKILLS", "Evaluate", "Evaluated"]
