"""The tools and hooks of an owner's plugins: each call a process of its own behind the wall (spec: skills 17).

A call reads the plugin's files anew and runs exactly these bytes; when they are not those a person reviewed, the plugin
is disabled and nothing runs. In comes the order as a line of JSON, out an answer that fits the declared schema.
"""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Final

from orchestrator import plugins
from orchestrator.plugins import Changed, Installed
from orchestrator.settings import Settings
from registry.base import Json
from registry.errors import SkillError
from registry.plugins import PluginSkill, closed_form, effect, operations
from registry.skills import structured
from registry.skills.context import Caller, Sandbox, SkillContext
from registry.skills.registry import SkillRegistry
from registry.skills.skill import Skill
from workers.engine.services import LeftOut
from workers.plugins.contract import PluginContract
from workers.plugins.serving import Granted
from workers.plugins.talking import Conversation
from workers.sandbox.box import Box
from workers.sandbox.limits import MIB, Limits

log = logging.getLogger(__name__)

#: Where a plugin finds itself, below the scratch folder's `in`.
_PLACE: Final = "plugin"
_RUNNER: Final = "officina_runner.py"
#: A hook acts for nobody.
_NOBODY: Final = Caller("plugin")
OFF: Final = "plugins do not run here: OFFICINA_PLUGINS__RUN is off"


class PluginTools:
    """The plugins of a worker's owners, looked up when an agent names one."""

    def __init__(self, settings: Settings, skills: SkillRegistry, sandbox: Callable[[], Sandbox]) -> None:
        self._settings, self._skills, self._sandbox = settings, skills, sandbox

    def skills(self, owner_id: str, ids: Sequence[str], left_out: LeftOut) -> Sequence[Skill]:
        """See `Services.plugins`."""
        found: list[Skill] = []
        there = plugins.enabled(self._settings, owner_id) if ids else {}
        for id_ in dict.fromkeys(ids):
            if (plugin := there.get(id_)) is None:
                left_out(id_, None, plugins.why_not(self._settings, owner_id, id_))
            elif not self._settings.plugins.run:
                left_out(id_, None, OFF)
            else:
                found += self._tools(plugin, left_out)
        return found

    def hook(
        self, owner_id: str, name: str, payload: dict[str, Json], *, timeout_s: float, cancelled: Callable[[], bool]
    ) -> Json:
        """See `Services.plugins`. A hook may do nothing but answer: whatever was granted, it gets none of it."""
        plugin_id, _, function = name.partition(".")
        plugin = plugins.enabled(self._settings, owner_id).get(plugin_id)
        if plugin is None or function not in plugin.manifest.hooks:
            raise LookupError(name)
        if not self._settings.plugins.run:
            raise SkillError("not_allowed", OFF)
        context = SkillContext(caller=_NOBODY, cancelled=cancelled)
        return self._run(plugin, function, payload, Granted(plugin.id, (), self._skills, context), timeout_s, cancelled)

    def _tools(self, plugin: Installed, left_out: LeftOut) -> list[Skill]:
        try:
            plugins.read(self._settings, plugin)
        except Changed as changed:
            left_out(plugin.id, None, str(changed))
            return []
        return [self._skill(plugin, one) for one in plugin.manifest.skills]

    def _skill(self, plugin: Installed, one: PluginSkill) -> Skill:
        reaches_out = any(capability.startswith("net:") for capability in plugin.granted)
        return Skill(
            name=one.name,
            title=one.name,
            description=one.description,
            input=PluginContract(one.input_schema),
            output=None,
            run=partial(self._call, plugin, one),
            operations=operations(plugin.granted, one),
            effect=effect(plugin.granted, one),
            timeout_s=one.timeout_s,
            open_world=reaches_out,
            plugin=plugin.id,
            release=plugin.digest,
        )

    def _call(self, plugin: Installed, one: PluginSkill, given: Json, context: SkillContext) -> Json:
        serve = Granted(plugin.id, plugin.granted, self._skills, context)
        answer = self._run(plugin, one.function, given, serve, context.deadline.left, context.cancelled)
        if one.output_schema and (faults := structured.answer_faults(closed_form(one.output_schema), answer)):
            words = f"{one.name} answered with something else than it declares: {faults[0].path}: {faults[0].message}"
            raise SkillError("invalid_output", words, details=faults[:10])
        return answer

    def _run(
        self,
        plugin: Installed,
        function: str,
        given: Json,
        serve: Granted,
        timeout_s: float,
        cancelled: Callable[[], bool],
    ) -> Json:
        """Raises:
        SkillError: `not_allowed` (its files changed), `sandbox_unavailable`, `timeout`, `cancelled`, `too_large`,
            `tool_failed`.
        """
        try:
            files = plugins.read(self._settings, plugin)
        except Changed as changed:
            raise SkillError("not_allowed", f"the plugin {plugin.id} is disabled: {changed}") from None
        talk = Conversation(serve)
        order = {"entry": plugin.manifest.entry, "function": function, "input": given}
        done = self._box().execute(
            ["python3", "-I", f"in/{_RUNNER}"],
            stdin=json.dumps(order, separators=(",", ":")).encode() + b"\n",
            files=_laid(files),
            timeout_s=timeout_s,
            cancelled=cancelled,
            talk=talk,
        )
        if talk.answered:
            return talk.value
        printed = done.stderr.decode("utf-8", "replace").strip()
        if printed:
            log.info("the plugin %s printed: %s", plugin.id, printed[-2_000:])
        if talk.fault is not None:
            raise SkillError("too_large" if "more than" in talk.fault else "tool_failed", f"{plugin.id}: {talk.fault}")
        if talk.failed is not None:
            raise SkillError("tool_failed", f"{plugin.id}.{function} failed: {talk.failed}")
        if done.timed_out or done.signal == "SIGXCPU":  # its processor seconds are as many as those of the clock
            raise SkillError(
                "timeout", f"{plugin.id}.{function} did not answer within {timeout_s:.0f} s", retryable=True
            )
        how = "; ".join(done.warnings) or f"{done.signal or f'exit code {done.exit_code}'}"
        raise SkillError("tool_failed", f"{plugin.id}.{function} ended without an answer ({how})")

    def _box(self) -> Box:
        found = self._sandbox()
        if not isinstance(found, Box):
            message = getattr(found, "message", "there is no sandbox on this machine")
            raise SkillError("sandbox_unavailable", f"nothing ran: {message}")
        wanted = self._settings.plugins
        return replace(found, limits=Limits(memory=wanted.memory_mib * MIB, processes=wanted.processes))


def _laid(files: Mapping[str, bytes]) -> dict[str, bytes]:
    return {_RUNNER: _runner()} | {f"{_PLACE}/{path}": content for path, content in files.items()}


@lru_cache(maxsize=1)
def _runner() -> bytes:
    return (Path(__file__).with_name("inside.py")).read_bytes()


__all__ = ["OFF", "PluginTools"]
