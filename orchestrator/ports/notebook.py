"""The notebook over rows, made together: on a worker, on the command line, in a run in memory."""

from collections.abc import Iterable

from orchestrator.ports.agendas import StoredAgendas
from orchestrator.ports.knowledge import StoredKnowledge
from orchestrator.ports.pins import StoredPins
from orchestrator.ports.provenance import Provenance
from orchestrator.ports.recollections import StoredRecollections
from orchestrator.ports.records import StoredRecords
from orchestrator.sections import Keeping
from orchestrator.store.database import Database
from registry.skills.notebook import Embeddings, Notebook


def notebook(
    database: Database,
    keeping: Keeping,
    *,
    outside: Iterable[str] = (),
    embeddings: Embeddings | None = None,
    nearness: float = 0.3,
) -> Notebook:
    """
    Args:
        outside: names of the tools whose output is text from outside.
        embeddings: what compares texts by their meaning; None: words alone count.
        nearness: cosine from which it counts.
    """
    provenance = Provenance(outside)
    return Notebook(
        agendas=StoredAgendas(database, provenance),
        records=StoredRecords(database, provenance, most=keeping.memories, session_days=keeping.session_days),
        pins=StoredPins(database, provenance),
        recollections=StoredRecollections(database, most=keeping.recall_passages, days=keeping.recall_days),
        knowledge=StoredKnowledge(database, embeddings, nearness),
    )
