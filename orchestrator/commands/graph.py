"""graph eval, graph validate, graph draw: the graph language without a run (spec: engine 22)."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from orchestrator.commands.output import note, say, say_json
from registry.errors import Fault, WrongUse

if TYPE_CHECKING:
    from registry.graph.expressions import Slots
    from registry.graph.validation import Finding

app = typer.Typer(help="Check and try the graph of an agent.", no_args_is_help=True)

_COLOURS: Final = {"error": typer.colors.RED, "warning": typer.colors.YELLOW}


# Unknown options are arguments here, because an expression may begin with a minus.
@app.command("eval", context_settings={"ignore_unknown_options": True})
def evaluate(
    expression: Annotated[str, typer.Argument(metavar="EXPR", help="As in '$output.finishReason = \"stop\"'.")],
    slots: Annotated[Path | None, typer.Option(metavar="FILE", help="What it reads: input, state, output ...")] = None,
) -> None:
    """Evaluate one expression; prints its value as JSON, or the code of its error."""
    from registry.graph import expressions

    seen = _slots(slots)
    try:
        value = expressions.compile(expression).evaluate(seen)
    except expressions.ExpressionError as error:
        say_json({"error": error.code})
        note(error.message)
        raise typer.Exit(1) from None
    say_json({"value": value})


@app.command()
def validate(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="An agent definition, JSON or YAML.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object with every finding.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Also whether skills, packs and models exist here.")] = False,
) -> None:
    """Check an agent definition; exits with 1 when it would be refused."""
    from orchestrator.commands.files import read_data
    from orchestrator.settings import get_settings
    from registry.graph.validation import check_registries, parse_agent

    agent, findings = parse_agent(read_data(file), get_settings().limits)
    if check and agent is not None:
        from orchestrator.known import registries

        findings += check_registries(agent, registries(get_settings()))
    if as_json:
        say_json({"findings": [finding.to_json() for finding in findings]})
    else:
        _print(findings)
    if any(finding.severity == "error" for finding in findings):
        raise typer.Exit(1)


@app.command()
def draw(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="An agent definition or a preset, JSON or YAML.")],
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Where to; else standard output.")] = None,
) -> None:
    """Draw the graph of an agent as SVG; one without a graph runs, and shows, the default loop."""
    from orchestrator.commands.files import read_data
    from orchestrator.settings import get_settings
    from registry.graph.drawing.svg import draw as drawn
    from registry.graph.validation import parse_agent

    definition = read_data(file)
    if isinstance(definition, dict) and "id" not in definition:
        definition = {"id": file.stem, **definition}  # in a preset the file's name is the id
    agent, findings = parse_agent(definition, get_settings().limits)
    if agent is None:
        for finding in findings:
            note(_one_line(str(finding)))
        raise typer.Exit(1)
    picture = drawn(agent)
    if out is None:
        say(picture.rstrip())
        return
    try:
        out.write_text(picture, encoding="ascii")
    except OSError as error:
        fault = Fault(str(out), "unwritable", f"cannot be written: {error.strerror}")
        raise WrongUse(str(fault), code=fault.code, faults=[fault]) from None


def _slots(file: Path | None) -> "Slots":
    from orchestrator.commands.files import read_data
    from registry.graph.expressions import Slots
    from registry.graph.paths import ROOTS

    given = read_data(file) if file is not None else {}
    if not isinstance(given, dict):
        raise _wrong_slots(file, "must be an object of slots")
    unknown = [key for key in given if key not in ROOTS]
    if unknown:
        raise _wrong_slots(file, f"there is no slot {unknown[0]!r}; known: {', '.join(ROOTS)}")
    return Slots(**given)


def _wrong_slots(file: Path | None, reason: str) -> WrongUse:
    fault = Fault(str(file), "slots_shape", reason)
    return WrongUse(str(fault), code=fault.code, faults=[fault])


def _print(findings: "list[Finding]") -> None:
    if not findings:
        say("no findings")
    for finding in findings:
        word = typer.style(finding.severity, fg=_COLOURS[finding.severity]) if sys.stdout.isatty() else finding.severity
        say(f"{word}: {_one_line(str(finding))}")


def _one_line(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)
