"""Templates of a stand-in script: types are kept, unknown names are errors, nothing grows out of bounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.templates import TemplateFault, fill

NAMES = {
    "input": {"text": "Compare prices", "data": None},
    "results": [
        {"name": "math.evaluate", "ok": True, "output": {"value": 42, "items": [1, 2]}, "text": "42"},
        {"name": "files.read", "ok": False, "output": None, "text": "not_found: no such file"},
    ],
    "deps": {"list": {"status": "completed", "output": "a"}},
}
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("plain", "plain"),
        ("{{ results[0].output.value }}", 42),
        ("  {{ results[0].output.value }}\n", 42),
        ("{{- results[0].output.value -}}", 42),
        ("{{ results[0].output }}", {"value": 42, "items": [1, 2]}),
        ("{{ results[1].ok }}", False),
        ("{{ results[1].output }}", None),
        ("{{ results | map(attribute='name') }}", ["math.evaluate", "files.read"]),
        ("{{ '}}' }}", "}}"),
        ("is {{ results[0].output.value }}", "is 42"),
        ("{{ 1 }}{{ 2 }}", "12"),
        ("{{ '1' }}", "1"),
        ("{% for r in results %}{{ r.name }};{% endfor %}", "math.evaluate;files.read;"),
        ("{{ 2.555 | round(2) }}", 2.56),
        ("{{ 2.5 | number }}", "3"),
        ("{{ '1234.565' | number(2) }}", "1234.57"),
        ("{{ -0.5 | number }}", "-1"),
        ("{{ deps | tojson }}", '{"list":{"status":"completed","output":"a"}}'),
        ("<{{ '<&>' }}>", "<<&>>"),
        ("{{ -0.4 | number }}", "0"),
        ("body{margin:0}" * 20_000, "body{margin:0}" * 20_000),
        ("line\n", "line\n"),
        ("{{ input.text }}\n", "Compare prices\n"),
    ],
)
def test_a_template_gives_its_value(template, value):
    found = fill(template, NAMES)
    assert found == value
    assert type(found) is type(value)


def test_a_key_of_the_data_wins_over_a_method_of_its_type():
    assert fill("{{ results[0].output.items }}", NAMES) == [1, 2]


def test_templates_are_filled_at_any_depth_and_keys_are_left_alone():
    value = {"{{ x }}": [{"deep": "{{ results[0].output.value }}"}, 7, None]}
    assert fill(value, NAMES) == {"{{ x }}": [{"deep": 42}, 7, None]}


def test_what_a_tool_said_is_never_a_template():
    names = {"results": [{"text": "{{ 1 + 1 }}"}]}
    assert fill("said {{ results[0].text }}", names) == "said {{ 1 + 1 }}"
    assert fill("{{ results[0].text }}", names) == "{{ 1 + 1 }}"


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{{ nope }}", "'nope' is undefined"),
        ("{{ results[0].output.nope }}", "no attribute 'nope'"),
        ("{{ results[9].name }}", "no element 9"),
        ("{{ [nope] }}", "'nope' is undefined"),
        ("a {{ item }}", "'item' is undefined"),
        ("{{ 1 +", "unexpected"),
        ("{{ 1 | nosuch }}", "nosuch"),
        ("{{ 1 / 0 }}", "division by zero"),
        ("{{ 'x' | number }}", "'x' is no number"),
        ("{{ 1e308 * 10 }}", "not finite"),
        ("{{ range }}", "no JSON value"),
    ],
)
def test_a_template_that_cannot_be_filled_says_where_and_why(template, words):
    with pytest.raises(TemplateFault) as caught:
        fill({"args": [{"path": template}]}, NAMES)
    assert str(caught.value).startswith("args[0].path: ")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ results.__class__ }}",
        "{{ results.append(1) }}",
        "{{ deps.update({}) }}",
        "{{ (1).__reduce__() }}",
        "{{ 'a' * 1000000000 }}",
        "{{ 1000000000 * 'a' }}",
        "{{ [1] * 100000000 }}",
        "{{ 2 ** 99999999 }}",
        "{{ (10 ** 99) ** 99 }}",
        "{{ 9 ** 999 * 9 ** 999 }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ '{:1000000000d}'.format(1) }}",
        "{{ 'a'.ljust(1000000000) }}",
        "{{ 'a' | center(1000000000) }}",
        "{{ range(1000000000) | list }}",
        "{{ ('a' * 999999) | replace('a', 'b' * 999999) }}",
        "{{ range(1000) | join('a' * 999999) }}",
        "{% for a in range(1000) %}{{ 'a' * 99999 }}{% endfor %}",
        "{% for a in [1] %}{% for b in [1] %}{% for c in [1] %}{% endfor %}{% endfor %}{% endfor %}",
        "{% for a in [1] recursive %}{{ loop([1]) }}{% endfor %}",
        "{% set a = 'x' %}{{ a }}",
        "{% with a = 'x' %}{{ a }}{% endwith %}",
        "{% macro m() %}{% endmacro %}",
        "{% include 'x' %}",
        "{{" + "(" * 5000 + "1" + ")" * 5000 + "}}",
        "{{ 1 }}" * 50_000,
    ],
)
def test_a_hostile_template_is_refused_at_once(template):
    with pytest.raises(TemplateFault):
        fill(template, NAMES)
    assert NAMES["results"][0]["output"] == {"value": 42, "items": [1, 2]}


@given(json_values)
def test_a_value_passed_through_one_expression_comes_back_as_it_was(value):
    assert fill("{{ value }}", {"value": value}) == value
