"""One agent in this process, from its definition and a script to a report of everything it did (spec: engine 22)."""

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from orchestrator.limits import Limits
from orchestrator.notify import Silence
from orchestrator.ports.agents import StoredAgents
from orchestrator.ports.documents import StoredDocuments
from orchestrator.ports.notebook import notebook
from orchestrator.ports.scheduler import StoredScheduler
from orchestrator.ports.threads import StoredThreads
from orchestrator.ports.voices import Rooms
from orchestrator.ports.webhooks import StoredWebhooks
from orchestrator.records import Event, RunRecord
from orchestrator.sections import Keeping
from orchestrator.store import agents as moves
from orchestrator.store import beginnings, events, signals
from orchestrator.store.memory import MemoryDatabase
from orchestrator.store.tables import runs as runs_table
from orchestrator.store.tables import signals as signals_table
from orchestrator.store_journal import StoreJournal
from orchestrator.workspaces.jail import JailedWorkspace
from registry.agents import AgentDefinition
from registry.base import Json
from registry.graph.validation import PackCard, Registries, validate
from registry.jsontext import digest
from registry.packs import Pack
from registry.playbooks import NONE, Playbook
from registry.skills.context import Execution
from registry.skills.jobs import Jobs
from registry.skills.registry import SkillRegistry
from workers.engine.services import NoPlugins, Plugins, Services, Serving, no_servers
from workers.engine.targets import Target, of_row
from workers.inprocess.conductor import Conductor
from workers.inprocess.script import Script, stub
from workers.models.scripted import ScriptedModel

if TYPE_CHECKING:
    from orchestrator.vault import Vault

#: The root run of every command.
RUN_ID = "run"


def run(
    definition: dict[str, Json],
    script: Script,
    packs: Mapping[str, Pack],
    limits: Limits,
    documents: Mapping[str, Playbook] = NONE,
    mcp: Serving = no_servers,
    plugins: Plugins | None = None,
) -> dict[str, Json]:
    """Runs the agent to its end, or until it waits for an answer the script does not have."""
    if faults := _errors(definition):
        return _refused(faults)
    return stage(definition, script, packs, limits, documents, mcp, plugins).play()


def stage(
    definition: dict[str, Json],
    script: Script,
    packs: Mapping[str, Pack],
    limits: Limits,
    documents: Mapping[str, Playbook] = NONE,
    mcp: Serving = no_servers,
    plugins: Plugins | None = None,
) -> "Stage":
    """Everything one run needs, before it begins."""
    database, model, room = MemoryDatabase(), ScriptedModel(script.model), Room()
    outside = [tool.name for pack in packs.values() for tool in pack.tools if tool.open_world]
    agents = {str(definition.get("id", "")): definition, **script.agents}
    rooms = Rooms(presets=lambda: _speakers(agents))
    services = Services(
        catalogue=SkillRegistry(),
        packs=packs,
        journal=StoreJournal(database, lease_ms=round(limits.lease_s * 1000), notifier=Silence()),
        model=lambda _run: model,
        limits=limits,
        workspace=lambda _run: room.workspace,
        sandbox=lambda _run: WhenNeeded(),
        jobs=lambda _run: room.jobs,
        leave=room.leave,
        notebook=notebook(database, Keeping(), outside=outside),
        extra_tools=[stub(name, spec) for name, spec in script.tools.items()],
        documents=lambda _run: documents,
        kept_documents=StoredDocuments(database),
        mcp=mcp,
        plugins=plugins or NoPlugins(),
        check_definition=lambda definition, _run: _errors(definition),
        agents=StoredAgents(database, lambda: _known(packs, script, limits, documents), lambda: _names(agents)),
        threads=StoredThreads(database),
        scheduler=StoredScheduler(database, rooms),
        webhooks=StoredWebhooks(_vault, database, rooms),
        targets=lambda run: [*(_target(id_, body) for id_, body in agents.items()), *_made(database, run)],
        now_ms=database.now_ms,
    )
    return Stage(definition, script, database, services)


@dataclass
class Stage:
    """A run about to begin, and what stands around it; a part can be replaced before it plays."""

    definition: dict[str, Json]
    script: Script
    database: MemoryDatabase
    services: Services

    def play(self) -> dict[str, Json]:
        """Carries the run as far as it goes; returns the report of `graph run`."""
        self.begin()
        conductor = Conductor(self.database, self.services, RUN_ID, list(self.script.answers))
        try:
            refused = conductor.carry_on()
        finally:
            self.services.leave()
        return self._report(conductor, refused)

    def begin(self) -> None:
        """Writes the run, `queued`."""
        begins = self.script
        self.database.write(
            lambda c: beginnings.alone(
                c,
                RUN_ID,
                self.definition,
                given=begins.input,
                state=begins.start_state,
                mode=begins.mode,
                permissions=begins.permissions,
            )
        )

    def _report(self, conductor: Conductor, refused: str | None) -> dict[str, Json]:
        session = conductor.root
        asked = select(signals_table).where(signals_table.c.run_id == RUN_ID)
        with self.database.read() as connection:
            row = connection.execute(select(runs_table).where(runs_table.c.id == RUN_ID)).one()
            last = events.last(connection, row.project_id)
            lines = events.after(connection, row.project_id, 0, limit=last)
            raised = connection.execute(asked.order_by(signals_table.c.created_at, signals_table.c.id)).all()
        state = dict(session.state) if session is not None else {}
        return {
            "status": row.status,
            "code": refused or (row.error or {}).get("code"),
            "output": session.final if session is not None and row.status == "completed" else None,
            "messages": state.pop("messages", []),
            "state": state,
            "steps": row.steps,
            "tokens": row.tokens,
            "events": [line.to_json() for line in lines],
            "interrupts": [_seen(signal) for signal in raised],
        }


class WhenNeeded:
    """The sandbox of this machine, looked for when a hook is a command: most scripts never do."""

    def execute(self, argv: list[str], **how: Any) -> Execution:
        from workers.sandbox.process import find_sandbox

        return find_sandbox().execute(argv, **how)


def _made(database: MemoryDatabase, run: RunRecord) -> list[Target]:
    """Agents that the run itself has written."""
    with database.read() as connection:
        return [of_row(row) for row in moves.at_hand(connection, run.owner_id, run.project_id)]


def _known(packs: Mapping[str, Pack], script: Script, limits: Limits, documents: Mapping[str, Playbook]) -> Registries:
    """What an agent that the run writes may name: its packs and documents, and no catalogue."""
    return Registries(
        skills=frozenset(),
        documents=frozenset(documents),
        packs={name: PackCard(pack.tool_names, pack.spec_fault) for name, pack in packs.items()},
        plugins={},
        mcp_servers=frozenset(),
        extra_tools=frozenset(script.tools),
        limits=limits,
    )


def _names(agents: Mapping[str, dict[str, Json]]) -> list[str]:
    return [str(body.get("name", agent_id)) for agent_id, body in agents.items()]


def _speakers(agents: Mapping[str, dict[str, Json]]) -> dict[str, AgentDefinition]:
    """The agents of the command that could speak in a thread: those without a fault."""
    return {
        id_: AgentDefinition.model_validate({"id": id_, **body}) for id_, body in agents.items() if not _errors(body)
    }


@cache
def _vault() -> "Vault":
    from orchestrator.vault import Vault

    return Vault(None)


class Room:
    """An empty workspace and its jobs for one command, made when the first call is."""

    def __init__(self) -> None:
        self._leaving: list[Callable[[], object]] = []

    @cached_property
    def workspace(self) -> JailedWorkspace:
        folder = tempfile.TemporaryDirectory(prefix="officina-graph-run-", ignore_cleanup_errors=True)
        self._leaving.insert(0, folder.cleanup)
        return JailedWorkspace(Path(folder.name))

    @cached_property
    def jobs(self) -> Jobs:
        from workers.sandbox.jobs import JobKeeper
        from workers.sandbox.process import find_sandbox

        keeper = JobKeeper(find_sandbox)
        jobs = keeper.of(self.workspace.root)
        self._leaving.insert(0, keeper.close)
        return jobs

    def leave(self) -> None:
        """Ends the jobs, then removes the folder."""
        for step in self._leaving:
            step()
        self._leaving.clear()


def _target(agent_id: str, body: dict[str, Json]) -> Target:
    return Target(agent_id, str(body.get("name", agent_id)), digest=digest(body), definition=body)


def _seen(signal: Any) -> dict[str, Json]:
    times: dict[str, Json] = {"createdAt": signal.created_at, "expiresAt": signal.expires_at}
    return signals.record(signal).to_json(RUN_ID) | times


def _refused(faults: list[str]) -> dict[str, Json]:
    """The report of an agent that cannot be run at all."""
    data = {"code": "agent_invalid", "message": "; ".join(faults)}
    nothing: dict[str, Json] = {"output": None, "state": {}, "messages": [], "steps": 0, "tokens": 0, "interrupts": []}
    failed = Event("run.failed", data, run_id=RUN_ID, seq=1).to_json()
    return {"status": "failed", "code": "agent_invalid", "events": [failed]} | nothing


def _errors(definition: dict[str, Json]) -> list[str]:
    return [f"{f.code}: {f.message}" for f in validate(definition) if f.severity == "error"]
