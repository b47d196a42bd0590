"""What executing a node came to."""

from dataclasses import dataclass

from orchestrator.records import Fanout, Park
from registry.base import Json


@dataclass(frozen=True)
class Done:
    """The node is executed; the run goes along an edge, or to `target`."""

    target: str | None = None
    #: Whether it deserves a checkpoint of its own; pure nodes ride along with the next one.
    durable: bool = False
    #: Whether it took a person's answer: `$resume` then lasts through the next node.
    resumed: bool = False


@dataclass(frozen=True)
class Parked:
    """The run waits; the node is executed again, or finished, when it comes back."""

    park: Park
    #: Children that are written with the park.
    fanout: Fanout | None = None


@dataclass(frozen=True)
class Yielded:
    """An item run is at its end, with this output."""

    output: Json


Outcome = Done | Parked | Yielded
