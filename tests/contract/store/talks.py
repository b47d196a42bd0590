"""Threads in the small world of the store's tests: somebody talks, and a worker made of a few lines answers."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from orchestrator.records import Checkpoint, Ending, Event, MessageRecord, RunRecord, Wake
from orchestrator.store import endings, kept, loading, sends, threads
from orchestrator.store import tables as t
from orchestrator.store.sends import Message, Sent
from orchestrator.store.threads import NewThread
from registry.agents import AgentDefinition
from registry.base import Json
from registry.ids import new_id
from tests.contract.store.world import World


def definition(agent_id: str = "ada", **about: Any) -> AgentDefinition:
    return AgentDefinition.model_validate({"id": agent_id, "name": agent_id.title(), "instructions": "Talk."} | about)


@dataclass
class Talk:
    """One thread."""

    world: World
    id: str

    @classmethod
    def begun(cls, world: World, agent: AgentDefinition | None = None, **about: Any) -> "Talk":
        about = {"known_as": "own", "title": "A talk"} | about
        new = NewThread(id=new_id(), owner_id="local", agent=agent or definition(), **about)
        return cls(world, world.database.write(lambda c: threads.create(c, new)))

    def send(self, text: str = "hello", **about: Any) -> Sent:
        return self.world.database.write(lambda c: sends.send(c, self.id, Message(text, **about)))

    def trigger(self, text: str = "tick", origin: Any = "schedule", source_id: str = "s1", **about: Any) -> Sent:
        message = Message(text, origin=origin, source_id=source_id, **about)
        return self.world.database.write(lambda c: sends.trigger(c, self.id, message))

    def stop(self) -> tuple[str | None, list[Wake]]:
        return self.world.database.write(lambda c: sends.stop(c, self.id, "stopped by a test"))

    def load(self, run_id: str | None = None) -> RunRecord:
        """Claims a run and reads it as a worker would."""
        claim = self.world.claimed(run_id or str(self.row.run_id))
        with self.world.database.read() as connection:
            return loading.load(connection, claim.run_id, claim.fence)

    def answer(self, words: str = "hi", *, status: Any = "completed", **fields: Any) -> list[Wake]:
        """Carries the run under way to its end: it hears its input and says something."""
        record = self.load()
        said = [
            {"role": "user", "content": record.input["text"], "origin": record.input["origin"]},
            {"role": "assistant", "content": words, "finishReason": "stop"},
        ]
        return self.end(record, said, status=status, **fields)

    def end(self, record: RunRecord, said: list[dict[str, Json]], *, status: Any = "completed", **fields: Any) -> Any:
        rows = [MessageRecord(n, "messages", body) for n, body in enumerate(said, len(record.messages) + 1)]
        error = None if status == "completed" else {"code": "model_failed", "message": "it broke"}
        last = Checkpoint(
            record.id,
            record.fence,
            number=record.checkpoint + 1,
            node_id="end",
            snapshot=True,
            patch={"set": record.state},
            messages=rows,
            messages_count=len(record.messages) + len(rows),
            events=[Event("run.completed", {}, run_id=record.id)],
            ending=Ending(status, output="done", error=error),
        )
        for name, value in fields.items():
            setattr(last, name, value)
        return self.world.database.write(lambda c: endings.end(c, last))

    @property
    def row(self) -> Any:
        return self.world.row(kept.threads, self.id)

    @property
    def queue(self) -> list[Any]:
        query = select(kept.triggers).where(kept.triggers.c.thread_id == self.id)
        return self.world.all(query.order_by(kept.triggers.c.number))

    @property
    def runs(self) -> list[Any]:
        query = select(t.runs, kept.thread_runs.c.number, kept.thread_runs.c.origin).join(
            kept.thread_runs, kept.thread_runs.c.run_id == t.runs.c.id
        )
        return self.world.all(query.where(t.runs.c.project_id == self.id).order_by(kept.thread_runs.c.number))

    def kinds(self, kind: str) -> list[Any]:
        lines = select(t.events).where(t.events.c.trace_id == self.id).order_by(t.events.c.seq)
        return [line.data for line in self.world.all(lines) if line.kind == kind]


def words(record: RunRecord) -> list[str]:
    """What a run has of the history before it."""
    return [str(message.body["content"]) for message in record.carried]
