"""The inbox: what waits for a person, and what was answered lately."""

from typing import Final

from sqlalchemy import select
from starlette.responses import Response

from orchestrator import lookup, views
from orchestrator.api.auth import Person
from orchestrator.api.desk import questions
from orchestrator.api.desk.rendering import page
from orchestrator.api.desk.routing import router as make_router
from orchestrator.api.desk.routing import shell
from orchestrator.store.tables import signals

router = make_router()

#: Cards that one page shows; and how many of those that are closed.
MOST: Final = 50
CLOSED: Final = 12


@router.get("/inbox")
def inbox(asking: Person) -> Response:
    with asking.database.read() as connection:
        waiting = views.signal_list(connection, asking.owner, status="open", limit=MOST)
        lately = (
            select(signals.c.id)
            .where(signals.c.owner_id == asking.owner, signals.c.status != "open")
            .order_by(signals.c.answered_at.desc().nulls_last(), signals.c.created_at.desc())
            .limit(CLOSED)
        )
        closed = [views.signal(connection, id_) for id_ in connection.execute(lately).scalars()]
        facts = {
            "cards": questions.cards(connection, waiting),
            "closed": questions.cards(connection, closed),
        }
    return page("inbox.html", shell(asking, "inbox", **facts))


@router.get("/inbox/{signal_id}")
def one(asking: Person, signal_id: str) -> Response:
    """One signal: open, or with what came of it."""
    with asking.database.read() as connection:
        whole = lookup.signal_id(connection, signal_id, asking.owner)
        [card] = questions.cards(connection, [views.signal(connection, whole)])
    return page("signal.html", shell(asking, "inbox", card=card))
