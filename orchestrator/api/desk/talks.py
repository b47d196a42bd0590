"""A conversation as a person reads it: what was said, what was done in between, told from rows and events."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from markupsafe import Markup
from sqlalchemy import Connection, and_, func, select

from orchestrator import views
from orchestrator.api.desk.previews import beginning, markdown
from orchestrator.records import Event
from orchestrator.store.tables import checkpoints, events, runs
from orchestrator.store.thread_tables import thread_runs, triggers
from orchestrator.terminal.sentences import is_stand_in, sentence
from registry.base import Json

#: Runs that one page shows, the latest; and lines of the trace it reads for them.
MOST: Final = 40
_LINES: Final = 4_000
#: What is worth a line between question and answer.
_STEPS: Final = (
    *("tool.call", "tool.result", "file.written", "agent.spawned", "agent.completed", "agent.failed"),
    *("agent.handoff", "hook.blocked", "hook.failed", "compaction.completed", "compaction.failed"),
)
_KINDS: Final = ("think", "message", "output", "run.failed", "run.cancelled", *_STEPS)
#: Who a message is from -> how that is said.
ORIGINS: Final = {"person": "You", "schedule": "A schedule", "webhook": "A webhook"}


@dataclass(frozen=True)
class Piece:
    """Words of the agent, or a step it took."""

    text: str
    #: Words as HTML that only says how text looks; None: a step.
    words: Markup | None = None
    wrong: bool = False
    #: More was said than is shown.
    cut: bool = False


@dataclass
class Turn:
    """A message and what came of it. Times are epoch milliseconds."""

    number: int
    run_id: str
    status: str
    agent: str
    origin: str
    #: What was said; None: the run sums the thread up.
    said: str | None
    #: What came with it: paths in the conversation's workspace.
    attachments: tuple[str, ...]
    created_at: int
    ended_at: int | None
    cost_usd: float
    error: Mapping[str, Any] | None
    pieces: list[Piece] = field(default_factory=list)
    stand_in: bool = False

    @property
    def words(self) -> list[Piece]:
        return [piece for piece in self.pieces if piece.words is not None]

    @property
    def steps(self) -> list[Piece]:
        return [piece for piece in self.pieces if piece.words is None]


def read(connection: Connection, thread_id: str) -> tuple[list[Turn], int]:
    """The latest turns of a conversation, the eldest of them first; and how many there were before."""
    n, r, c = thread_runs.c, runs.c, checkpoints.c
    query = (
        select(
            *(n.number, n.origin, r.id, r.kind, r.status, r.agent_name, r.error),
            *(r.created_at, r.ended_at, r.cost_micro, c.input),
        )
        .join(runs, r.id == n.run_id)
        .join(checkpoints, and_(c.run_id == n.run_id, c.number == 0), isouter=True)
        .where(n.thread_id == thread_id)
        .order_by(n.number.desc())
        .limit(MOST)
    )
    turns = [_turn(row) for row in connection.execute(query)][::-1]
    for run_id, lines in _events(connection, thread_id, [turn.run_id for turn in turns]).items():
        turn = next(turn for turn in turns if turn.run_id == run_id)
        for event in lines:
            _take(turn, event)
    return turns, turns[0].number - 1 if turns else 0


def waiting(connection: Connection, thread_id: str) -> int:
    """Messages of schedules and webhooks that wait until the thread is free."""
    query = select(func.count()).where(triggers.c.thread_id == thread_id)
    return int(connection.execute(query).scalar_one())


def _turn(row: Any) -> Turn:
    given = row.input if isinstance(row.input, dict) else {}
    return Turn(
        number=row.number,
        run_id=row.id,
        status=row.status,
        agent=row.agent_name,
        origin=ORIGINS.get(row.origin, row.origin),
        said=None if row.kind == "compact" else _text(given.get("text")),
        attachments=_paths(given.get("attachments")),
        created_at=row.created_at,
        ended_at=row.ended_at,
        cost_usd=views.usd(row.cost_micro),
        error=row.error,
    )


def _paths(value: Json) -> tuple[str, ...]:
    laid = value if isinstance(value, list) else []
    return tuple(path for one in laid if isinstance(one, dict) and isinstance(path := one.get("path"), str))


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _events(connection: Connection, thread_id: str, run_ids: Sequence[str]) -> dict[str, list[Event]]:
    e = events.c
    mine = (e.trace_id == thread_id, e.run_id.in_(run_ids), e.kind.in_(_KINDS))
    found: dict[str, list[Event]] = {}
    # The latest lines, so that a long run is cut where it is the oldest.
    rows = connection.execute(select(events).where(*mine).order_by(e.seq.desc()).limit(_LINES)).all()
    for row in reversed(rows):
        found.setdefault(row.run_id, []).append(Event(row.kind, row.data, run_id=row.run_id, at=row.at, seq=row.seq))
    return found


def _take(turn: Turn, event: Event) -> None:
    """What an event adds to a turn."""
    data = event.data
    if event.kind == "think":
        turn.stand_in = turn.stand_in or is_stand_in(event)
    elif event.kind == "message":
        if data.get("role") == "assistant" and not data.get("kind"):
            _say(turn, data.get("text"))
    elif event.kind == "output":
        _say(turn, data.get("text"))
    elif event.kind in ("run.failed", "run.cancelled"):
        turn.error = turn.error or {"code": data.get("code"), "message": data.get("message") or data.get("reason")}
    elif event.kind != "tool.call" or turn.ended_at is None:  # what a finished call was asked, its result says
        wrong = bool(data.get("isError")) or event.kind.endswith(("failed", "blocked"))
        turn.pieces.append(Piece(f"{event.kind}: {sentence(event)}", wrong=wrong))


def _say(turn: Turn, text: Json) -> None:
    words = _text(text)
    if words.strip() and not (turn.words and turn.words[-1].text == words):  # the end repeats what was said last
        drawn, more = beginning(words)
        turn.pieces.append(Piece(words, markdown(drawn), cut=more))
