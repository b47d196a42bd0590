"""Pieces of what agents say while they say it: as they are sent through Redis, and as they are shown outside."""

import json
from dataclasses import dataclass
from typing import Final, Literal

from registry.base import Json

#: Channels of what is said while it is said: nothing but Redis knows of them.
LIVE: Final = "officina:live:"

Kind = Literal["message.delta", "think.delta"]


@dataclass(frozen=True)
class Delta:
    """A piece of what a run says."""

    kind: Kind
    run_id: str
    #: Characters of this answer that came before it; 0: it begins, maybe anew.
    at: int
    text: str
    task_id: str | None = None
    agent_id: str | None = None

    def to_json(self) -> dict[str, Json]:
        """As it is shown outside."""
        about = {"kind": self.kind, "runId": self.run_id, "taskId": self.task_id, "agentId": self.agent_id}
        return about | {"at": self.at, "text": self.text}

    @classmethod
    def of_json(cls, shown: dict[str, Json]) -> "Delta":
        return cls(shown["kind"], shown["runId"], shown["at"], shown["text"], shown.get("taskId"), shown.get("agentId"))


def channel(trace_id: str) -> str:
    return LIVE + trace_id


def read(message: str | bytes) -> Delta | None:
    """A piece as it was sent; None: it is none."""
    try:
        return Delta(**json.loads(message))
    except (ValueError, TypeError):
        return None
