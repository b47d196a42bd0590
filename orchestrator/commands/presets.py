"""presets: the agents that ship and those of the owner's folder, and what is wrong with files that were left out."""

from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.commands.output import note, say_json
from registry.base import Json

if TYPE_CHECKING:
    from registry.presets import Preset

app = typer.Typer()


@app.command()
def presets(
    as_json: Annotated[bool, typer.Option("--json", help="{presets, faults} as one JSON object.")] = False,
) -> None:
    """Agents you can name in a project as they are; files that cannot be used are reported."""
    from orchestrator.known import load_presets, registries
    from orchestrator.settings import get_settings

    settings = get_settings()
    found = load_presets(settings, registries(settings, stand_in=settings.stand_in or not settings.has_model))
    rows = [_row(id_, preset) for id_, preset in found.items()]
    if as_json:
        faults: list[Json] = [{"path": f.path, "code": f.code, "message": f.message} for f in found.faults]
        say_json({"presets": rows, "faults": faults})
        return
    from orchestrator.terminal.pages import print_presets

    print_presets(rows)
    for fault in found.faults:
        note(f"left out: {fault}")


def _row(id_: str, preset: "Preset") -> dict[str, Json]:
    agent = preset.agent
    return {
        "id": id_,
        "name": agent.name,
        "role": agent.role,
        "description": agent.description,
        "tier": agent.tier,
        "skills": list(agent.skills),
        "packs": list(agent.enabled_packs()),
        "permissions": dict(agent.permissions),
        "budget": agent.budget.to_json() if agent.budget else None,
        "shipped": preset.shipped,
        "path": str(preset.path),
        "runnable": not preset.lacks,
        "lacks": [finding.to_json() for finding in preset.lacks],
    }
