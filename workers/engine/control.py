"""What control tools may do: write a queue key of the state, when the running graph has the node that reads it."""

from registry.base import Json
from registry.errors import SkillError
from workers.engine.session import Session


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
