"""Plugins: listed by whoever may read, installed and kept from running by a person alone."""

from typing import Annotated

from fastapi import Path
from fastapi import Response as Empty
from pydantic import Field, StringConstraints

from orchestrator import plugins
from orchestrator.api.auth import Person, Reading
from orchestrator.api.models import Out
from orchestrator.api.parts import router as make_router
from orchestrator.api.replies import Reply, problems
from orchestrator.api.shared import skills
from registry.archives import LAID
from registry.base import Model
from registry.packs.names import taken

router = make_router("plugins", prefix="/api")

PluginId = Annotated[str, Path(min_length=1, max_length=100)]
#: Nothing else of this machine can be named.
Laid = Annotated[str, StringConstraints(pattern=f"^{LAID.pattern}$")]


class NewPlugin(Model):
    dir: Laid = Field(description="The name of a folder or an archive in the plugin folder of this installation.")
    grant: list[Annotated[str, StringConstraints(max_length=300)]] = Field(
        max_length=20, description="What it may use, written out, of what it asks for."
    )
    expect: str | None = Field(None, max_length=64, description="The digest that was reviewed.")


class PluginView(Out):
    id: str
    name: str
    version: str
    description: str
    status: str = Field(description="enabled, disabled")
    reason: str | None = Field(description="Why it is disabled.")
    digest: str
    skills: list[str]
    hooks: list[str]
    agents: list[str]
    capabilities: list[str] = Field(description="What it asks for.")
    granted: list[str]
    installed_at: int


class PluginList(Out):
    items: list[PluginView]


@router.get("/plugins", response_model=PluginList, summary="Your plugins; one whose files changed is disabled")
def list_plugins(asking: Reading) -> Reply:
    return Reply({"items": plugins.listed(asking.settings)})


@router.post(
    "/plugins", response_model=PluginView, status_code=201, summary="Install a plugin", responses=problems(409)
)
def install_plugin(asking: Person, body: NewPlugin) -> Reply:
    """A person's act. Another version takes the place of the one that is there."""
    source = plugins.folder(asking.settings) / body.dir
    names = taken(skills())
    return Reply(plugins.install(asking.settings, source, list(body.grant), taken=names, expect=body.expect), 201)


@router.post("/plugins/{plugin_id}/disable", response_model=PluginView, summary="Keep a plugin from running")
def disable_plugin(asking: Person, plugin_id: PluginId) -> Reply:
    return Reply(plugins.disable(asking.settings, plugin_id))


@router.post(
    "/plugins/{plugin_id}/enable",
    response_model=PluginView,
    summary="Let it run again, where its files are those that were installed",
    responses=problems(409),
)
def enable_plugin(asking: Person, plugin_id: PluginId) -> Reply:
    return Reply(plugins.enable(asking.settings, plugin_id))


@router.delete("/plugins/{plugin_id}", status_code=204, summary="Forget a plugin and delete its files")
def remove_plugin(asking: Person, plugin_id: PluginId) -> Empty:
    plugins.remove(asking.settings, plugin_id)
    return Empty(status_code=204)
