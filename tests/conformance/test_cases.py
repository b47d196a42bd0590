"""Every case in process: the words of the spec, without a worker or a database."""

from typing import Any

import pytest

from orchestrator.limits import Limits
from registry.graph import expressions
from registry.graph.expressions import ABSENT, ExpressionError, Slots
from registry.graph.validation import validate
from registry.packs import PACKS
from tests.conformance.casebook import cases
from tests.conformance.looking import faults, same
from workers.inprocess import script, stage


@pytest.mark.parametrize("case_id", list(cases("expressions")))
def test_an_expression(case_id: str) -> None:
    case = cases("expressions")[case_id]
    given = {"state": {}, "item": ABSENT, "index": ABSENT} | case.get("slots", {})
    slots = Slots(**{name: given.get(name) for name in ("input", "state", "output", "resume", "item", "index")})

    value: Any = None
    error = None
    try:
        value = expressions.compile(case["expr"]).evaluate(slots)
    except ExpressionError as failed:
        error = failed.code

    assert error == case.get("error")
    assert error is not None or same(value, case["value"])


@pytest.mark.parametrize("case_id", list(cases("validation")))
def test_a_definition(case_id: str) -> None:
    case = cases("validation")[case_id]

    found = validate(case["definition"])

    for severity in ("error", "warning"):
        assert sorted(f.code for f in found if f.severity == severity) == sorted(case[f"{severity}s"])
    for code, paths in case.get("paths", {}).items():
        assert sorted(f.path for f in found if f.code == code) == sorted([paths] if isinstance(paths, str) else paths)


@pytest.mark.parametrize("case_id", list(cases("runtime")))
def test_a_run(case_id: str) -> None:
    case = cases("runtime")[case_id]

    report = stage.run(case["definition"], script.read_script(case["script"]), PACKS, Limits())

    assert not faults(report, case["expect"])
