"""What a person does with conversations: begins one, says something, stops, sums up, renames, deletes. Rows first,
wake-ups after; the moves stand in `store/threads.py` and `store/sends.py`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypedDict

from sqlalchemy import Connection, Row
from sqlalchemy.exc import IntegrityError

from orchestrator import crashpoints, desk, events, queue, tracing
from orchestrator.known import load_presets, registries, saved_agents
from orchestrator.settings import Settings
from orchestrator.store import audit, sends, threads
from orchestrator.store.database import get_database
from orchestrator.store.sends import Message, Sent
from orchestrator.store.threads import NewThread, ThreadKind
from registry.agents import AgentDefinition
from registry.base import Json
from registry.errors import Fault, Refused, WrongUse
from registry.graph.targets import AgentCard, candidates
from registry.graph.validation import Registries, check_registries, parse_agent
from registry.ids import new_id
from registry.presets import Presets
from registry.projects import documents
from registry.text import one_line

MICRO = 1_000_000
#: Characters of a title.
TITLE_CHARS = 120


@dataclass(frozen=True)
class Voice:
    """An agent to talk with, and where its definition is kept."""

    agent: AgentDefinition
    known_as: Literal["saved", "preset", "own"]


def find_agent(settings: Settings, name: str) -> Voice:
    """The agent a name means: one the owner saved, a preset, or a definition file.

    Raises:
        WrongUse: the file is none, or has faults, each named.
        Refused: `unknown_agent`: none or several are meant.
    """
    path = Path(name)
    if path.suffix in (".yaml", ".yml", ".json") or path.is_file():
        return Voice(_read(path, registries(settings, stand_in=settings.stand_in or not settings.has_model)), "own")
    return known_agent(settings, name)


def known_agent(settings: Settings, name: str) -> Voice:
    """The saved agent or the preset a name means.

    Raises:
        Refused: `unknown_agent`: none or several are meant.
    """
    known = registries(settings, stand_in=settings.stand_in or not settings.has_model)
    saved, presets = saved_agents(settings), load_presets(settings, known)
    cards = [AgentCard(agent.id, agent.name) for agent in saved.values()]
    cards += [card for card in presets.cards if card.id not in saved]
    found = candidates(name, cards)
    if len(found) != 1:
        there = ", ".join(card.id for card in cards[:20]) or "none"
        several = "several agents are" if found else "no agent is"
        raise Refused(f"{several} meant by {name[:80]!r}; there are: {there}", code="unknown_agent")
    chosen = found[0].id
    return Voice(saved[chosen], "saved") if chosen in saved else Voice(_preset(presets, chosen), "preset")


def create(
    settings: Settings,
    voice: Voice,
    *,
    title: str | None = None,
    kind: ThreadKind = "chat",
    mode: str | None = None,
    client_key: str | None = None,
    script: Mapping[str, Json] | None = None,
) -> str:
    """Begins a conversation; returns its id. The same client key gives the same one.

    Args:
        script: what the stand-in plays, where no model is configured; it works by rule without.

    Raises:
        Refused: `invalid_input`: the title is no line of text.
    """
    new = NewThread(
        id=new_id(),
        owner_id=settings.owner,
        title=voice.agent.name[:TITLE_CHARS] if title is None else _title(title),
        agent=voice.agent,
        kind=kind,
        known_as=voice.known_as,
        mode=mode,
        client_key=client_key,
        max_cost_micro=int(settings.project_cost_usd * MICRO),
        max_parallel=settings.limits.parallel_tasks,
        script=dict(script or {}),
    )
    database = get_database(settings)
    try:
        return database.write(lambda c: threads.create(c, new))
    except IntegrityError:  # the same key at the same moment: the other one won
        return database.write(lambda c: threads.create(c, new))


def send(
    settings: Settings,
    thread_id: str,
    text: str,
    *,
    client_key: str | None = None,
    attachments: tuple[Json, ...] = (),
    mode: str | None = None,
) -> Sent:
    """Says something in a thread as a person; the same client key gives the same run.

    Raises:
        Refused: `unknown_thread`, `thread_busy`, `pending_signal`, `unknown_agent`.
    """
    _refresh(settings, thread_id)
    asking = tracing.current()
    message = Message(text, client_key=client_key, attachments=attachments, mode=mode, trace_parent=asking)
    return _told(settings, thread_id, lambda: get_database(settings).write(lambda c: sends.send(c, thread_id, message)))


def trigger(settings: Settings, thread_id: str, message: Message) -> Sent:
    """Says something as a schedule or a webhook: at once, or when the thread is free.

    Raises:
        Refused: `unknown_thread`, `queue_full`, `unknown_agent`.
    """
    _refresh(settings, thread_id)
    most = settings.limits.pending_triggers
    return _told(
        settings,
        thread_id,
        lambda: get_database(settings).write(lambda c: sends.trigger(c, thread_id, message, most=most)),
    )


def compact(settings: Settings, thread_id: str) -> str:
    """Has the whole history of a free thread summed up, by a run of its own; returns its id.

    Raises:
        Refused: `unknown_thread`, `thread_busy`, `pending_signal`, `unknown_agent`.
    """
    _refresh(settings, thread_id)
    done = _told(settings, thread_id, lambda: get_database(settings).write(lambda c: sends.compact(c, thread_id)))
    return str(done.run_id)


def stop(settings: Settings, thread_id: str, *, by: str) -> str | None:
    """Ends the run under way; the thread goes on. Returns the run; None: the thread was free.

    Raises:
        Refused: `unknown_thread`.
    """
    stopped, ready = get_database(settings).write(lambda c: sends.stop(c, thread_id, f"stopped by {by}"))
    crashpoints.reached("cancelled")
    queue.send(settings, ready)
    events.publish(settings, thread_id, 0)
    desk.refresh(settings, settings.owner)
    return stopped


def delete(settings: Settings, thread_id: str, *, by: str) -> None:
    """Deletes a thread: nobody can say anything in it any more.

    Raises:
        Refused: `unknown_thread`.
    """

    def write(connection: Connection) -> None:
        sends.remove(connection, thread_id, f"deleted by {by}")
        audit.of_project(connection, thread_id, by, "thread.removed")

    get_database(settings).write(write)
    crashpoints.reached("cancelled")
    events.publish(settings, thread_id, 0)
    desk.refresh(settings, settings.owner)


class Change(TypedDict, total=False):
    """What a thread should have; what is not named stays."""

    title: str
    #: Who speaks from here on: an agent the owner saved, or a preset, by id or name.
    speaker: str
    #: Of runs to come, the one under way keeps its own; None: as its agent has it.
    mode: str | None


def change(settings: Settings, thread_id: str, wanted: Change) -> None:
    """Renames a thread, gives it another speaker or another mode: all that is wanted, or nothing.

    Raises:
        Refused: `unknown_thread`, `unknown_agent`, `thread_busy`, `invalid_input`.
    """
    title = _title(wanted["title"]) if "title" in wanted else None
    voice = known_agent(settings, wanted["speaker"]) if "speaker" in wanted else None

    def write(connection: Connection) -> None:
        if voice is not None:
            threads.set_speaker(connection, thread_id, voice.agent, preset=voice.known_as == "preset")
            audit.of_project(connection, thread_id, settings.by, "thread.changed", agentId=voice.agent.id)
        if title is not None:
            threads.rename(connection, thread_id, title)
        if "mode" in wanted:
            threads.set_mode(connection, thread_id, wanted["mode"])
            audit.of_project(connection, thread_id, settings.by, "thread.changed", mode=wanted["mode"] or "none")

    get_database(settings).write(write)


def _title(title: str) -> str:
    words = title.strip()
    if len(words) > TITLE_CHARS:
        raise Refused(f"title: at most {TITLE_CHARS} characters, found {len(words)}", code="invalid_input")
    try:
        return one_line(words)
    except ValueError as error:
        raise Refused(
            f"title: {error}; it is one line of 1 to {TITLE_CHARS} characters", code="invalid_input"
        ) from None


def refresh_agent(settings: Settings, thread_id: str, voice: Voice) -> None:
    """Gives a thread the definition of its agent's file as it is now.

    Raises:
        Refused: `unknown_thread`, `other_agent` when somebody else speaks there.
    """
    database = get_database(settings)
    with database.read() as connection:
        row = threads.get(connection, thread_id)
    if voice.agent.id not in (row.agent_id, row.origin_agent_id):
        words = f"{row.agent_id!r} speaks in this thread, not {voice.agent.id!r}; leave the agent out to go on"
        raise Refused(words, code="other_agent")
    if voice.known_as != "saved":
        database.write(lambda c: threads.renew_agent(c, thread_id, voice.agent))


def view_of(row: Row[Any]) -> dict[str, Json]:
    """A thread as it is shown: `status` is that of its run under way, null when it is free."""
    return {
        "id": row.id,
        "title": row.title,
        "kind": row.kind,
        "agentId": row.agent_id,
        "agentName": row.agent_name,
        "originAgentId": row.origin_agent_id,
        "mode": row.mode,
        "runId": row.run_id,
        "status": row.run_status,
        "on": row.waiting_on,
        "runs": row.runs,
        "costUsd": row.cost_micro / MICRO,
        "createdAt": row.created_at,
        "activeAt": row.active_at,
    }


def _told(settings: Settings, thread_id: str, move: Callable[[], Sent]) -> Sent:
    queue.warm(settings)
    done = move()
    crashpoints.reached("submitted")
    queue.send(settings, done.wakes)
    events.publish(settings, thread_id, 0)
    return done


def _refresh(settings: Settings, thread_id: str) -> None:
    """A preset is a file, which may have been edited since the thread last spoke with it."""
    database = get_database(settings)
    with database.read() as connection:
        preset = threads.preset_of(connection, thread_id)
    if preset is None:
        return
    known = registries(settings, stand_in=settings.stand_in or not settings.has_model)
    found = load_presets(settings, known).get(preset[0])
    if found is not None and found.agent.definition_digest != preset[1]:
        database.write(lambda c: threads.renew_agent(c, thread_id, found.agent))


def _preset(presets: Presets, name: str) -> AgentDefinition:
    found = presets[name]
    if found.lacks:
        raise Refused(f"the preset {name!r} cannot run here: {'; '.join(map(str, found.lacks))}", code="agent_invalid")
    return found.agent


def _read(path: Path, known: Registries) -> AgentDefinition:
    document = documents.parse(documents.read_text(path), name=path.name)
    agent, findings = parse_agent(document, known.limits)
    if agent is not None:
        findings = [*findings, *check_registries(agent, known)]
    errors = [Fault(f.path, f.code, f.message) for f in findings if f.severity == "error"]
    if agent is None or errors:
        raise WrongUse(f"{path} is no agent that can run", code="agent_invalid", faults=errors)
    return agent
