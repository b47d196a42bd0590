"""schedules: what begins later, once or again and again; made by agents, by people over HTTP, and looked after here."""

from typing import Annotated

import typer

from orchestrator.commands.output import say, say_json
from registry.base import Json

app = typer.Typer(help="Schedules: see, pause, resume and delete what begins by itself.", no_args_is_help=True)

Id = Annotated[str, typer.Argument(help="Its id, or the last six characters of it.")]
AsJson = Annotated[bool, typer.Option("--json", help="JSON.")]


@app.command("list")
def list_schedules(as_json: AsJson = False) -> None:
    """List your schedules, the eldest first."""
    from orchestrator.commands.shelves import shelf

    rows = shelf().schedules()
    if as_json:
        say_json(rows)
        return
    if not rows:
        say("no schedules: agents make them with schedule_set, people with POST /api/studio/schedules")
    for row in rows:
        due = f"next {row['nextRun']}" if row["nextRunAt"] is not None else row["reason"] or ""
        say(f"{row['id']}  {row['status']:<7} {row['title']}  {row['description']}  {due}".rstrip())


@app.command()
def show(
    schedule: Id,
    last: Annotated[int, typer.Option(min=1, max=99, help="How many of its last due times.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Show a schedule and what became of its last due times."""
    from orchestrator.commands.shelves import shelf

    row = shelf().schedule(schedule, last)
    if as_json:
        say_json(row)
        return
    for word, value in _facts(row):
        say(f"{word:<8} {value}")
    for firing in row["firings"]:
        said = next(iter([*firing["errors"], *firing["texts"][-1:]]), firing["reason"] or "")
        say(f"{firing['due']}  {firing['result']:<7} {firing['status'] or ''}  {said.splitlines()[0] if said else ''}")


@app.command()
def pause(schedule: Id) -> None:
    """Let it begin nothing for now; what comes due meanwhile is not made up for."""
    _set(schedule, "paused")


@app.command()
def resume(schedule: Id) -> None:
    """Let it go on from its next time."""
    _set(schedule, "active")


@app.command()
def delete(schedule: Id) -> None:
    """Delete a schedule and what it has waiting; what it started stays."""
    from orchestrator.commands.shelves import shelf

    say(f"{shelf().remove_schedule(schedule)} deleted")


def _facts(row: dict[str, Json]) -> list[tuple[str, Json]]:
    action = row["action"]
    does = action.get("text") or action.get("skill") or action.get("generatorId") or "nothing"
    facts = [
        ("id", row["id"]),
        ("title", row["title"]),
        ("when", row["description"]),
        ("does", f"{action['kind']}: {does}"),
        ("agent", row["agentId"]),
        ("status", f"{row['status']}: {row['reason']}" if row["reason"] else row["status"]),
        ("next", row["nextRun"]),
        ("runs", row["runs"]),
    ]
    return [(word, value) for word, value in facts if value is not None]


def _set(schedule: str, status: str) -> None:
    from orchestrator.commands.shelves import shelf

    row = shelf().set_schedule(schedule, status)
    due = f", next {row['nextRun']}" if row["nextRunAt"] is not None else ""
    say(f"{row['id']} {row['status']}{due}")
