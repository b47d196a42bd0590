"""Hooks around one call of a batch: before it is judged, after it ran, and where a person would be asked."""

from typing import Final

from registry.base import Json
from registry.errors import SkillError
from registry.hooks import Effects
from registry.jsontext import compact
from registry.skills.context import KEEP
from registry.skills.registry import Checked, SkillResult
from workers.engine import hooks
from workers.engine.calls import Call
from workers.engine.results import Result
from workers.engine.session import Session

#: Statuses of a call whose PreToolUse has been: its stored input is the final one.
_JUDGED: Final = ("asked", "started")


class ToolHooks:
    """The hooks of one batch; PreToolUse is asked once per call, however often the call is looked at."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._inputs = {c.id: c.input for c in session.calls.values() if c.status in _JUDGED}
        self._blocked: dict[str, str] = {}

    def input(self, call: Call) -> Json:
        """What the call runs with: the model's arguments, or what a hook made of them."""
        return self._inputs.get(call.id, call.args)

    def revise(self, call: Call, checked: Checked) -> Json:
        """Asks PreToolUse; other arguments, or `KEEP`.

        Raises:
            SkillError: `blocked`.
        """
        if "PreToolUse" not in self._session.hooks:
            return KEEP
        if call.id in self._blocked:
            raise SkillError("blocked", self._blocked[call.id])
        if call.id in self._inputs:
            return KEEP
        name = checked.skill.name
        effects = self._fire("PreToolUse", call, name, input=checked.canonical)
        if effects.block is not None:
            self._blocked[call.id] = f"blocked: a hook refused this call: {effects.block}"
            raise SkillError("blocked", self._blocked[call.id])
        self._inputs[call.id] = effects.updates.get("updateInput", call.args)
        return effects.updates.get("updateInput", KEEP)

    def review(self, call: Call, checked: Checked, result: SkillResult) -> SkillResult:
        """Tells PostToolUse how the call came out; a fault stays one, whatever the hook makes of its words."""
        if "PostToolUse" not in self._session.hooks:
            return result
        facts = {
            "input": checked.canonical,
            "output": result.output if result.ok else result.error,
            "isError": not result.ok,
            "code": result.code,
            "durationMs": result.duration_ms,
        }
        updates = self._fire("PostToolUse", call, checked.skill.name, **facts).updates
        if "updateOutput" in updates:
            made = updates["updateOutput"]
            if result.ok:
                result.output = made
            else:
                result.error = made if isinstance(made, str) else compact(made)
        return result

    def refusal(self, call: Call, reason: str) -> str | None:
        """Asks PermissionRequest, before a person is asked; the words of a refusal."""
        effects = self._fire("PermissionRequest", call, call.name, input=self.input(call), reason=reason)
        return None if effects.block is None else f"denied: a hook refused this call: {effects.block}"

    def finished(self, call: Call, result: Result) -> None:
        """Tells PermissionDenied of a call that was not allowed."""
        if result.code == "denied":
            self._fire("PermissionDenied", call, call.name, input=self.input(call), reason=result.value)

    def _fire(self, event: str, call: Call, name: str, **fields: Json) -> Effects:
        return hooks.fire(self._session, event, name, toolCallId=call.id, name=name, **fields)
