"""`officina graph run`: one agent in this process against scripted turns (spec: engine 22)."""

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.commands.output import note, say_json

app = typer.Typer()


@app.command("run")
def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="An agent definition, JSON or YAML.")],
    script: Annotated[Path, typer.Option("--script", metavar="FILE", help="Model turns, stub tools, answers.")],
    as_json: Annotated[bool, typer.Option("--json", help="Everything about the run, as one JSON object.")] = False,
) -> None:
    """Run one agent in process against a script; exits with 1 when the run fails or is refused."""
    from orchestrator.commands.files import read_data
    from orchestrator.known import playbooks
    from orchestrator.settings import get_settings
    from registry.packs import PACKS
    from workers.inprocess import script as scripts
    from workers.inprocess import stage
    from workers.inprocess.plugged import Mine
    from workers.mcp.wiring import Lazily

    settings = get_settings()
    script_read = scripts.read_script(read_data(script))
    servers = Lazily(settings)
    try:
        definition, documents = read_data(file), playbooks(settings)
        report = stage.run(definition, script_read, PACKS, settings.limits, documents, servers, Mine(settings))
    finally:
        servers.close()
    if as_json:
        say_json(report)
    else:
        _summary(report)
    if report["status"] in ("failed", "cancelled") or report["code"] == "resume_validation_failed":
        raise typer.Exit(1)


def _summary(report: dict[str, object]) -> None:
    code = f" ({report['code']})" if report["code"] else ""
    note(f"{report['status']}{code}: {report['steps']} steps, {report['tokens']} tokens")
    output = report["output"]
    if isinstance(output, dict) and "content" in output:
        output = output["content"]
    if output is not None:
        typer.echo(output if isinstance(output, str) else repr(output))
