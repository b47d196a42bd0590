-- One project that ended long ago. Parameters: id, task, run, old, events, bytes.
INSERT INTO projects (id, owner_id, file_digest, title, brief, status, permissions, approvals, max_parallel, priority,
  skills, workspace, created_at, ended_at)
VALUES (:id, 'local', 'f', 'Old', 'b', 'completed', '{}', 'park', 8, 5, '[]', :id, :old, :old);

INSERT INTO traces (id, seq) VALUES (:id, :events);

INSERT INTO tasks (id, project_id, position, key, title, role, instruction, deliverables, agent_id, agent_name, skills,
  tier, definition_digest, status, retries, created_at, ended_at)
VALUES (:task, :id, 0, 'a', 'A', 'writer', 'Do it.', '[]', 'ada', 'Ada', '[]', 'standard', 'f', 'completed', 1, :old, :old);

INSERT INTO runs (id, project_id, task_id, kind, agent_id, agent_name, definition_digest, status, attempt, permissions,
  approvals, priority, created_at, ended_at, messages, checkpoint)
VALUES (:run, :id, :task, 'root', 'ada', 'Ada', 'f', 'completed', 1, '{}', 'park', 5, :old, :old, :events / 4, :events / 4);

INSERT INTO events (trace_id, seq, at, kind, task_id, run_id, agent_id, node_id, data)
SELECT :id, n, :old, 'tool.result', :task, :run, 'ada', 'act',
  json_build_object('output', repeat(md5(CAST(n AS text)), :bytes / 32))
FROM generate_series(1, :events) n;

INSERT INTO messages (run_id, number, history, body)
SELECT :run, n, 'messages', json_build_object('role', 'assistant', 'text', repeat(md5(CAST(n AS text)), :bytes / 32))
FROM generate_series(1, :events / 4) n;

INSERT INTO checkpoints (run_id, number, node_id, counters, patch, at)
SELECT :run, n, 'act', '{}', '{}', :old FROM generate_series(1, :events / 4) n;
