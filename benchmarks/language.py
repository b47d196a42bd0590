"""What the graph language costs: one look at a large graph, and one evaluation of an expression."""

import time
from itertools import pairwise

from benchmarks.measure import Bar, Figure, tell
from benchmarks.projects import edge
from registry.graph import expressions
from registry.graph.expressions import Slots
from registry.graph.validation import parse_agent

NODES, EDGES = 500, 2_000
TIMES = 20_000
#: An edge's condition, a path, and a longer rule.
EXPRESSIONS = (
    "$output.finishReason = 'tool-calls'",
    "$state.results[0].name",
    "length($state.results) >= 1 && ($output.text = 'no' || $state.score > 2)",
)


def measure(rounds: int) -> list[Figure]:
    """Milliseconds of a validation, microseconds of an evaluation; medians over the rounds."""
    tell("the graph language")
    definition = large()
    checks, evaluations = [], []
    for _ in range(max(rounds, 3)):
        begun = time.perf_counter()
        agent, findings = parse_agent(definition)
        checks.append((time.perf_counter() - begun) * 1000)
        if agent is None:
            raise RuntimeError(f"the large graph is not valid: {findings[0].path}: {findings[0].message}")
        evaluations.append(_evaluation())
    return [
        Figure("graph", f"validate {NODES} nodes, {EDGES} edges", "ms", checks, bar=Bar(300, "value")),
        Figure("graph", "evaluate a compiled expression", "us", evaluations, bar=Bar(20, "value")),
    ]


def large() -> dict[str, object]:
    """The largest graph there may be: assignments in a row, with edges that skip ahead."""
    names = ["start", *(f"n{number}" for number in range(NODES - 2)), "end"]
    ahead = [
        edge(source, target, f"$state.k = '{skip}'")
        for skip in (5, 4, 3, 2)
        for source, target in zip(names, names[skip:], strict=False)
    ]
    row = [edge(source, target) for source, target in pairwise(names)]
    nodes = {name: {"type": "control:assign", "patch": {"k": "$input"}} for name in names[1:-1]}
    whole: dict[str, object] = {"start": {"type": "core:start"}, **nodes, "end": {"type": "core:end"}}
    return {
        "id": "large",
        "instructions": "Do it.",
        "graph": {"nodes": whole, "edges": ahead[: EDGES - len(row)] + row},
    }


def _evaluation() -> float:
    """Microseconds of the slowest of the expressions."""
    slots = Slots(None, {"results": [{"name": "a"}], "score": 3}, {"finishReason": "stop", "text": "yes"})
    worst = 0.0
    for text in EXPRESSIONS:
        compiled = expressions.compile(text)
        begun = time.perf_counter()
        for _ in range(TIMES):
            compiled.evaluate(slots)
        worst = max(worst, (time.perf_counter() - begun) / TIMES * 1e6)
    return worst
