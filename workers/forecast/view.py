"""The forecast of a project as JSON: what `officina plan --json` prints."""

from dataclasses import asdict
from decimal import Decimal

from orchestrator import planning
from orchestrator.known import reusable_agents, usable
from orchestrator.planner import planner
from orchestrator.planning import PlanRows
from orchestrator.producer import MICRO, read
from orchestrator.settings import Settings
from registry.agents import AgentDefinition, Budget
from registry.base import Json
from registry.packs import PACKS
from registry.permissions import Mode
from registry.plans import PlannedTask
from registry.projects.reading import Project
from registry.skills import catalogue
from workers.engine.budget import DEFAULT
from workers.engine.toolset import Toolset
from workers.forecast import costs, gates
from workers.forecast.costs import Cost
from workers.forecast.gates import Offer
from workers.models.choose import stands_in
from workers.models.tokens import of_text

#: Who plays the model where none is configured and no stand-in was asked for: submit would refuse.
NOBODY = "nobody"


class Forecast:
    """A project, read and checked as for a submit, and looked at task by task. Nothing is written."""

    def __init__(self, source: str, settings: Settings, *, mode: Mode | None = None, rehearse: bool = False) -> None:
        """Reads the project.

        Raises:
            WrongUse: with every fault, as a submit of the same file would.
        """
        skills = catalogue.build()
        self._settings = settings
        self._offer = Offer(skills, PACKS)
        self._project, self._named = read(source, settings, skills)
        self._mode = mode or self._project.file.mode
        self._registered = usable(settings, skills)
        self._player = _player(settings, self._project, rehearse=rehearse)
        cap = self._project.file.budget.max_cost_usd
        self._cap = int((Decimal(str(cap)) if cap is not None else settings.project_cost_usd) * MICRO)

    def view(self) -> dict[str, Json]:
        """The whole forecast; money in USD, null where it cannot be known."""
        file = self._project.file
        if not file.tasks:
            return self._whole([], [_member(planner(self._offer.catalogue), [])], self._planning(), planned=False)
        saved = reusable_agents(self._settings)
        rows = planning.rows_of("", self._settings.owner, file.tasks, self._named, self._registered, saved=saved)
        found = [
            self._task(task, AgentDefinition.model_validate(rows.bodies[row["definition_digest"]]))
            for task, row in zip(file.tasks, rows.tasks, strict=True)
        ]
        total = costs.total([cost for _, cost in found], self._cap)
        return self._whole([task for task, _ in found], _team(rows), total, planned=True)

    def _whole(
        self, tasks: list[dict[str, Json]], team: list[dict[str, Json]], total: Cost, *, planned: bool
    ) -> dict[str, Json]:
        file = self._project.file
        limits = {
            "maxCostUsd": self._cap / MICRO,
            "maxParallel": file.budget.max_parallel or self._settings.limits.parallel_tasks,
        }
        return {
            "title": file.title,
            "planned": planned,
            "player": self._player,
            "mode": self._mode,
            "approvals": file.approvals,
            "limits": limits,
            "costUsd": _usd(total),
            "team": team,
            "tasks": tasks,
        }

    def _planning(self) -> Cost:
        """Of a brief only the planner's part can be told; the tasks it will make are unknown."""
        agent = planner(self._offer.catalogue)
        own = self._cost_of(agent, gates.run_set(agent, self._offer), None)
        if self._player == "stand-in":
            return own
        return Cost(own.low, None, self._cap if own.worst is not None else None, "the project's maxCostUsd")

    def _task(self, task: PlannedTask, agent: AgentDefinition) -> tuple[dict[str, Json], Cost]:
        tools = gates.run_set(agent, self._offer)
        cost = self._cost_of(agent, tools, task)
        found = gates.judge(agent, tools, self._project.file.permissions, self._mode)
        view: dict[str, Json] = {
            "key": task.key,
            "title": task.title,
            "role": task.role,
            "agent": agent.id,
            "tier": agent.tier,
            "dependsOn": list(task.depends_on),
            "skills": sorted(tools.names),
            "asks": [asdict(gated) for gated in found.asks],
            "mayAsk": [asdict(gated) for gated in found.may_ask],
            "denied": [asdict(gated) for gated in found.denied],
            "stops": [asdict(stop) for stop in found.stops],
            "limits": self._limits(task, agent),
            "costUsd": _usd(cost),
            "unknown": self._unknown(agent, tools, cost),
        }
        return view, cost

    def _cost_of(self, agent: AgentDefinition, tools: Toolset, task: PlannedTask | None) -> Cost:
        if self._player == "stand-in":
            return costs.FREE
        if self._player == NOBODY:
            return costs.UNKNOWN
        if task is None:
            told = of_text(self._project.file.brief or "")
            return costs.of_agent(self._settings, agent, tools, told, self._cap)
        return costs.of_task(self._settings, task, agent, tools, self._cap)

    def _limits(self, task: PlannedTask, agent: AgentDefinition) -> dict[str, Json]:
        team_run = agent.graph is None
        budget = agent.budget or (DEFAULT if team_run else Budget())
        limits = self._settings.limits
        return {
            "turns": limits.agent_turns if team_run else None,
            "maxSteps": budget.max_steps,
            "maxTokens": budget.max_tokens,
            "deadlineMs": budget.deadline_ms or (round(limits.task_deadline_s * 1000) if team_run else None),
            "policy": budget.policy,
            "retries": task.retries,
        }

    def _unknown(self, agent: AgentDefinition, tools: Toolset, cost: Cost) -> list[str]:
        """What the sums of a task leave out, in words."""
        found = []
        if self._player == "model" and cost.worst is None:
            found.append(f"what a model call costs: no model with a known price stands behind tier {agent.tier}")
        if costs.delegates(agent):
            found.append("how many child runs it starts: low and likely leave them out")
        paid = sorted(skill.name for skill in tools.registry if skill.cost_bearing)
        if paid and self._player == "model":
            found.append(f"what {', '.join(paid)} will cost: low and likely leave it out")
        return found


def _player(settings: Settings, project: Project, *, rehearse: bool) -> str:
    if stands_in(settings, script=project.script, rehearsal=rehearse):
        return "stand-in"
    return "model" if settings.has_model else NOBODY


def _usd(cost: Cost) -> dict[str, Json]:
    sums = {"low": cost.low, "likely": cost.likely, "worst": cost.worst}
    told: dict[str, Json] = {name: None if micro is None else micro / MICRO for name, micro in sums.items()}
    return told | {"bound": cost.bound}


def _team(rows: PlanRows) -> list[dict[str, Json]]:
    found = []
    for member in rows.members:
        agent = AgentDefinition.model_validate(rows.bodies[member["definition_digest"]])
        found.append(_member(agent, [task["key"] for task in rows.tasks if task["agent_id"] == agent.id]))
    return found


def _member(agent: AgentDefinition, tasks: list[str]) -> dict[str, Json]:
    return {"id": agent.id, "name": agent.name, "role": agent.role, "tier": agent.tier, "tasks": tasks}
