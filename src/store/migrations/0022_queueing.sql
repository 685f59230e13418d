-- What a queue call needs to know about a workflow, so that it does not read the workflow's row
-- (src/store/operations/jobs.ts).

-- only sqlite
drop index workflow_listed;
create index workflow_listed on workflow (team_id, id, paused_at, (definition ->> '$.source.type'),
  (definition ->> '$.overlap'), (definition ->> '$.priority')) where archived_at is null;
