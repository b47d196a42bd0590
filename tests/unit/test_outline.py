"""The outline of a DAG: every task once, chains straight, forks indented."""

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.terminal.outline import WIDEST, fold, outline


@st.composite
def plans(draw: st.DrawFn) -> dict[str, list[str]]:
    """DAGs whose tasks depend on earlier ones, in any order of the file."""
    count = draw(st.integers(0, 25))
    plan: dict[str, list[str]] = {}
    for number in range(count):
        before = [f"t{n}" for n in range(number)]
        plan[f"t{number}"] = draw(st.lists(st.sampled_from(before), unique=True, max_size=4)) if before else []
    keys = draw(st.permutations(list(plan)))
    return {key: plan[key] for key in keys}


@given(plans())
def test_every_task_stands_in_the_outline_once_and_names_all_it_depends_on(plan: dict[str, list[str]]) -> None:
    lines = outline(plan)
    assert sorted(line.key for line in lines) == sorted(plan)
    for line in lines:
        assert set(line.also_after) <= set(plan[line.key])
        assert len(line.also_after) == max(0, len(plan[line.key]) - 1)


@given(plans())
def test_a_task_stands_below_a_task_it_depends_on(plan: dict[str, list[str]]) -> None:
    lines = outline(plan)
    order = {line.key: number for number, line in enumerate(lines)}
    for line in lines:
        for above in set(plan[line.key]) - set(line.also_after):
            assert order[above] < order[line.key]


def test_a_fork_indents_and_a_chain_does_not() -> None:
    plan = {
        "profile": [],
        "monthly": ["profile"],
        "yearly": ["profile"],
        "brief": ["monthly", "yearly"],
        "end": ["brief"],
    }
    drawn = [(line.guides + line.key, line.also_after) for line in outline(plan)]
    assert drawn == [
        ("profile", ()),
        ("├─ monthly", ()),
        ("└─ yearly", ()),
        ("   brief", ("monthly",)),
        ("   end", ()),
    ]


def test_a_task_stands_below_the_deepest_of_its_dependencies() -> None:
    lines = outline({"a": [], "b": ["a"], "c": ["b"], "d": ["c", "a"]})
    assert [(line.key, line.also_after) for line in lines][-1] == ("d", ("a",))


def test_a_chain_of_thousands_needs_no_recursion_and_no_width() -> None:
    lines = outline({f"t{n}": [f"t{n - 1}"] if n else [] for n in range(5_000)})
    assert len(lines) == 5_000
    assert {line.guides for line in lines} == {""}


def test_forks_within_forks_stay_within_the_width() -> None:
    plan: dict[str, list[str]] = {"t0": []}
    for number in range(1, 60):
        plan[f"t{number}"] = [f"t{number - 1}"]
        plan[f"side{number}"] = [f"t{number - 1}"]
    assert max(len(line.guides) for line in outline(plan)) <= WIDEST


def test_a_cycle_is_drawn_rather_than_lost() -> None:
    assert sorted(line.key for line in outline({"a": ["b"], "b": ["a"], "c": ["a"]})) == ["a", "b", "c"]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 50)), max_size=60), st.integers(1, 70))
def test_folding_keeps_the_order_covers_every_line_and_fits(weights: list[tuple[int, int]], room: int) -> None:
    drawn = fold(weights, room)
    assert len(drawn) <= max(room, 1)
    covered = [n for part in drawn for n in (part if isinstance(part, range) else [part])]
    assert covered == list(range(len(weights)))


def test_folding_keeps_the_heaviest_in_sight() -> None:
    weights = [(0, n) for n in range(100)]
    weights[40] = (9, 0)
    assert 40 in fold(weights, 5)
