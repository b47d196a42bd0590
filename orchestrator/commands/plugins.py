"""plugins: what others wrote, reviewed and installed by a person with a grant in their own hand (spec: skills 17)."""

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.commands.output import note, say, say_json
from registry.base import Json

app = typer.Typer(help="Skills, agents and hooks that others wrote.", no_args_is_help=True)

Id = Annotated[str, typer.Argument(metavar="ID", help="Its id, as `officina plugins list` shows it.")]
Source = Annotated[Path, typer.Argument(metavar="PATH", help="A folder with a manifest.json, a .zip or a .tar.gz.")]
AsJson = Annotated[bool, typer.Option("--json", help="As JSON.")]


@app.command()
def review(source: Source, as_json: AsJson = False) -> None:
    """Read a plugin without running anything: what it brings, what it asks for, what to look at."""
    from orchestrator import plugins

    found = plugins.review(source)
    if as_json:
        say_json(found)
        return
    for line in _review(found):
        say(line)


@app.command()
def install(
    source: Source,
    grant: Annotated[
        list[str] | None, typer.Option("--grant", metavar="CAPABILITY", help="What it may use, of what it asks for.")
    ] = None,
    expect: Annotated[
        str | None, typer.Option(metavar="DIGEST", help="The digest you reviewed: other files are refused.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Install a plugin, or another version in its place; it may use what you grant and nothing else.

    At a studio elsewhere (OFFICINA_API_URL) PATH is the name of a folder or an archive in the plugin folder there.
    """
    from orchestrator.commands.shelves import shelf
    from orchestrator.settings import get_settings

    settings = get_settings()
    made = shelf(make=True).install_plugin(str(source), grant or [], expect)
    if as_json:
        say_json(made)
    else:
        say(_line(made))
    if missing := [one for one in made["capabilities"] if one not in made["granted"]]:
        note(f"it asks for more, and what needs it will fail: {', '.join(missing)}")
    if settings.api_url is not None:
        note(f"it was read from {source} in the plugin folder of {settings.api_url}, not from this machine")
    elif not settings.plugins.run:
        note("plugins do not run yet: set OFFICINA_PLUGINS__RUN=true where the workers start")


@app.command("list")
def list_plugins(as_json: AsJson = False) -> None:
    """List what is installed; one whose files changed is disabled."""
    from orchestrator.commands.shelves import shelf

    found = shelf(make=True).plugins()
    if as_json:
        say_json(found)
        return
    for one in found:
        say(_line(one))


@app.command()
def disable(plugin: Id) -> None:
    """Keep a plugin from running; its files and its grant stay."""
    from orchestrator.commands.shelves import shelf

    say(_line(shelf().switch_plugin(plugin, on=False)))


@app.command()
def enable(plugin: Id) -> None:
    """Let a plugin run again, where its files are those that were installed."""
    from orchestrator.commands.shelves import shelf

    say(_line(shelf().switch_plugin(plugin, on=True)))


@app.command()
def remove(plugin: Id) -> None:
    """Forget a plugin and delete its files."""
    from orchestrator.commands.shelves import shelf

    shelf().remove_plugin(plugin)
    say(f"{plugin} removed")


def _line(one: dict[str, Json]) -> str:
    brings = [*one["skills"], *one["hooks"], *one["agents"]]
    granted = f"granted {', '.join(one['granted'])}" if one["granted"] else "granted nothing"
    reason = f" ({one['reason']})" if one["reason"] else ""
    return _shown(f"{one['id']} {one['version']}  {one['status']}{reason}  {', '.join(brings)}  {granted}")


def _review(found: dict[str, Json]) -> list[str]:
    skills = [f"{one['name']}{' (acts on the world)' if one['worldActing'] else ''}" for one in found["skills"]]
    lines = [
        f"{found['id']} {found['version']}, which calls itself {found['name']!r}",
        f"digest {found['digest']}",
        f"skills: {', '.join(skills) or 'none'}",
        f"hooks: {', '.join(found['hooks']) or 'none'}; agents: {', '.join(found['agents']) or 'none'}",
        f"asks for: {', '.join(found['capabilities']) or 'nothing'}",
    ]
    lines += [f"  {one['path']}  {one['bytes']} bytes  sha256 {one['sha256']}" for one in found["files"]]
    lines += [f"  left out: {path}" for path in found["leftOut"]]
    lines += [
        f"  look at {one['path']}{f', line {line}' if (line := one['line']) else ''}: {one['what']}"
        for one in found["findings"]
    ]
    grants = "".join(f" --grant {one}" for one in found["capabilities"])
    return [
        *map(_shown, lines),
        _shown(f"to install it: officina plugins install PATH{grants} --expect {found['digest']}"),
    ]


def _shown(text: str) -> str:
    from registry.masking import mask_text

    return mask_text("".join(c if c.isprintable() else "?" for c in text))
