-- What happened to one workflow, newest first, and so what became of one of its jobs.
create index event_workflow on event (team_id, workflow_id, id);
