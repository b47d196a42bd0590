"""officina graph eval and validate: output and exit codes (spec: design 7, engine 22)."""

import json

import pytest
from typer.testing import CliRunner

from orchestrator.commands import graph
from registry.errors import WrongUse
from tests.unit.graph.definitions import agent


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs a command in a folder of its own; files are given by name."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments, **files):
        for name, content in files.items():
            text = content if isinstance(content, (str, bytes)) else json.dumps(content)
            path = tmp_path / name.replace("_", ".")
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        result = CliRunner().invoke(graph.app, list(arguments))
        if isinstance(result.exception, WrongUse):
            raise result.exception
        return result

    return run


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("$input.n > 1 && $state.größe = 'é'", None),
        ("-1", -1),
        ("-1 = -1.0", True),
        ("--1", None),
        ("$item.id", 7),
        ("$state", {"größe": "é"}),
        ("$output", None),
    ],
)
def test_eval_prints_the_value_or_the_code(run, expression, value):
    slots = {"input": {"n": 2}, "state": {"größe": "é"}, "item": {"id": 7}}
    result = run("eval", expression, "--slots", "slots.json", slots_json=slots)
    if expression in ("--1", "$input.n > 1 && $state.größe = 'é'"):
        assert json.loads(result.stdout) == {"error": "expr_syntax"}
        assert result.exit_code == 1
        assert "^" in result.stderr
    else:
        assert json.loads(result.stdout) == {"value": value}
        assert result.exit_code == 0


def test_eval_without_slots_sees_an_empty_state(run):
    assert json.loads(run("eval", "$state").stdout) == {"value": {}}
    assert json.loads(run("eval", "exists($item)").stdout) == {"value": False}
    assert json.loads(run("eval", "$item").stdout) == {"error": "unknown_path"}


def test_eval_refuses_slots_that_do_not_exist(run):
    with pytest.raises(WrongUse, match="outptu"):
        run("eval", "1", "--slots", "s.json", s_json={"outptu": 1})
    with pytest.raises(WrongUse, match="object"):
        run("eval", "1", "--slots", "s.json", s_json=[])


def test_validate_prints_all_findings_as_json_and_fails_on_an_error(run):
    result = run("validate", "a.json", "--json", a_json={"id": "", "instructions": "x"})
    assert json.loads(result.stdout) == {
        "findings": [
            {
                "code": "id_required",
                "severity": "error",
                "message": "an agent needs an id: a text that is not blank",
                "path": "id",
            }
        ]
    }
    assert result.exit_code == 1


def test_validate_prints_a_line_a_finding_without_colours_off_a_terminal(run):
    made = agent(nope=1)
    made["graph"]["nodes"]["end"]["output"] = "$("
    result = run("validate", "a.json", a_json=made)
    lines = result.stdout.splitlines()
    assert [line.split(":")[:3] for line in lines] == [
        ["error", " nope", " unknown_field"],
        ["warning", " graph.nodes.end.output", " end_output_literal"],
    ]
    assert "\x1b" not in result.stdout
    assert result.exit_code == 1


def test_a_clean_or_only_warned_definition_exits_with_0(run):
    clean = run("validate", "a.json", a_json=agent())
    assert (clean.stdout, clean.exit_code) == ("no findings\n", 0)
    made = agent()
    made["graph"]["nodes"]["end"]["output"] = "$("
    assert run("validate", "a.json", a_json=made).exit_code == 0


def test_definitions_may_be_yaml_whatever_their_name(run):
    text = "id: ada\ninstructions: |\n  Do it.\nversion: 1.2\n"
    for name in ("a.yaml", "a.yml", "a"):
        result = run("validate", name, "--json", **{name.replace(".", "_"): text})
        assert [finding["code"] for finding in json.loads(result.stdout)["findings"]] == ["version_format"]
    assert run("validate", "b", b=json.dumps(agent())).exit_code == 0


def test_a_message_never_breaks_the_line(run):
    result = run("validate", "a.json", a_json={"id": "a", "instructions": "x", "evil\nerror: \x1b[31mx": 1})
    assert len(result.stdout.splitlines()) == 1
    assert "\x1b" not in result.stdout


@pytest.mark.parametrize(
    ("files", "code"),
    [
        ({}, "not_found"),
        ({"a_json": "{"}, "invalid_json"),
        ({"a_json": '{"id": 1, "id": 2}'}, "invalid_json"),
        ({"a_json": b"\xff"}, "invalid_text"),
        ({"a_json": b" " * (1024 * 1024 + 1)}, "too_large"),
        ({"a_json": "[" * 101 + "]" * 101}, "invalid_json"),
    ],
)
def test_a_file_that_cannot_be_read_is_wrong_use(run, files, code):
    with pytest.raises(WrongUse) as caught:
        run("validate", "a.json", **files)
    assert caught.value.code == code
    assert caught.value.faults[0].path == "a.json"


def test_check_looks_names_up_as_well(run):
    made = agent(skills=["no.such"], packs={"lost": True})
    result = run("validate", "a.json", "--json", "--check", a_json=made)
    codes = [finding["code"] for finding in json.loads(result.stdout)["findings"]]
    assert codes == ["model_unresolved", "skill_unknown", "pack_unknown"]
    assert result.exit_code == 1
