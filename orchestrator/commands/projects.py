"""submit, show, list, trace, watch, cancel, retry, fork."""

from enum import StrEnum
from typing import Annotated

import typer

from orchestrator.commands.output import note, say, say_json

app = typer.Typer()

ProjectId = Annotated[
    str,
    typer.Argument(metavar="ID", help="A project's id, or a beginning of it that no other has (8 characters or more)."),
]


class ModeName(StrEnum):
    """The run modes as choices of an option; the same as `registry.permissions.MODES`."""

    ASK = "ask"
    PLAN = "plan"
    AUTO = "auto"
    DONT_ASK = "dont_ask"
    BYPASS = "bypass"


class StatusName(StrEnum):
    """The states of a project as choices of an option; the same as `orchestrator.states.ProjectStatus`."""

    PLANNING = "planning"
    RUNNING = "running"
    COMPLETED = "completed"
    PARTIAL = "partial"
    FAILED = "failed"
    CANCELLED = "cancelled"


@app.command()
def submit(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="A project file (YAML or JSON), a .md or .txt file with a brief, or the brief itself."
        ),
    ],
    key: Annotated[str | None, typer.Option(help="Client key: the same key gives the same project.")] = None,
    mode: Annotated[ModeName | None, typer.Option(help="Run mode of every agent in it.")] = None,
    rehearse: Annotated[
        bool, typer.Option("--rehearse", help="The stand-in plays the model, and no world call is made.")
    ] = False,
    plan_only: Annotated[
        bool, typer.Option("--plan-only", help="Stop when the plan is there and show it; `start` starts it.")
    ] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Go on with the live view.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print {id, status, tasks: {key: id}}.")] = False,
) -> None:
    """Check a project whole, store it, start it; prints its id."""
    from orchestrator.commands.studios import studio

    there, mode_name = studio(), mode.value if mode else None
    made = there.submit(source, key=key, mode=mode_name, rehearse=rehearse, plan_only=plan_only)
    if plan_only:
        from orchestrator.commands.plans import wait

        raise typer.Exit(wait(there, made, as_json=as_json))
    if as_json:
        say_json({name: made[name] for name in ("id", "status", "tasks")})
    else:
        say(made["id"])
    if not made["created"]:
        note("a project with this key was there already; this is it")
    if watch:
        from orchestrator.watch import look

        raise typer.Exit(look(there.source(made["id"])))


@app.command()
def show(
    project: ProjectId,
    as_json: Annotated[bool, typer.Option("--json", help="Everything, as one JSON object.")] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Only the plan that waits, as YAML to change and give to `start --plan`.")
    ] = False,
) -> None:
    """Status, tasks, costs, files and signals of a project."""
    from orchestrator.commands.studios import studio

    found, fanouts = studio().project(project)
    if plan:
        from orchestrator.commands.plans import print_written

        print_written(found, as_json=as_json)
        return
    if as_json:
        say_json(found)
        return
    from orchestrator.terminal.pages import print_project

    print_project(found, fanouts)


@app.command("list")
def list_projects(
    status: Annotated[StatusName | None, typer.Option(help="Only projects in this state.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many, newest first.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON list.")] = False,
) -> None:
    """Your projects, newest first."""
    from orchestrator.commands.studios import studio

    found = studio().projects(status and status.value, limit)
    if as_json:
        say_json(found)
        return
    from orchestrator.terminal.pages import print_projects

    print_projects(found)


@app.command()
def trace(
    project: ProjectId,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON line an event.")] = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the project ends.")] = False,
    after: Annotated[int, typer.Option(min=0, help="Only events with a higher number.")] = 0,
    task: Annotated[str | None, typer.Option(help="Only events of the task with this key.")] = None,
) -> None:
    """The events of a project or a thread, in order."""
    from orchestrator.commands.studios import studio
    from orchestrator.terminal.tracing import line_of

    names, events = studio().trace(project, after=after, follow=follow)
    wanted = names.task_id(task) if task is not None else None
    for event in events:
        if wanted is not None and event.task_id != wanted:
            continue
        if as_json:
            say_json(event.to_json(names.project_id))
        else:
            say(line_of(event, names))


@app.command()
def watch(
    project: ProjectId,
    plain: Annotated[bool, typer.Option("--plain", help="A line per change instead of the live view.")] = False,
    ask: Annotated[bool, typer.Option("--ask", help="Ask about each approval as it comes.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="A JSON line an event and piece of an answer; the last says how it ended.")
    ] = False,
) -> None:
    """The project as it moves; exit code 0 when it completed, 1 when it did not, 130 when you left.

    On a terminal: a page with views (plan, agents, runs, timeline, trace, questions) and keys. Elsewhere: a line a
    change.
    """
    from orchestrator.commands.studios import studio
    from orchestrator.watch import look

    raise typer.Exit(look(studio().source(project), ask=ask, plain=plain, tell=say_json if as_json else None))


@app.command()
def cancel(project: ProjectId) -> None:
    """Stop a project; what runs sees it at its next check."""
    from orchestrator.commands.studios import studio

    say(f"{studio().cancel(project)} cancelled")


@app.command()
def retry(
    task: Annotated[str, typer.Argument(metavar="TASK", help="A task's id, or a beginning of it that no other has.")],
) -> None:
    """Run a failed task again; dependents that were skipped open again."""
    from orchestrator.commands.studios import studio

    say(f"{studio().retry(task)} queued again")


@app.command()
def fork(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A task's own run, ended; `show --json` names them.")],
    at: Annotated[
        int, typer.Option(min=1, metavar="SEQ", help="Number of the last event to keep; `trace` shows them.")
    ],
) -> None:
    """Run a task again from a checkpoint of an earlier run; prints the new run's id.

    Messages, state and finished calls up to the checkpoint are kept; files stay as they are.
    """
    from orchestrator.commands.studios import studio

    say(studio().fork(run, at))
