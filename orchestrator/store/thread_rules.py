"""What holds in the rows of conversations at every moment; see `invariants`."""

from typing import Final

from orchestrator.store.rules import Invariant

_RUN_ENDED: Final = "('completed', 'failed', 'cancelled')"

RULES: Final = (
    Invariant(
        "thread_at_odds",
        "a thread that is busy has its run under way",
        "SELECT t.id, t.run_id AS run, r.status FROM threads t LEFT JOIN runs r ON r.id = t.run_id AND "
        f"r.project_id = t.id WHERE t.run_id IS NOT NULL AND (r.id IS NULL OR r.status IN {_RUN_ENDED})",
    ),
    Invariant(
        "thread_runs_aside",
        "nothing is under way in a thread beside its one run and what that made",
        "SELECT r.id, r.status, t.id AS thread, t.run_id AS busy_with FROM runs r JOIN threads t ON t.id = r.project_id"
        f" WHERE r.parent_id IS NULL AND r.status NOT IN {_RUN_ENDED} AND (t.run_id IS NULL OR t.run_id <> r.id)",
    ),
    Invariant(
        "thread_miscounted",
        "the runs of a thread are numbered from 1 without a gap, up to what it counts",
        "SELECT t.id, t.runs, coalesce(n.found, 0) AS found, n.last FROM threads t LEFT JOIN (SELECT thread_id, "
        "count(*) AS found, max(number) AS last FROM thread_runs GROUP BY thread_id) n ON n.thread_id = t.id "
        "WHERE t.runs <> coalesce(n.last, 0) OR n.found <> n.last",
    ),
    Invariant(
        "thread_run_astray",
        "every root run of a thread has its place in it, and a history that begins no later than itself",
        "SELECT r.id, n.number, n.history_from FROM runs r LEFT JOIN thread_runs n ON n.run_id = r.id AND "
        "n.thread_id = r.project_id WHERE r.kind IN ('thread', 'compact') AND (n.number IS NULL OR "
        "n.history_from < 1 OR n.history_from > n.number)",
    ),
    Invariant(
        "trigger_unheard",
        "nothing waits for a thread that is free",
        "SELECT g.thread_id AS id, g.number, g.origin FROM triggers g JOIN threads t ON t.id = g.thread_id "
        "WHERE t.run_id IS NULL",
    ),
    Invariant(
        "thread_homeless",
        "a thread and its standing project are there together",
        "SELECT p.id FROM projects p LEFT JOIN threads t ON t.id = p.id "
        "WHERE (p.kind = 'thread') <> (t.id IS NOT NULL)",
    ),
)
