"""doctor: the settings in force, and whether every part they name works."""

import re
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from orchestrator.commands.output import looking, say, say_json

if TYPE_CHECKING:
    from pydantic import BaseModel

    from orchestrator.settings import Settings
    from workers.probes import Finding

app = typer.Typer()

#: User and password of a URL, and query values that may be one.
_CREDENTIALS: Final = re.compile(r"(?<=://)[^/@\s]*:[^@\s]*(?=@)")
_SECRET_QUERY: Final = re.compile(r"(?i)([?&][^=&]*(?:pass|secret|token|key)[^=&]*=)[^&\s]*")
_MARKS: Final = {"ok": "✓ ok", "broken": "✗ broken", "absent": "- absent"}
_ASCII_MARKS: Final = {"ok": "+ ok", "broken": "x broken", "absent": "- absent"}


@app.command()
def doctor(
    deep: Annotated[bool, typer.Option("--deep", help="Only look through the rows: whatever breaks a rule.")] = False,
    grace: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="With --deep: how late a row may be before it is a fault.")
    ] = 60,
    as_json: Annotated[
        bool, typer.Option("--json", help="{settings, findings} as one JSON object; with --deep {rules, broken}.")
    ] = False,
) -> None:
    """Print the settings in force and test each part; exit code 1 when something that is needed is broken."""
    from orchestrator.settings import get_settings

    settings = get_settings()
    if deep:
        raise typer.Exit(_look_through(settings, round(grace * 1000), as_json=as_json))
    from workers import probes

    shown = dict(_settings(settings))
    if not as_json:
        _say_settings(shown)
    found = probes.run(settings)
    if as_json:
        say_json({"settings": shown, "findings": [_finding(one) for one in found]})
    else:
        _say_findings(found)
    raise typer.Exit(1 if any(one.verdict == "broken" for one in found) else 0)


def _look_through(settings: "Settings", grace_ms: int, *, as_json: bool) -> int:
    """Prints every row that breaks a rule, under the rule; gives the exit code."""
    from orchestrator.store import invariants

    with looking(settings) as connection:
        found = invariants.broken(connection, grace_ms)
    if as_json:
        say_json({"rules": len(invariants.INVARIANTS), "broken": [row.to_json() for row in found]})
        return 1 if found else 0
    for rule in dict.fromkeys(row.rule for row in found):
        rows = [row for row in found if row.rule == rule]
        more = "; more are not shown" if len(rows) == invariants.MOST else ""
        say(f"{rule}: it does not hold that {rows[0].says}{more}")
        for row in rows:
            say("  " + "  ".join([row.id, *(f"{name} {value}" for name, value in row.facts.items())]))
    say(f"{len(found)} rows break a rule" if found else f"{len(invariants.INVARIANTS)} rules, and every row keeps them")
    return 1 if found else 0


def masked(text: str) -> str:
    """A text without the passwords of the URLs in it."""
    return _SECRET_QUERY.sub(r"\1***", _CREDENTIALS.sub("***", text))


def _settings(group: "BaseModel", prefix: str = "OFFICINA_") -> Iterator[tuple[str, str]]:
    """Environment name and value of every setting; secrets only say whether they are set."""
    from pydantic import BaseModel

    for name in type(group).model_fields:
        value, variable = getattr(group, name), prefix + name.upper()
        if isinstance(value, BaseModel):
            yield from _settings(value, variable + "__")
        elif isinstance(value, dict) and value and all(isinstance(v, BaseModel) for v in value.values()):
            for key, inner in value.items():
                yield from _settings(inner, f"{variable}__{str(key).upper()}__")
        else:
            yield variable, _shown(value)


def _shown(value: Any) -> str:
    from pydantic import SecretStr

    if isinstance(value, SecretStr):
        return "(set, not shown)"
    if value is None or value == "" or value == {}:
        return "(not set)"
    return masked(str(value))


def _say_settings(shown: dict[str, str]) -> None:
    say("Settings in force (environment, .env, defaults)")
    width = max(map(len, shown))
    for variable, value in shown.items():
        say(f"  {variable:<{width}}  {value}")
    say()


def _say_findings(found: "list[Finding]") -> None:
    marks = _MARKS if (sys.stdout.encoding or "").lower().startswith("utf") else _ASCII_MARKS
    say("Parts")
    for one in found:
        say(f"  {marks[one.verdict]:<9} {one.part:<17} {masked(one.words)}")
        if one.remedy:
            say(f"  {'':<9} {'':<17} {one.remedy}")


def _finding(one: "Finding") -> dict[str, str]:
    return {"part": one.part.strip(), "verdict": one.verdict, "words": masked(one.words), "remedy": one.remedy}
