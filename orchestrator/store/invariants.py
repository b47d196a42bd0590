"""What holds in the rows at every moment, one SQL query a rule: each gives the rows that break it (design, 4).

A move keeps these rules in its own transaction, so that one statement never sees them broken, however busy the system
is. The few about time allow `grace` for the clock to do its work. `officina doctor --deep` prints what they find, and
every fault test ends with them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, select, text

from orchestrator.store import thread_rules
from orchestrator.store.database import now_ms
from orchestrator.store.rules import Invariant
from registry.base import Json

#: Milliseconds a row may be late before that is a fault: two leases, in which any worker's clock would have moved it.
GRACE_MS: Final = 60_000
#: Rows one rule names at most; more of the same say nothing new.
MOST: Final = 50

_RUN_ENDED: Final = "('completed', 'failed', 'cancelled')"
_TASK_ENDED: Final = "('completed', 'failed', 'skipped', 'cancelled')"
_PROJECT_ENDED: Final = "('completed', 'partial', 'failed', 'cancelled')"
#: Kinds of signals that a run waits for.
_ASKS: Final = "('decision', 'question', 'interrupt', 'gate', 'budget')"
#: States in which a task has a root run under way.
#: Projects whose history was taken away because it was old.
_PRUNED: Final = "(SELECT id FROM projects WHERE history_pruned_at IS NOT NULL)"
_TASK_LIVE: Final = "('queued', 'running', 'needs_input', 'waiting')"
#: Kinds of runs that are nobody's children.
_ROOTS: Final = "('root', 'plan', 'thread', 'compact')"
#: The seven that act outside Officina whatever their input; a plugin's are seen by the rules about grants.
_WORLD: Final = (
    "('email.send', 'telegram.send', 'whatsapp.send', 'http.request', 'http.json', 'code.execute', "
    "'code.scaffold_react_node')"
)


@dataclass(frozen=True)
class Broken:
    """A row that breaks a rule."""

    rule: str
    says: str
    id: str
    facts: Mapping[str, Json]

    def __str__(self) -> str:
        facts = ", ".join(f"{name} {value}" for name, value in self.facts.items())
        return f"{self.rule}: {self.id}" + (f" ({facts})" if facts else "")

    def to_json(self) -> dict[str, Json]:
        return {"rule": self.rule, "says": self.says, "id": self.id, "facts": dict(self.facts)}


def broken(connection: Connection, grace_ms: int = GRACE_MS) -> list[Broken]:
    """Every row that breaks a rule, at most `MOST` for each; an empty list is a sound database.

    Args:
        grace_ms: how late a row may be (leases, timers, answers nobody acted on) before that is a fault.
    """
    return [row for rule in INVARIANTS for row in _breaking(connection, rule, grace_ms)]


def _breaking(connection: Connection, rule: Invariant, grace_ms: int) -> Iterator[Broken]:
    query, values = text(f"{rule.sql} LIMIT {MOST}"), {}
    if ":late" in rule.sql:
        values["late"] = int(connection.execute(select(now_ms())).scalar_one()) - grace_ms
    for row in connection.execute(query, values):
        facts: dict[str, Any] = dict(row._mapping)
        yield Broken(rule.name, rule.says, str(facts.pop("id")), facts)


_RUNS: Final = (
    Invariant(
        "lease_over",
        "no run is running under a lease that ended long ago",
        "SELECT id, worker_id, due_at FROM runs WHERE status = 'running' AND (due_at IS NULL OR due_at < :late)",
    ),
    Invariant(
        "unowned",
        "a running run has a worker and a fence",
        "SELECT id, worker_id, fence FROM runs WHERE status = 'running' AND (worker_id IS NULL OR fence < 1)",
    ),
    Invariant(
        "unseen",
        "the clock looks at every queued run, and at every wait that has a time",
        "SELECT id, status, waiting_on FROM runs WHERE due_at IS NULL AND "
        "(status = 'queued' OR (status = 'waiting' AND waiting_on IN ('timer', 'backoff')))",
    ),
    Invariant(
        "timer_over",
        "no timer is long past its time",
        "SELECT id, waiting_on, due_at FROM runs WHERE status = 'waiting' AND due_at < :late",
    ),
    Invariant(
        "park_held",
        "a parked or queued run holds no worker",
        "SELECT id, status, worker_id FROM runs "
        "WHERE status IN ('queued', 'needs_input', 'waiting') AND worker_id IS NOT NULL",
    ),
    Invariant(
        "wait_unnamed",
        "a waiting run says what it waits for, and no other run does",
        "SELECT id, status, waiting_on FROM runs WHERE (status = 'waiting' AND (waiting_on IS NULL OR waiting_on "
        "NOT IN ('timer', 'gate', 'children', 'backoff', 'turn'))) OR (status = 'queued' AND waiting_on IS NOT NULL) "
        f"OR (status IN {_RUN_ENDED} AND (waiting_on IS NOT NULL OR due_at IS NOT NULL))",
    ),
    Invariant(
        "asks_nobody",
        "a run that needs input has an open question",
        "SELECT r.id FROM runs r WHERE r.status = 'needs_input' AND NOT EXISTS (SELECT 1 FROM signals s "
        f"WHERE s.run_id = r.id AND s.status = 'open' AND NOT s.carry_on AND s.kind IN {_ASKS})",
    ),
    Invariant(
        "answer_unheard",
        "no run stays parked on a question that was answered or has expired",
        "SELECT r.id, s.id AS signal, s.status FROM runs r JOIN signals s ON s.run_id = r.id "
        "WHERE (r.status = 'needs_input' OR (r.status = 'waiting' AND r.waiting_on = 'gate')) AND s.status <> 'open' "
        f"AND s.execution = 'none' AND NOT s.carry_on AND s.kind IN {_ASKS} AND s.dedupe_key IS NULL",
    ),
    Invariant(
        "children_over",
        "no parent waits for children that have all ended",
        "SELECT r.id FROM runs r WHERE r.status = 'waiting' AND r.waiting_on = 'children' AND NOT EXISTS "
        f"(SELECT 1 FROM runs c WHERE c.parent_id = r.id AND c.status NOT IN {_RUN_ENDED})",
    ),
    Invariant(
        "children_miscounted",
        "a parent counts its open children right",
        "SELECT r.id, r.open_children AS counted, (SELECT count(*) FROM runs c WHERE c.parent_id = r.id AND c.status "
        f"NOT IN {_RUN_ENDED}) AS found FROM runs r WHERE r.status = 'waiting' AND r.waiting_on = 'children' AND "
        "r.open_children <> (SELECT count(*) FROM runs c WHERE c.parent_id = r.id AND c.status "
        f"NOT IN {_RUN_ENDED})",
    ),
    Invariant(
        "turn_lost",
        "in a sequence of children one has its turn while others wait for theirs",
        "SELECT c.parent_id AS id, count(*) AS waiting FROM runs c WHERE c.waiting_on = 'turn' AND NOT EXISTS "
        "(SELECT 1 FROM runs o WHERE o.parent_id = c.parent_id AND o.parent_step = c.parent_step AND o.status "
        f"NOT IN {_RUN_ENDED} AND (o.waiting_on IS NULL OR o.waiting_on <> 'turn')) GROUP BY c.parent_id",
    ),
    Invariant(
        "child_outlives",
        "no child goes on after its parent has ended",
        "SELECT c.id, c.status, p.id AS parent, p.status AS parent_status FROM runs c JOIN runs p ON p.id = c.parent_id"
        f" WHERE c.status NOT IN {_RUN_ENDED} AND p.status IN {_RUN_ENDED}",
    ),
    Invariant(
        "checkpoint_lost",
        "a run's last checkpoint is there",
        "SELECT r.id, r.checkpoint, (SELECT max(c.number) FROM checkpoints c WHERE c.run_id = r.id) AS found "
        "FROM runs r WHERE r.checkpoint <> "
        "coalesce((SELECT max(c.number) FROM checkpoints c WHERE c.run_id = r.id), 0) "
        f"AND r.project_id NOT IN {_PRUNED}",
    ),
    Invariant(
        "history_broken",
        "the messages of a run are numbered from 1 without a gap, up to what the run says",
        "SELECT r.id, r.messages, m.found, m.last FROM runs r LEFT JOIN (SELECT run_id, count(*) AS found, max(number) "
        "AS last FROM messages GROUP BY run_id) m ON m.run_id = r.id "
        f"WHERE (r.messages <> coalesce(m.last, 0) OR m.found <> m.last) AND r.project_id NOT IN {_PRUNED}",
    ),
)

_SIGNALS: Final = (
    Invariant(
        "asks_for_the_dead",
        "a run that has ended asks nothing any more",
        "SELECT s.id, s.kind, r.id AS run, r.status FROM signals s JOIN runs r ON r.id = s.run_id "
        f"WHERE s.status = 'open' AND s.kind IN {_ASKS} AND r.status IN {_RUN_ENDED} "
        "AND (r.status = 'cancelled' OR NOT s.carry_on)",
    ),
    Invariant(
        "asks_for_the_cancelled",
        "a cancelled project asks nothing any more",
        "SELECT s.id, s.kind, s.project_id AS project FROM signals s JOIN projects p ON p.id = s.project_id "
        f"WHERE s.status = 'open' AND s.kind IN {_ASKS} AND p.status = 'cancelled'",
    ),
    Invariant(
        "signal_over",
        "no question stays open long past its time",
        "SELECT id, kind, expires_at FROM signals WHERE status = 'open' AND expires_at < :late",
    ),
    Invariant(
        "answer_anonymous",
        "an answer says who gave it and when, and what is open has none",
        "SELECT id, status, answered_by FROM signals "
        "WHERE (status = 'answered' AND (answered_by IS NULL OR answered_at IS NULL)) "
        "OR (status = 'open' AND (answered_by IS NOT NULL OR answer IS NOT NULL OR execution <> 'none'))",
    ),
    Invariant(
        "yes_not_acted_on",
        "an approved action that no run waits for is begun soon",
        "SELECT s.id, s.answered_at FROM signals s JOIN projects p ON p.id = s.project_id WHERE s.carry_on AND "
        "s.status = 'answered' AND NOT s.rejected AND s.execution = 'none' AND s.answered_at < :late "
        "AND p.status <> 'cancelled'",
    ),
    Invariant(
        "act_unfinished",
        "an action that began has an outcome, or is unknown",
        "SELECT s.id, s.run_id AS run, s.acted_at FROM signals s LEFT JOIN runs r ON r.id = s.run_id WHERE "
        "s.execution = 'started' AND ((s.carry_on AND s.acted_at < :late) "
        f"OR (NOT s.carry_on AND r.status IN {_RUN_ENDED}))",
    ),
    Invariant(
        "asked_twice",
        "one call has one open question",
        "SELECT min(id) AS id, run_id AS run, call_id AS call, count(*) AS found FROM signals "
        "WHERE status = 'open' AND call_id IS NOT NULL GROUP BY run_id, call_id HAVING count(*) > 1",
    ),
)

_EFFECTS: Final = (
    Invariant(
        "done_without_yes",
        "no action of a decision began without a person's yes to it",
        "SELECT id, status, execution FROM signals WHERE kind = 'decision' AND action IS NOT NULL "
        "AND execution IN ('started', 'succeeded', 'failed', 'unknown') AND (status <> 'answered' OR rejected)",
    ),
    Invariant(
        "grant_unused",
        "no gated call ran without using up the yes it was given",
        "SELECT c.run_id AS id, c.id AS call, s.id AS signal, s.status, s.execution FROM signals s "
        "JOIN calls c ON c.run_id = s.run_id AND c.id = s.call_id AND c.signal_id = s.id WHERE s.kind = 'decision' "
        "AND (c.status = 'started' OR (c.status = 'done' AND c.outcome IN ('ok', 'error', 'unknown'))) "
        "AND (s.status <> 'answered' OR s.rejected OR s.execution = 'none')",
    ),
    Invariant(
        "grant_used_twice",
        "one yes lets one call run",
        "SELECT s.id, count(*) AS calls FROM signals s JOIN calls c ON c.run_id = s.run_id AND c.signal_id = s.id "
        "WHERE s.kind = 'decision' AND (c.status = 'started' OR c.outcome IN ('ok', 'error', 'unknown')) "
        "GROUP BY s.id HAVING count(*) > 1",
    ),
    Invariant(
        "world_without_yes",
        "nothing acted outside Officina without a person's yes to this very call in its task",
        f"SELECT c.run_id AS id, c.id AS call, c.name FROM calls c JOIN runs r ON r.id = c.run_id JOIN projects p "
        f"ON p.id = r.project_id WHERE c.name IN {_WORLD} AND (c.status = 'started' OR c.outcome IN ('ok', 'unknown')) "
        "AND NOT p.rehearsal AND NOT EXISTS (SELECT 1 FROM signals s WHERE s.project_id = r.project_id AND "
        "s.digest = c.digest AND s.status = 'answered' AND NOT s.rejected AND s.execution <> 'none')",
    ),
    Invariant(
        "outcome_missing",
        "a call that may have happened has an outcome when its run has ended, be it unknown",
        "SELECT c.run_id AS id, c.id AS call, c.name FROM calls c JOIN runs r ON r.id = c.run_id "
        f"WHERE c.status = 'started' AND r.status IN {_RUN_ENDED}",
    ),
)

_TASKS: Final = (
    Invariant(
        "task_without_run",
        "a task under way has just one root run under way",
        "SELECT t.id, t.status, (SELECT count(*) FROM runs r WHERE r.task_id = t.id AND r.kind = 'root' AND r.status "
        f"NOT IN {_RUN_ENDED}) AS runs FROM tasks t WHERE t.status IN {_TASK_LIVE} AND (SELECT count(*) FROM runs r "
        f"WHERE r.task_id = t.id AND r.kind = 'root' AND r.status NOT IN {_RUN_ENDED}) <> 1",
    ),
    Invariant(
        "run_without_task",
        "no run is under way for a task that has ended or has not begun",
        "SELECT r.id, r.status, t.id AS task, t.status AS task_status FROM runs r JOIN tasks t ON t.id = r.task_id "
        f"WHERE r.status NOT IN {_RUN_ENDED} AND t.status NOT IN {_TASK_LIVE}",
    ),
    Invariant(
        "task_at_odds",
        "a task says what its run does: running, parked, or how it ended",
        "SELECT t.id, t.status, r.id AS run, r.status AS run_status FROM tasks t JOIN runs r ON r.task_id = t.id AND "
        "r.kind = 'root' AND r.attempt = (SELECT max(l.attempt) FROM runs l WHERE l.task_id = t.id AND l.kind = 'root')"
        " WHERE r.status <> 'queued' AND r.status <> t.status AND t.status NOT IN ('pending', 'skipped')",
    ),
    Invariant(
        "dependencies_miscounted",
        "a task that waits counts the dependencies that have not completed",
        "SELECT t.id, t.open_dependencies AS counted, (SELECT count(*) FROM dependencies d JOIN tasks o ON o.id = "
        "d.depends_on_id WHERE d.task_id = t.id AND o.status <> 'completed') AS found FROM tasks t "
        "WHERE t.status = 'pending' AND t.open_dependencies <> (SELECT count(*) FROM dependencies d JOIN tasks o "
        "ON o.id = d.depends_on_id WHERE d.task_id = t.id AND o.status <> 'completed')",
    ),
    Invariant(
        "ready_not_queued",
        "a task that waits for nothing is queued",
        "SELECT id FROM tasks WHERE status = 'pending' AND open_dependencies <= 0",
    ),
    Invariant(
        "waits_in_vain",
        "no task waits for one that failed, was skipped or cancelled",
        "SELECT t.id, o.id AS waits_for, o.status FROM tasks t JOIN dependencies d ON d.task_id = t.id "
        "JOIN tasks o ON o.id = d.depends_on_id "
        "WHERE t.status = 'pending' AND o.status IN ('failed', 'skipped', 'cancelled')",
    ),
)

_PROJECTS: Final = (
    Invariant(
        "project_idle",
        "a project under way has a run under way, or a plan that waits for its start",
        "SELECT p.id, p.status FROM projects p WHERE p.kind = 'project' AND "
        "NOT (p.status = 'planning' AND p.held AND p.plan IS NOT NULL) AND "
        f"p.status NOT IN {_PROJECT_ENDED} AND NOT EXISTS "
        f"(SELECT 1 FROM runs r WHERE r.project_id = p.id AND r.status NOT IN {_RUN_ENDED})",
    ),
    Invariant(
        "project_over",
        "a project that has ended has no run under way",
        "SELECT r.id, r.status, p.id AS project, p.status AS project_status FROM runs r "
        f"JOIN projects p ON p.id = r.project_id WHERE p.status IN {_PROJECT_ENDED} AND r.status NOT IN {_RUN_ENDED}",
    ),
    Invariant(
        "tasks_miscounted",
        "a project counts its open and completed tasks right",
        "SELECT p.id, p.status, p.open_tasks, p.completed_tasks, t.open AS found_open, t.done AS found_completed "
        "FROM projects p JOIN (SELECT project_id, "
        f"sum(CASE WHEN status IN {_TASK_ENDED} THEN 0 ELSE 1 END) AS open, "
        "sum(CASE WHEN status = 'completed' THEN 1 ELSE 0 END) AS done FROM tasks GROUP BY project_id) t "
        "ON t.project_id = p.id WHERE p.open_tasks <> t.open OR p.completed_tasks <> t.done",
    ),
    Invariant(
        "project_at_odds",
        "a project ends as its tasks did: completed when all completed, partial when some did, failed when none did",
        "SELECT p.id, p.status, t.done AS completed, t.everything AS tasks FROM projects p JOIN (SELECT project_id, "
        "count(*) AS everything, sum(CASE WHEN status = 'completed' THEN 1 ELSE 0 END) AS done FROM tasks "
        "GROUP BY project_id) t ON t.project_id = p.id WHERE (p.status = 'completed' AND t.done < t.everything) "
        "OR (p.status = 'partial' AND (t.done = 0 OR t.done = t.everything)) OR (p.status = 'failed' AND t.done > 0)",
    ),
)

#: What ended root and planning runs cost, and what children under way have spent and not yet brought home.
_SPENT: Final = (
    f"SELECT project_id, task_id, sum(CASE WHEN kind IN {_ROOTS} OR status NOT IN {_RUN_ENDED} "
    f"THEN cost_micro ELSE 0 END) AS spent, sum(CASE WHEN kind IN {_ROOTS} AND status "
    f"IN {_RUN_ENDED} THEN cost_micro ELSE 0 END) AS booked FROM runs GROUP BY project_id, task_id"
)

_MONEY: Final = (
    Invariant(
        "reservations_miscounted",
        "a budget window holds just what calls under way have reserved in it",
        "SELECT w.id, w.reserved_micro AS counted, coalesce(r.found, 0) AS found FROM windows w LEFT JOIN "
        "(SELECT window_id, sum(micro) AS found FROM reservations GROUP BY window_id) r ON r.window_id = w.id "
        "WHERE w.reserved_micro <> coalesce(r.found, 0)",
    ),
    Invariant(
        "reserved_for_the_dead",
        "a run that has ended has nothing reserved",
        "SELECT v.run_id AS id, v.window_id, v.micro FROM reservations v JOIN runs r ON r.id = v.run_id "
        f"WHERE r.status IN {_RUN_ENDED}",
    ),
    Invariant(
        "project_cost_at_odds",
        "a project cost what its ended runs did",
        f"SELECT p.id, p.cost_micro AS counted, s.booked AS found FROM projects p JOIN (SELECT project_id, sum(booked) "
        f"AS booked FROM ({_SPENT}) x GROUP BY project_id) s ON s.project_id = p.id WHERE p.cost_micro <> s.booked",
    ),
    Invariant(
        "task_cost_at_odds",
        "a task cost what its ended runs did",
        f"SELECT t.id, t.cost_micro AS counted, s.booked AS found FROM tasks t JOIN ({_SPENT}) s ON s.task_id = t.id "
        "WHERE t.cost_micro <> s.booked",
    ),
    Invariant(
        "project_window_at_odds",
        "what is spent in a project's window is what its runs spent",
        "SELECT w.id, w.spent_micro AS counted, s.spent AS found FROM (SELECT project_id, sum(spent) AS spent "
        f"FROM ({_SPENT}) x GROUP BY project_id) s JOIN windows w ON w.id = 'project:' || s.project_id "
        "WHERE w.spent_micro <> s.spent",
    ),
    Invariant(
        "task_window_at_odds",
        "what is spent in a task's window is what its runs spent",
        f"SELECT w.id, w.spent_micro AS counted, s.spent AS found FROM ({_SPENT}) s "
        "JOIN windows w ON w.id = 'task:' || s.task_id WHERE w.spent_micro <> s.spent",
    ),
)

_TRACES: Final = (
    Invariant(
        "trace_gap",
        "the events of a trace are numbered from 1 without a gap, up to its counter",
        "SELECT t.id, t.seq, e.found, e.last FROM traces t LEFT JOIN (SELECT trace_id, count(*) AS found, max(seq) "
        "AS last FROM events GROUP BY trace_id) e ON e.trace_id = t.id "
        f"WHERE (t.seq <> coalesce(e.last, 0) OR e.found <> e.last) AND t.id NOT IN {_PRUNED}",
    ),
)

_TRIGGERS: Final = (
    Invariant(
        "due_time_lost",
        "a schedule that was due is moved on soon",
        "SELECT id, next_run_at FROM schedules WHERE status = 'active' AND next_run_at < :late",
    ),
    Invariant(
        "schedule_timeless",
        "an active schedule has a next time",
        "SELECT id, status FROM schedules WHERE status = 'active' AND next_run_at IS NULL",
    ),
    Invariant(
        "firing_without_run",
        "what a schedule fired in its thread has its run",
        "SELECT f.schedule_id AS id, f.due_at, f.run_id AS run FROM firings f WHERE f.result = 'fired' "
        "AND f.run_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM thread_runs t "
        "WHERE t.run_id = f.run_id AND t.source_id = f.schedule_id)",
    ),
    Invariant(
        "delivery_without_work",
        "what a webhook took and began is there",
        "SELECT d.hook_id AS id, d.key FROM deliveries d WHERE (d.run_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM "
        "thread_runs t WHERE t.run_id = d.run_id AND t.source_id = d.hook_id)) "
        "OR (d.project_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM projects p WHERE p.id = d.project_id))",
    ),
)

INVARIANTS: Final = (
    *_RUNS,
    *_SIGNALS,
    *_EFFECTS,
    *_TASKS,
    *_PROJECTS,
    *_MONEY,
    *_TRACES,
    *_TRIGGERS,
    *thread_rules.RULES,
)
