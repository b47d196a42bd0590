"""prune, audit: what the house forgets, and what it remembers of who did what."""

from typing import Annotated

import typer

from orchestrator.commands.output import looking, note, say, say_json

app = typer.Typer()

_Days = typer.Option(min=0, metavar="DAYS", help="Days after its end; default: as set (OFFICINA_KEEPING__...).")


@app.command()
def prune(
    history: Annotated[int | None, _Days] = None,
    files: Annotated[int | None, _Days] = None,
    project: Annotated[int | None, _Days] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without it this only says what would go.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="What goes as one JSON object.")] = False,
) -> None:
    """Take away what is old of projects that have ended: history (events, messages, checkpoints), files, or all of it.

    Workers may run meanwhile. What has not ended is never touched; docs/growth.md says what remains.
    """
    from orchestrator import pruning
    from orchestrator.settings import get_settings
    from registry.errors import WrongUse

    settings = get_settings()
    usual = pruning.policy(settings.keeping)
    given = (history, files, project)
    wanted = pruning.Policy(*given) if any(days is not None for days in given) else usual
    if not wanted.parts:
        words = "nothing says what is too old: give --history, --files or --project, or set one in OFFICINA_KEEPING"
        raise WrongUse(words)
    with looking(settings):
        pass
    found = pruning.look(settings, wanted)
    if yes:
        pruning.prune(settings, wanted, by=settings.by, tell=note)
    if as_json:
        say_json({"pruned": yes, **found.to_json()})
        return
    for part, days in wanted.parts.items():
        rows = ", ".join(f"{count:,} {name}" for name, count in found.rows[part].items())
        say(f"{part}: {found.projects[part]:,} projects that ended {days} days ago or earlier ({rows})")
    if not yes:
        note("nothing was taken away; --yes does it")


@app.command()
def audit(
    act: Annotated[str | None, typer.Option(help="Only such acts, as in key or signal.answered.")] = None,
    of: Annotated[str | None, typer.Option(metavar="ID", help="Only what was done to this.")] = None,
    last: Annotated[int, typer.Option(min=1, max=10_000, help="How many.")] = 50,
    owner: Annotated[str | None, typer.Option(help="Whose; else OFFICINA_OWNER's.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON line for each.")] = False,
) -> None:
    """Say who did what, the latest last: answers, keys, agents, schedules, connections, repairs, prunes."""
    from orchestrator import acts
    from orchestrator.settings import get_settings
    from orchestrator.terminal.wording import visible

    settings = get_settings()
    with looking(settings) as connection:
        found = acts.listed(connection, owner or settings.owner, last, act=act, subject=of)
    for one in reversed(found):
        if as_json:
            say_json(one)
            continue
        facts = "  ".join(f"{name} {value}" for name, value in one["data"].items())
        say(visible(f"{one['time']}  {one['by']}  {one['act']}  {one.get('subject') or '-'}  {facts}".rstrip()))
