-- While a job waits for its first attempt, its event `workflow_queued` has no entry in event_workflow. The entry would be
-- at a random place, and so write another page of the database. The job's next event writes both entries, next to each
-- other. Until then, the history finds the event by the id of the job (src/store/operations/events.ts).

-- only sqlite
alter table event add column indexed integer not null default 1;   -- whether event_workflow has an entry
drop index event_workflow;
create index event_workflow on event (team_id, workflow_id, id) where indexed = 1;
