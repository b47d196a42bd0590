"""start and replan, and what `submit --plan-only` and `show --plan` do: plans that wait for a person."""

import time
from typing import TYPE_CHECKING, Annotated, Final

import typer

from orchestrator.commands.output import note, say, say_json
from orchestrator.commands.projects import ProjectId
from registry.base import Json
from registry.errors import Refused

if TYPE_CHECKING:
    from orchestrator.commands.studios import Studio

app = typer.Typer()

#: Seconds before it is worth saying that no worker is up.
PATIENCE_S: Final = 5.0


@app.command()
def start(
    project: ProjectId,
    plan: Annotated[
        str | None, typer.Option(metavar="FILE", help="Start this plan instead (YAML or JSON; - is standard input).")
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Go on with the live view.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print {id, status, tasks: {key: id}}.")] = False,
) -> None:
    """Start a project whose plan waits (`submit --plan-only`); after that its plan is frozen."""
    from orchestrator.commands.studios import studio

    there = studio()
    begun = there.start(project, None if plan is None else _document(plan))
    if as_json:
        say_json(begun)
    else:
        say(begun["id"])
    if watch:
        from orchestrator.watch import look

        raise typer.Exit(look(there.source(begun["id"])))


@app.command()
def replan(
    project: ProjectId,
    note: Annotated[str, typer.Argument(metavar="NOTE", help="What should be different.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="The new plan as one JSON object.")] = False,
) -> None:
    """Have the planner make another plan in the place of one that waits; shows it, and it waits in turn."""
    from orchestrator.commands.studios import studio

    there = studio()
    project_id = there.plan_again(project, note)
    raise typer.Exit(wait(there, {"id": project_id, "created": True}, as_json=as_json))


def wait(there: "Studio", made: Json, *, as_json: bool) -> int:
    """Until the plan of a project is there; shows it. Returns the exit code."""
    if not as_json:
        say(made["id"])
    if not made["created"]:
        note("a project with this key was there already; this is it")
    shown = _planned(there, made["id"])
    if as_json:
        ids: dict[str, Json] = {task["key"]: task["id"] for task in shown["tasks"]}
        found = {"id": made["id"], "status": shown["status"], "tasks": ids}
        say_json(found | {name: shown[name] for name in ("plan", "reason") if name in shown})
    else:
        from orchestrator.terminal.pages import print_project

        print_project(shown, {})
    return 0 if shown["status"] not in ("failed", "cancelled") else 1


def print_written(project: Json, *, as_json: bool) -> None:
    """A plan that waits, as a person may change it.

    Raises:
        Refused: `not_planned`.
    """
    if "plan" not in project:
        words = "its plan is not there yet" if project["status"] == "planning" else f"it is {project['status']}"
        raise Refused(f"no plan of project {project['id']} waits: {words}", code="not_planned")
    plan = {name: project["plan"][name] for name in ("goal", "summary") if name in project["plan"]}
    # What a task leaves out means the default: the shorter it reads, the easier it is to change.
    tasks = [
        {name: value for name, value in task.items() if value not in ([], None) and (name, value) != ("retries", 1)}
        for task in project["plan"]["tasks"]
    ]
    plan |= {"tasks": tasks}
    if as_json:
        say_json(plan)
        return
    say(f"# Change it, then: officina start {project['id']} --plan FILE")
    say(_yaml(plan))


def _planned(there: "Studio", project_id: str) -> Json:
    """The project once its plan is there, or it has gone on or ended without one."""
    source, begun, told = there.source(project_id), time.monotonic(), False
    for _ in source.live(0, lambda _: None):
        shown, _fanouts = there.project(project_id)
        if shown["status"] != "planning" or "plan" in shown:
            return shown
        if not told and time.monotonic() - begun > PATIENCE_S and not source.scene(None).workers:
            note("no worker is up to make the plan: officina up (or officina worker) starts one")
            told = True
    return there.project(project_id)[0]


def _document(name: str) -> Json:
    import sys
    from pathlib import Path

    from registry.projects.documents import parse, read_text

    if name == "-":
        return parse(sys.stdin.read(), name="standard input")
    return parse(read_text(Path(name)), name=name)


def _yaml(plan: Json) -> str:
    import yaml

    class Readable(yaml.SafeDumper):
        """Texts of several lines as they read."""

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)

    Readable.add_representer(str, text)
    return yaml.dump(plan, Dumper=Readable, sort_keys=False, allow_unicode=True, width=100).rstrip()
