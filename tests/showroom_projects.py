"""The projects of the showroom: one in the middle of its work, one that has ended, one whose plan waits."""

from collections.abc import Iterator
from typing import Any, Final

from orchestrator.settings import Settings
from registry.ids import new_id
from tests.rows import Project

FAR: Final = 4_000_000_000_000
SECOND: Final = 1_000
MINUTE: Final = 60 * SECOND
LONG: Final = "Compare the quarterly precipitation of the northern and the southern stations and say what surprises you"

FORM: Final = {
    "type": "object",
    "required": ["why", "share"],
    "properties": {
        "why": {"type": "string", "title": "Why so", "description": "One sentence for whoever reads it later"},
        "share": {"type": "integer", "title": "Percent of the budget", "minimum": 3},
        "tone": {"enum": ["plain", "warm"], "title": "Tone"},
        "parts": {"type": "array", "title": "Parts", "items": {"enum": ["summary", "tables", "sources"]}},
        "public": {"type": "boolean", "title": "Is it for the public"},
    },
}


class Projects:
    """Makes them, as long ago as they should have begun."""

    def __init__(self, settings: Settings, now: int) -> None:
        self.settings, self.now = settings, now
        self._later: list[tuple[int, str, dict[str, Any], str]] = []
        self.signal_ids: list[str] = []
        self.busy = self._busy()
        self.done = self._done()
        self.planned = self._planned()

    def _busy(self) -> Project:
        """A project in the middle of its work, with a task in every state."""
        ago = self.now - 9 * MINUTE
        shown = {"cost_micro": 41_200, "open_tasks": 9, "created_at": ago, "brief": "What the weather did.\n" * 3}
        made_id = new_id()
        made = Project(self.settings, id=made_id, workspace=f"workspace-of-{made_id}", **shown)
        made.defaults["created_at"] = ago
        ran = {"run": {"started_at": ago + 2 * SECOND, "created_at": ago, "ended_at": ago + 40 * SECOND, "steps": 6}}
        done = {"started_at": ago, "ended_at": ago + 40 * SECOND, "cost_micro": 8_100, "deliverables": ["profile.md"]}
        made.task("profile", "completed", title="Profile the data", output="1,461 days, no gaps.", **done, **ran)
        began: dict[str, Any] = {"started_at": ago + 45 * SECOND}
        made.task("monthly", "running", title="Monthly figures", after=["profile"], **began)
        made.task("yearly", "needs_input", title="Yearly figures", after=["profile"], **began)
        parked = {"waiting_on": "children", "steps": 9, "started_at": ago + 45 * SECOND}
        made.task("stations", "waiting", title="Ask every station", after=["profile"], run=parked, **began)
        asleep = {"waiting_on": "timer", "due_at": self.now + 7 * MINUTE, "started_at": ago + 45 * SECOND}
        made.task("evening", "waiting", title="Read the evening figures", after=["profile"], run=asleep, **began)
        error = {"code": "model_failed", "message": "the model did not answer after 3 attempts", "node": "think"}
        retried = {"attempt": 2, "error": error, "ended_at": ago + 4 * MINUTE, "started_at": ago + 3 * MINUTE}
        failed = {"error": error, "ended_at": ago + 4 * MINUTE, "cost_micro": 2_000, "attempt": 2, "run": retried}
        made.task("radar", "failed", title="Read the radar pictures", after=["profile"], **began, **failed)
        made.run("radar", "failed", attempt=1, error=error, ended_at=ago + 2 * MINUTE, started_at=ago + MINUTE)
        made.task(
            "overlay", "skipped", title="Lay radar over rain", after=["radar"], reason="Read the radar pictures failed"
        )
        made.task("chart", title=LONG, after=["monthly", "yearly", "stations"], deliverables=["chart.png"])
        made.task("brief", title="Write the brief", after=["chart", "evening"], deliverables=["brief.md"])
        made.task("review", "queued", title="Review and finish", after=["profile"])
        self._children(made, ago)
        self._trace(made, ago)
        self.signal_ids = list(self._signals(made, ago))
        unknown = {"status": "done", "outcome": "unknown", "name": "email.send", "node_id": "tools"}
        made.call(
            "monthly",
            "call-9",
            **unknown,
            input={"to": "ada@example.com", "subject": "Figures", "body": "Here they are."},
        )
        made.file("profile.md", 1_830, task_id=made.task_ids["profile"], skill="files.write")
        made.file("inputs/seattle-weather.csv", 48_219)
        made.file("drafts/" + "a-very-long-name-without-any-blank-in-it-" * 4 + ".md", 12)
        return made

    def _children(self, made: Project, ago: int) -> None:
        """A fan-out over items, some of which asked others."""
        parent = made.run_ids["stations"]
        shared: dict[str, Any] = {"parent_id": parent, "parent_step": 3, "kind": "item", "depth": 1, "steps": 4}
        states = ["completed"] * 11 + ["failed"] + ["running"] * 3 + ["queued"] * 5
        for position, status in enumerate(states):
            begun = ago + (50 + 4 * position) * SECOND
            times: dict[str, Any] = {"created_at": ago + 48 * SECOND}
            if status != "queued":
                times |= {"started_at": begun}
            if status in ("completed", "failed"):
                times |= {"ended_at": begun + (20 + 7 * position) * SECOND, "cost_micro": 300 + position}
            error = {"error": {"code": "timed_out", "message": "it took too long"}} if status == "failed" else {}
            item = {"item": {"station": f"Station {position + 1}", "kind": "rain"}, "agent_name": "Station reader"}
            child = made.run("stations", status, position=position, **shared, **times, **error, **item)
            if status != "queued":
                self._later.append((begun, "run.started", {"attempt": 1, "depth": 1}, child))
            if position == 12:
                below = {"parent_id": child, "parent_step": 2, "kind": "spawn", "depth": 2, "position": 0}
                found = {"agent_name": "Gap finder", "created_at": begun + SECOND, "started_at": begun + 2 * SECOND}
                inner = made.run("stations", "running", **below, **found)
                self._later.append((begun + 2 * SECOND, "run.started", {"attempt": 1, "depth": 2}, inner))

    def _trace(self, made: Project, ago: int) -> None:
        def told(after: float, kind: str, data: dict[str, Any], key: str) -> None:
            at = ago + int(after * SECOND)
            for line in [line for line in self._later if line[0] <= at]:
                self._later.remove(line)
                made.event(line[1], line[2], "stations", at=line[0], run_id=line[3])
            made.event(kind, data, key, at=at)

        for key, begun in (("profile", 2), ("monthly", 46), ("yearly", 46), ("stations", 46), ("evening", 50)):
            told(begun, "run.started", {"attempt": 1, "depth": 0}, key)
        usage = {"totalTokens": 1_830}
        thought = {
            "model": "large-1",
            "text": "Look at the table first.",
            "toolCount": 1,
            "usage": usage,
            "costUsd": 0.0081,
        }
        told(4, "think", thought | {"durationMs": 2_400}, "profile")
        told(5, "tool.call", {"toolCallId": "c1", "name": "files.read", "input": {"path": "in.csv"}}, "profile")
        told(
            6,
            "tool.result",
            {"toolCallId": "c1", "name": "files.read", "outcome": "ok", "durationMs": 12, "output": "date,rain"},
            "profile",
        )
        told(
            7,
            "tool.result",
            {
                "toolCallId": "c2",
                "name": "web.fetch",
                "outcome": "error",
                "isError": True,
                "code": "http_404",
                "durationMs": 90,
                "output": "not found",
            },
            "profile",
        )
        told(9, "message", {"role": "assistant", "text": "1,461 days, no gaps."}, "profile")
        told(12, "run.parked", {"status": "waiting", "on": "backoff"}, "profile")
        told(20, "run.resumed", {"by": "backoff"}, "profile")
        told(38, "file.written", {"path": "profile.md", "bytes": 1_830}, "profile")
        told(40, "run.completed", {"steps": 6, "tokens": 1_830, "costUsd": 0.0081}, "profile")
        told(
            48,
            "think",
            {"model": "stand-in", "text": "", "toolCount": 2, "usage": {}, "costUsd": 0, "durationMs": 3},
            "monthly",
        )
        told(60, "run.parked", {"status": "needs_input", "on": "signals"}, "yearly")
        told(75, "run.parked", {"status": "waiting", "on": "children"}, "stations")
        told(80, "run.parked", {"status": "waiting", "on": "timer", "until": self.now + 7 * MINUTE}, "evening")
        told(100, "run.parked", {"status": "waiting", "on": "gate"}, "monthly")
        told(130, "run.resumed", {"by": "answer"}, "monthly")
        told(170, "run.started", {"attempt": 2, "depth": 0}, "monthly")
        told(200, "run.started", {"attempt": 2, "depth": 0}, "radar")
        told(
            240, "run.failed", {"code": "model_failed", "message": "the model did not answer after 3 attempts"}, "radar"
        )
        told(241, "task.status", {"status": "failed", "from": "running", "reason": "model_failed"}, "radar")
        told(300, "tool.call", {"toolCallId": "c8", "name": "code.execute", "input": {"code": "print(1)"}}, "monthly")

    def _signals(self, made: Project, ago: int) -> Iterator[str]:
        plain: dict[str, Any] = {
            "action": None,
            "digest": None,
            "options": [],
            "expires_at": FAR,
            "created_at": ago + MINUTE,
        }
        yield made.signal("yearly", expires_at=self.now + 40 * MINUTE, created_at=ago + MINUTE)
        options = [{"id": "blue", "label": "Blue"}, {"id": "red", "label": "Red"}, {"id": "any", "label": "Either"}]
        asked = {
            "type": "object",
            "required": ["optionIds"],
            "properties": {
                "optionIds": {"type": "array", "maxItems": 1, "items": {"enum": ["blue", "red", "any"]}},
                "text": {"type": "string"},
            },
        }
        yield made.signal(
            "monthly",
            **plain
            | {
                "kind": "question",
                "title": "Which colour has the chart?",
                "reason": None,
                "options": options,
                "schema": asked,
            },
        )
        yield made.signal(
            "monthly",
            **plain
            | {
                "kind": "interrupt",
                "title": "How shall the report read?",
                "reason": "The brief does not say",
                "schema": FORM,
            },
        )
        yield made.signal(
            "monthly",
            **plain
            | {
                "kind": "gate",
                "title": "Wait for the evening figures?",
                "schema": {"type": "object"},
                "body": "They come at eight.",
            },
        )
        money = [{"id": "continue", "label": "Continue"}, {"id": "stop", "label": "Stop"}]
        yield made.signal(
            "stations",
            **plain
            | {"kind": "budget", "title": "The budget of 0.50 USD is used up", "options": money, "priority": "high"},
        )
        for kind in ("notice", "alert", "result"):
            yield made.signal(
                "profile",
                **plain
                | {
                    "kind": kind,
                    "title": f"A {kind} from the profile",
                    "reason": None,
                    "body": "Two lines\nof words.",
                    "run_id": None,
                },
            )
        over = {"answered_by": self.settings.owner, "answered_at": ago + 2 * MINUTE, "status": "answered"}
        yield made.signal(
            "profile", **over, answer={"approved": True}, execution="done", result={"stdout": "42\n"}, created_at=ago
        )
        yield made.signal("profile", **over, rejected=True, answer={"approved": False}, created_at=ago)
        said = plain | over | {"kind": "interrupt", "title": "How shall the summary read?", "schema": FORM}
        yield made.signal("profile", **said | {"answer": {"why": "It is short", "share": 5}})
        yield made.signal("profile", status="expired", created_at=ago)

    def _done(self) -> Project:
        """A large project that has ended: sixty tasks in eight layers."""
        ago = self.now - 26 * 60 * MINUTE
        made = Project(
            self.settings,
            "Sixty stations, one report: " + LONG,
            status="partial",
            cost_micro=1_240_000,
            created_at=ago,
            ended_at=ago + 50 * MINUTE,
            completed_tasks=57,
        )
        made.defaults["created_at"] = ago
        previous: list[str] = []
        for layer, many in enumerate((1, 6, 12, 12, 12, 10, 6, 1)):
            keys = [f"layer-{layer}-task-{number}" for number in range(many)]
            for number, key in enumerate(keys):
                after = previous[number % len(previous) :][:1] if previous and many > 1 else previous
                begun = ago + (layer * 6 + number % 5) * MINUTE
                lost = layer == 3 and number in (4, 9)
                times: dict[str, Any] = {"started_at": begun, "ended_at": begun + (90 + 13 * number) * SECOND}
                made.task(
                    key,
                    "failed" if lost else "completed",
                    after=after,
                    cost_micro=20_000 - 900 * number,
                    title=f"{LONG[: 30 + 9 * (number % 8)]} {layer}.{number}",
                    run=times
                    | {
                        "cost_micro": 20_000,
                        "tokens": 5_200,
                        "steps": 7,
                        "agent_name": ("Ada Quist", "Bo Lund", "Cleo Marsh")[number % 3],
                    },
                    error={"code": "timed_out", "message": "it took too long"} if lost else None,
                    **times,
                )
                made.event("run.started", {"attempt": 1, "depth": 0}, key, at=begun)
            previous = keys
        for model, usd in (("large-1", 0.04), ("small-1", 0.002), ("unpriced-1", None)):
            for _ in range(5):
                made.event(
                    "think",
                    {
                        "model": model,
                        "text": "",
                        "toolCount": 0,
                        "usage": {"totalTokens": 2_400},
                        "costUsd": usd,
                        "durationMs": 1_900,
                    },
                    "layer-0-task-0",
                    at=ago,
                )
        return made

    def _planned(self) -> str:
        """A project whose plan waits for its start."""
        plan = {
            "summary": "Three steps, one page.",
            "tasks": [
                {"key": k, "title": k.title(), "role": "analyst", "instruction": LONG, "dependsOn": d}
                for k, d in (("read", []), ("count", ["read"]), ("write", ["count"]))
            ],
        }
        return Project(
            self.settings, "A plan to look at", status="planning", held=True, plan=plan, created_at=self.now - MINUTE
        ).id
