"""A studio in which every page of the desk has something to show, and the list of those pages.

Rows go straight into the tables: every state is there at once, which no studio at work ever shows.
"""

from collections.abc import Iterator
from typing import Any, Final

from sqlalchemy import insert

from orchestrator import connections, knowledge, saved
from orchestrator.api.shared import skills
from orchestrator.records import wall_ms
from orchestrator.settings import Settings
from orchestrator.store import definitions, events, memories, pins
from orchestrator.store import threads as thread_moves
from orchestrator.store.database import get_database
from orchestrator.store.kept import schedules, thread_runs, threads
from orchestrator.store.tables import agents, checkpoints, files, runs, workers
from orchestrator.store.threads import NewThread
from registry.agents import AgentDefinition
from registry.generators import Generator
from registry.ids import new_id
from tests.showroom_projects import FAR, MINUTE, Projects

ADA: Final = {
    "id": "ada",
    "name": "Ada Quist",
    "role": "analyst",
    "description": "Reads tables and says what is in them.",
    "instructions": "Read the table, compute what is asked, and say which rows you used.",
    "skills": ["files.read", "math.evaluate"],
    "permissions": {"process": "ask"},
    "budget": {"maxSteps": 40},
    "graph": {
        "nodes": {
            "start": {"type": "core:start"},
            "think": {"type": "llm:generate", "prompt": "main", "label": "Think"},
            "tools": {"type": "tool:call", "calls": "$output.toolCalls"},
            "end": {"type": "core:end"},
        },
        "edges": [
            {"from": "start", "to": "think"},
            {"from": "think", "to": "tools", "when": '$output.finishReason = "tool-calls"'},
            {"from": "tools", "to": "think"},
            {"from": "think", "to": "end"},
        ],
    },
}
GENERATOR: Final = {
    "name": "City report",
    "description": "A page on the weather of a city, with a table and a chart.",
    "inputs": [
        {"key": "city", "label": "City", "type": "text", "required": True},
        {"key": "years", "label": "Years back", "type": "number", "default": 3},
        {"key": "tone", "label": "Tone", "type": "choice", "options": ["plain", "warm"]},
        {"key": "notes", "label": "Anything to keep in mind", "type": "longtext"},
        {"key": "chart", "label": "With a chart", "type": "boolean", "default": True},
        {"key": "source", "label": "Where the figures are", "type": "url"},
    ],
    "steps": [
        {
            "key": "collect",
            "title": "Collect the figures",
            "role": "researcher",
            "instruction": "Find {{years}} years of figures of {{city}} ({{source}}). {{notes}}",
        },
        {
            "key": "write",
            "title": "Write the page",
            "role": "writer",
            "instruction": "Write it in a {{tone}} tone; chart: {{chart}}.",
            "dependsOn": ["collect"],
        },
    ],
}
#: A file that came with a message.
NOTES: Final = "attachments/0123456789abcdef/notes.md"


class Showroom:
    """The rows, and where they are shown."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.database = get_database(settings)
        self.now = wall_ms()
        made = Projects(settings, self.now)
        self.busy, self.done, self.planned, self.signal_ids = made.busy, made.done, made.planned, made.signal_ids
        self._member()
        self.agent_id = str(saved.create_agent(settings, skills(), _without_id(ADA), person=True)["id"])
        self.generator_id = str(saved.create_generator(settings, skills(), Generator.model_validate(GENERATOR))["id"])
        self.thread_id = self._thread()
        self._rest()

    def pages(self) -> Iterator[str]:
        """Every page, by address."""
        yield from ("/", "/inbox", "/agents", "/library", "/schedules", "/workers", "/login")
        yield from ("/threads", f"/threads/{self.thread_id}", f"/threads/{self.thread_id}/files/{NOTES}")
        yield from ("/memories", "/knowledge", "/connections")
        yield from (
            "/generators",
            f"/generators/{self.generator_id}",
            f"/agents/{self.agent_id}",
            "/agents/kasimir-dove",
        )
        yield from (f"/inbox/{id_}" for id_ in self.signal_ids)
        for made, tasks in ((self.busy, list(self.busy.task_ids)), (self.done, list(self.done.task_ids)[:1])):
            at = f"/projects/{made.id}"
            yield from (at, f"{at}/runs", f"{at}/timeline", f"{at}/trace?show=all", f"{at}/cost", f"{at}/files")
            yield from (f"{at}/tasks/{key}" for key in tasks)
        yield f"/projects/{self.busy.id}/agents/ada"
        yield f"/projects/{self.planned}"

    @property
    def workspace(self) -> str:
        """The folder of the busy project, within the workspaces."""
        return f"workspace-of-{self.busy.id}"

    def lines(self) -> Iterator[str]:
        """What is loaded when somebody unfolds or looks at a part of a page."""
        yield from (f"/projects/{self.busy.id}/events/{seq}" for seq in range(1, 40))
        yield f"/agents/{self.agent_id}/graph.svg"
        yield f"/projects/{self.busy.id}/agents/ada/graph.svg"

    def _member(self) -> None:
        """An agent of the busy project's team."""
        body = AgentDefinition.model_validate(ADA).to_json()
        self.database.write(lambda connection: definitions.keep(connection, {"a" * 64: body}))
        whose = {"id": new_id(), "owner_id": self.settings.owner, "project_id": self.busy.id, "created_at": self.now}
        named = {"key": "ada", "name": "Ada Quist", "role": "analyst", "definition_digest": "a" * 64}
        self._insert(agents, whose | named)

    def _thread(self) -> str:
        """A conversation of three runs: one answered, one failed, one that asks."""
        agent = AgentDefinition.model_validate(ADA)
        new = NewThread(
            id=new_id(), owner_id=self.settings.owner, title="Rain in the north", agent=agent, known_as="own"
        )
        thread_id = self.database.write(lambda c: thread_moves.create(c, new))
        free = NewThread(id=new_id(), owner_id=self.settings.owner, title="Nothing yet", agent=agent, known_as="own")
        self.database.write(lambda c: thread_moves.create(c, free))
        brought: dict[str, Any] = {"attachments": [{"path": NOTES, "bytes": 8, "sha256": "a" * 64}]}
        said = ("How much rain fell in May?", "And in June?", "Then draw both.")
        for number, (words, status) in enumerate(zip(said, ("completed", "failed", "needs_input"), strict=True), 1):
            at = self.now - (30 - 9 * number) * MINUTE
            run_id = new_id()
            ended = {} if status == "needs_input" else {"ended_at": at + MINUTE}
            row = {
                "id": run_id,
                "project_id": thread_id,
                "kind": "thread",
                "agent_id": "ada",
                "agent_name": "Ada Quist",
                "definition_digest": agent.definition_digest,
                "status": status,
                "attempt": 1,
                "permissions": {},
                "approvals": "park",
                "priority": 5,
                "created_at": at,
                "started_at": at,
                **ended,
            }
            self._insert(runs, row)
            begun = {
                "run_id": run_id,
                "number": 0,
                "counters": {},
                "patch": {"set": {}},
                "snapshot": True,
                "input": {"text": words, "origin": "person"} | (brought if number == 1 else {}),
                "has_input": True,
                "at": at,
            }
            self._insert(checkpoints, begun)
            self._insert(
                thread_runs,
                {"thread_id": thread_id, "number": number, "run_id": run_id, "history_from": 1, "origin": "person"},
            )
            lines: list[tuple[str, dict[str, Any]]] = [
                ("run.started", {"attempt": 1}),
                ("think", {"model": "stand-in", "standIn": True, "text": ""}),
            ]
            lines.append(("tool.call", {"toolCallId": "t1", "name": "files.read", "input": {"path": "rain.csv"}}))
            lines.append(("tool.result", {"toolCallId": "t1", "name": "files.read", "outcome": "ok", "output": "5,42"}))
            if status == "completed":
                lines += [
                    ("message", {"role": "assistant", "text": "In May **42 mm** fell:\n\n- north: 30\n- south: 12"}),
                    ("run.completed", {"steps": 3, "costUsd": 0.01}),
                ]
            if status == "failed":
                lines.append(("run.failed", {"code": "model_failed", "message": "the model did not answer"}))
            self.database.write(
                lambda c, lines=lines, run_id=run_id, at=at: events.append(
                    c, thread_id, [events_line(kind, data, run_id, at) for kind, data in lines]
                )
            )
        file = self.settings.workspaces / thread_id / NOTES
        file.parent.mkdir(parents=True)
        file.write_text("# Notes\n")
        about = {"project_id": thread_id, "path": NOTES, "bytes": 8, "sha256": "a" * 64, "written_at": self.now}
        self._insert(files, about)
        self.database.write(
            lambda c: c.execute(
                threads.update().where(threads.c.id == thread_id).values(run_id=run_id, runs=3, active_at=self.now)
            )
        )
        signal = {
            "run_id": run_id,
            "task_id": None,
            "project_id": thread_id,
            "expires_at": FAR,
            "created_at": self.now,
            "title": "Ada Quist wants to use code.execute",
        }
        self.signal_ids.append(self.busy.signal("yearly", **signal))
        return thread_id

    def _rest(self) -> None:
        settings = self.settings
        self.database.write(self._remember)
        knowledge.add(
            settings,
            settings.owner,
            knowledge.Source(
                "handbook/opening-hours.md", "# Opening hours\n\nThe office is open from nine to five.", "Handbook"
            ),
        )
        knowledge.add(
            settings,
            settings.owner,
            knowledge.Source("prices.csv", "item,price\nlamp,20", None),
            agent_id=self.agent_id,
        )
        connections.save(
            settings,
            settings.owner,
            "weather",
            {"kind": "http", "hosts": ["api.example.com"], "secret": "not-to-be-seen"},
        )
        for number, (title, status, kind) in enumerate(
            (
                ("Every morning", "active", "prompt"),
                ("A report on Mondays", "paused", "generator"),
                ("Call the meter", "failed", "skill"),
                ("Once, in May", "done", "prompt"),
            )
        ):
            action: dict[str, Any] = {"kind": kind} | {
                "prompt": {"text": "Read the figures."},
                "generator": {"generatorId": self.generator_id, "inputs": {"city": "Oslo"}},
                "skill": {"skill": "http.json", "input": {"url": "https://api.example.com/meter"}},
            }[kind]
            row = {
                "id": new_id(),
                "owner_id": settings.owner,
                "title": title,
                "kind": "cron",
                "spec": "0 7 * * *",
                "timezone": "UTC",
                "action": action,
                "status": status,
                "runs": 12 * number,
                "reason": "it failed three times in a row" if status == "failed" else None,
                "created_at": self.now - 9 * 24 * 60 * MINUTE,
                "next_run_at": self.now + 5 * 60 * MINUTE if status == "active" else None,
            }
            self._insert(schedules, row)
        for number, (silent, active) in enumerate(((0, 3), (2 * MINUTE, 1))):
            row = {
                "id": new_id(),
                "host": f"worker-{number + 1}.example",
                "pid": 4_000 + number,
                "slots": 8,
                "queues": ["deep", "mail"] if number else None,
                "active": active,
                "started_at": self.now - 300 * MINUTE,
                "seen_at": self.now + 5 * MINUTE - silent * 5,
            }
            self._insert(workers, row)

    def _remember(self, connection: Any) -> None:
        space = memories.Space(self.settings.owner, "owner")
        shared: dict[str, Any] = {
            "project_id": None,
            "being_id": None,
            "source_task_id": None,
            "key": None,
            "call_key": None,
        }
        for content, kind, untrusted in (
            ("Reports are due on Fridays before noon.", "fact", False),
            (
                "Prefers charts without a grid, in two colours, and a sentence below each that says what to see.",
                "preference",
                False,
            ),
            ("The site says the office closes early in December.", "fact", True),
        ):
            row = shared | {"content": content, "kind": kind, "untrusted": untrusted}
            memories.keep(connection, space, row | {"tags": ["report", "style"], "importance": 0.7}, None)
        pinned = {"key": "name", "text": "Answer in metric units.", "untrusted": False, "project_id": None}
        pins.put(connection, self.settings.owner, "owner", pinned, most=9)

    def _insert(self, table: Any, row: dict[str, Any]) -> None:
        self.database.write(lambda connection: connection.execute(insert(table).values(row)))


def events_line(kind: str, data: dict[str, Any], run_id: str, at: int) -> Any:
    from orchestrator.records import Event

    return Event(kind, dict(data), run_id=run_id, agent_id="ada", at=at)


def _without_id(body: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key != "id"}
