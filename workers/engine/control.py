"""What control tools may do: write a queue key of the state, when the running graph has the node that reads it."""

from registry.base import Json
from registry.errors import SkillError
from registry.ids import new_id
from registry.jsontext import digest
from workers.engine.session import Session

#: Where the memo keeps what `agents_spawn` told of children to come: [[run, digest of the queued call, id], ...].
#: A fork takes the memo along, and the children that were promised are those of the run it came from.
PROMISED = "spawnIds"


class QueueKeys:
    """The `Control` port over a session."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def queue(self, node_type: str, key: str, value: Json) -> None:
        if not any(node.type == node_type for node in self._session.graph.nodes.values()):
            raise SkillError("no_control_node", f"this agent's graph has no {node_type} node; nothing was queued")
        self._session.write(key, value)

    def extend(self, node_type: str, key: str, values: list[Json]) -> None:
        with self._session.lock:
            before = self._session.state.get(key)
            self.queue(node_type, key, [*(before if isinstance(before, list) else []), *values])

    def spawn(self, calls: list[Json]) -> list[str]:
        with self._session.lock:
            self.extend("control:spawn", "spawns", calls)
            ids = [new_id() for _ in calls]
            promised = self._session.memo.get(PROMISED, [])
            self._session.memo[PROMISED] = [
                *promised,
                *([self._session.record.id, digest(call), id_] for call, id_ in zip(calls, ids, strict=True)),
            ]
        return ids


def promised_id(session: Session, call: Json) -> str:
    """The id that a queued call was promised for its child; a new one when nobody was told any."""
    left = list(session.memo.get(PROMISED, []))
    key = [session.record.id, digest(call)]
    mine = next((entry for entry in left if entry[:2] == key), None)
    if mine is None:
        return new_id()
    left.remove(mine)
    session.memo[PROMISED] = left
    return str(mine[2])
