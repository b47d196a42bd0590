"""Webhooks as the pack `webhook` and a person see them; the secret is made here and leaves it once, to a person."""

import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, Row, insert
from sqlalchemy.exc import IntegrityError

from orchestrator import makers
from orchestrator.ports.keys import call_key
from orchestrator.ports.voices import Rooms, invalid, looser, mode_of
from orchestrator.store import audit, hooked
from orchestrator.store.database import Database, now_ms
from orchestrator.store.sql import take_turns
from orchestrator.store.tables import signals
from registry.base import Json
from registry.errors import SkillError
from registry.ids import new_id
from registry.permissions import Mode
from registry.skills.context import Caller
from registry.skills.triggers import Hand, Hooked

if TYPE_CHECKING:
    from orchestrator.vault import Vault

#: Webhooks of one owner.
MAX_HOOKS: Final = 50
#: What runs it starts are held to, unless its owner says otherwise.
MODE: Final[Mode] = "ask"


class StoredWebhooks:
    """The `Webhooks` port over rows."""

    def __init__(self, vault: "Callable[[], Vault]", database: Database, rooms: Rooms, by: str | None = None) -> None:
        """
        Args:
            by: who a person is that acts, for the audit log; None: the owner.
        """
        self._vault = vault
        self._by = by
        self._database = database
        self._rooms = rooms

    def rows(self, caller: Caller) -> list[dict[str, Json]]:
        """See `Webhooks`."""
        with self._database.read() as connection:
            found = hooked.of_owner(connection, caller.owner_id)
        return [view(row) for row in found if _may_see(caller, row)]

    def save(self, hand: Hand, wanted: Hooked) -> dict[str, Json]:
        """See `Webhooks`."""
        secret = self._vault().close_text(secrets.token_urlsafe(32)) if wanted.id is None else ""

        def work(connection: Connection) -> dict[str, Json]:
            if wanted.id is not None:
                return self._change(connection, hand, wanted)
            return self._create(connection, hand, wanted, secret)

        try:
            return self._database.write(work)
        except IntegrityError:  # the same call in two places: the other one was first
            return self._database.write(work)

    def delete(self, caller: Caller, hook_id: str) -> None:
        """See `Webhooks`."""

        def move(connection: Connection) -> None:
            row = _mine(connection, caller, hook_id)
            hooked.remove(connection, caller.owner_id, row.id)
            self._note(connection, caller, "hook.removed", row.id, name=row.name)

        self._database.write(move)

    def reveal(self, owner_id: str, hook_id: str) -> str | None:
        """The secret, for a person and once; None: it was shown already, or there is no such webhook."""

        def move(connection: Connection) -> str | None:
            shown = hooked.show_once(connection, owner_id, hook_id)
            if shown is not None:
                self._note(connection, Caller("person", owner_id), "hook.secret_shown", hook_id)
            return shown

        closed = self._database.write(move)
        return None if closed is None else self._vault().open_text(closed)

    def rotate(self, owner_id: str, hook_id: str) -> str | None:
        """A new secret, shown to the person who asks; the old one is of no use from now on. None: no such webhook."""
        secret = secrets.token_urlsafe(32)
        closed = self._vault().close_text(secret)

        def move(connection: Connection) -> bool:
            if hooked.get(connection, hook_id, owner_id) is None:
                return False
            hooked.change(connection, hook_id, {"secret": closed, "shown_at": now_ms()})
            self._note(connection, Caller("person", owner_id), "hook.rotated", hook_id)
            return True

        return secret if self._database.write(move) else None

    def set_mode(self, owner_id: str, hook_id: str, mode: str, action: dict[str, Json] | None) -> None:
        """What only a person sets: the mode of its runs, and that it starts projects."""

        def move(connection: Connection) -> None:
            if hooked.get(connection, hook_id, owner_id) is not None:
                hooked.change(connection, hook_id, {"mode": mode} | ({"action": action} if action else {}))
                starts = action["kind"] if action else None
                self._note(connection, Caller("person", owner_id), "hook.changed", hook_id, mode=mode, starts=starts)

        self._database.write(move)

    def _create(self, connection: Connection, hand: Hand, wanted: Hooked, secret: str) -> dict[str, Json]:
        caller, key = hand.caller, call_key(hand.caller)
        if (before := hooked.of_call(connection, key)) is not None:
            return view(_mine(connection, caller, before))
        assert wanted.name is not None
        take_turns(connection, f"hooks {caller.owner_id}")
        if len(hooked.of_owner(connection, caller.owner_id)) >= MAX_HOOKS:
            raise SkillError("quota", f"{MAX_HOOKS} webhooks are there already; delete one first")
        voice, mode = self._rooms.voice(connection, hand, wanted.agent_id), _mode(hand)
        thread_id = self._rooms.thread(connection, hand, voice, kind="webhook", title=wanted.name, mode=mode)
        row = {
            "id": new_id(),
            "owner_id": caller.owner_id,
            "name": wanted.name,
            "status": wanted.status or "active",
            "detail": wanted.detail or "",
            "agent_id": voice.agent.id,
            "thread_id": thread_id,
            "mode": mode,
            "maker": makers.of(caller, hand.policy),
            "secret": secret,
            "call_key": key,
        }
        hooked.create(connection, row)
        facts: dict[str, Json] = {"name": wanted.name, "agentId": voice.agent.id, "mode": mode}
        self._note(connection, caller, "hook.made", str(row["id"]), **facts)
        if caller.kind != "person":
            connection.execute(insert(signals).values(_notice(caller.owner_id, str(row["id"]), wanted.name)))
        return view(_mine(connection, caller, str(row["id"])))

    def _change(self, connection: Connection, hand: Hand, wanted: Hooked) -> dict[str, Json]:
        row = _mine(connection, hand.caller, str(wanted.id))
        values: dict[str, Any] = {}
        if wanted.name is not None:
            values["name"] = wanted.name
        if wanted.detail is not None:
            self._may_speak(connection, hand, wanted, row)
            values["detail"] = wanted.detail
        if wanted.status is not None:
            values |= {"status": wanted.status, "reason": None}
        if wanted.agent_id is not None and wanted.agent_id != row.agent_id:
            if row.action is not None:
                raise invalid("agentId", "that webhook starts projects and speaks to nobody")
            voice = self._rooms.voice(connection, hand, wanted.agent_id)
            name, mode = wanted.name or row.name, _mode(hand)
            values |= {
                "agent_id": voice.agent.id,
                "thread_id": self._rooms.thread(connection, hand, voice, kind="webhook", title=name, mode=mode),
                "mode": mode,
            }
        hooked.change(connection, row.id, values)
        facts: dict[str, Json] = {"status": wanted.status, "agentId": values.get("agent_id")}
        self._note(connection, hand.caller, "hook.changed", row.id, fields=sorted(values), **facts)
        return view(_mine(connection, hand.caller, row.id))

    def _note(self, connection: Connection, caller: Caller, act: str, hook_id: str, **facts: Json) -> None:
        """An agent's act goes to the audit log like a person's."""
        by = caller.agent_name or (self._by if caller.kind == "person" and self._by else caller.owner_id)
        audit.record(connection, caller.owner_id, by, act, hook_id, project_id=caller.project_id, **facts)

    def _may_speak(self, connection: Connection, hand: Hand, wanted: Hooked, row: Row[Any]) -> None:
        """Whether a caller may say what is said there: what a person gave a webhook beyond it is not the caller's.

        Raises:
            SkillError: `denied`.
        """
        if hand.policy is None:
            return
        if row.action is not None:
            raise SkillError("denied", "denied: it starts projects, and only a person says what they are told")
        if wanted.agent_id is not None and wanted.agent_id != row.agent_id:
            return  # it gets a thread and a mode anew
        voice = self._rooms.voice(connection, hand, row.agent_id)
        mode_of(hand, row.mode, voice.agent)
        if looser(connection, row.thread_id, hand, voice.agent):
            raise SkillError("denied", "denied: its thread may do more than you; make a webhook of your own")


def view(row: Row[Any]) -> dict[str, Json]:
    """A webhook as it may be seen; never its secret."""
    return {
        "id": row.id,
        "name": row.name,
        "status": row.status,
        "detail": row.detail,
        "agentId": row.agent_id,
        "endpoint": f"/api/studio/hooks/{row.id}",
        "lastFiredAt": row.last_fired_at,
    }


def _mode(hand: Hand) -> Mode:
    """What the runs of a caller's webhook are held to: no more than the caller."""
    if hand.policy is None or hand.policy.mode is None or makers.may_give(MODE, hand.policy):
        return MODE
    return hand.policy.mode


def _notice(owner_id: str, hook_id: str, name: str) -> dict[str, Any]:
    """Tells a person where the secret is: it stands in no signal, where more than one eye could come by."""
    return {
        "id": new_id(),
        "owner_id": owner_id,
        "kind": "notice",
        "status": "open",
        "title": f'The webhook "{name}" was made'[:120],
        "body": f"Its secret is shown to you once: officina hooks secret {hook_id}",
        "options": [],
        "priority": "normal",
        "schema": {"type": "object"},
        "created_at": now_ms(),
    }


def _may_see(caller: Caller, row: Row[Any]) -> bool:
    if caller.kind == "person":
        return True
    return caller.agent_id is not None and caller.agent_id in (row.agent_id, (row.maker or {}).get("agentId"))


def _mine(connection: Connection, caller: Caller, hook_id: str) -> Row[Any]:
    row = hooked.get(connection, hook_id, caller.owner_id)
    if row is None or not _may_see(caller, row):
        words = f"there is no webhook {hook_id[:80]!r} of yours; webhook_list shows those there are"
        raise SkillError("not_found", words)
    return row


__all__ = ["StoredWebhooks", "view"]
