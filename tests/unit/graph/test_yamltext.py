"""YAML is read as JSON with fewer quotes."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.errors import WrongUse
from registry.yamltext import load


def refusal(text, **options):
    with pytest.raises(WrongUse) as caught:
        load(text, name="project.yaml", **options)
    assert caught.value.code == "invalid_yaml"
    return str(caught.value)


@pytest.mark.parametrize(
    "written",
    [
        "no",
        "on",
        "Yes",
        "y",
        "TRUE",
        "1:30",
        "012",
        "0x1F",
        "1_000",
        "2014-01-01",
        "2014-01-01 10:00:00",
        ".5",
        "+1",
        ".inf",
        ".NaN",
        "=",
        "Null",
        "1.",
        "a b",
    ],
)
def test_a_plain_text_stays_the_text_it_is(written):
    assert load(f"a: {written}", name="x") == {"a": written}


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("null", None),
        ("~", None),
        ("", None),
        ("true", True),
        ("false", False),
        ("-12", -12),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ("-0", 0),
        ("'1'", "1"),
        ('"null"', "null"),
        ("[1, {a: b}]", [1, {"a": "b"}]),
    ],
)
def test_words_and_numbers_are_those_of_json(written, value):
    got = load(f"a: {written}", name="x")["a"]
    assert got == value and type(got) is type(value)


def test_keys_are_texts_as_written():
    assert load("1: a\ntrue: b\n2014-01-01: c\n'x y': d", name="x") == {
        "1": "a",
        "true": "b",
        "2014-01-01": "c",
        "x y": "d",
    }


def test_block_texts_keep_their_lines():
    assert load("a: |\n  one\n  two\nb: >\n  three\n  four\n", name="x") == {"a": "one\ntwo\n", "b": "three four\n"}


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n"])
def test_an_empty_document_is_null(text):
    assert load(text, name="x") is None


@pytest.mark.parametrize(
    ("text", "where", "word"),
    [
        ("a: 1\nb: 2\na: 3\n", "project.yaml:3:1", "twice"),
        ("a: &x 1\nb: *x\n", "project.yaml:1:4", "anchors"),
        ("a: *x\n", "project.yaml:1:4", "anchors"),
        ("a: !!python/object:os.system {}\n", "project.yaml:1:4", "tag"),
        ("a: !!set {}\n", "project.yaml:1:4", "tag"),
        ("a: !!str 1\n", "project.yaml:1:4", "tag"),
        ("<<: {a: 1}\n", "project.yaml:1:1", "merge"),
        ("? [a]\n: 1\n", "project.yaml:1:3", "key"),
        ("a: 1\n---\nb: 2\n", "project.yaml:2:1", "second document"),
        ("a: 1e999\n", "project.yaml:1:4", "quotes"),
        (f"a: {'9' * 5000}\n", "project.yaml:1:4", "quotes"),
        ("a: [1\n", "project.yaml:2:1", "not YAML"),
        ("a: b: c\n", "project.yaml:1:5", "not YAML"),
        ("a:\n\t- 1\n", "project.yaml:2:1", "not YAML"),
        ("a: \x00\n", "project.yaml", "not YAML"),
        ("a: '\ud800'\n", "project.yaml", "surrogate"),
    ],
)
def test_what_could_surprise_is_refused_with_its_place(text, where, word):
    message = refusal(text)
    assert message.startswith(where + ":")
    assert word in message


def test_a_file_over_its_size_is_refused_unread():
    assert "at most 10" in refusal("a: " + "b" * 10, max_bytes=10)


def test_nesting_is_bounded_whatever_its_depth():
    assert load("[" * 100 + "]" * 100, name="x")
    assert "deeper" in refusal("[" * 101 + "]" * 101)
    assert "nest" in refusal("[" * 200_000)


def test_the_bomb_of_aliases_never_expands():
    bomb = 'a: &a ["x","x"]\n' + "".join(f"{c}: &{c} [*{p},*{p}]\n" for p, c in zip("abcdefg", "bcdefgh", strict=True))
    assert "anchors" in refusal(bomb)


text = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]))
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(text, inner), max_leaves=10)


@settings(deadline=None)
@given(values)
def test_json_is_read_as_what_it_is(value):
    assert load(json.dumps(value, ensure_ascii=False), name="x") == value


@settings(deadline=None)
@given(st.text())
def test_no_text_raises_anything_but_a_refusal(text):
    try:
        load(text, name="x")
    except WrongUse as error:
        assert error.code == "invalid_yaml"
