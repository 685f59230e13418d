-- The same indexes on both databases, and fewer entries for a queued job: queueing one on SQLite now writes four B-trees
-- instead of six. Lists find unfinished jobs by job_slot and, by origin, by the primary key.

-- only sqlite
create table new_job (
  team_id              {text}      not null,
  id                   {text}      not null,
  workflow_id          {text}      not null,
  slot                 {smallint}  not null check (slot = 0 or slot = 1),
  state                {text}      not null
                       check (state = 'queued' or state = 'running' or state = 'retrying'
                              or state = 'finished' or state = 'failed' or state = 'canceled'),
  origin               {text}      not null
                       check (origin = 'api' or origin = 'schedule' or origin = 'cli' or origin = 'push'),
  priority             {integer}   not null default 0,
  parked               {smallint}  not null default 0,     -- 1: the workflow is paused or archived
  attempt              {integer}   not null default 0,
  failures             {integer}   not null default 0,
  crashes              {integer}   not null default 0,
  run_at               {time}      not null,
  node_id              {text},
  lease_until          {time},
  cancel_requested_at  {time},
  process_pid          {integer},
  process_started_at   {text},
  created_at           {time}      not null,
  started_at           {time},
  finished_at          {time},
  version              {integer},
  reason               {text},
  trace                {text},
  records              {text},
  progress             {text},
  error                {text},
  primary key (team_id, id),
  check ((state = 'running') = (node_id is not null and lease_until is not null)),
  check ((state = 'finished' or state = 'failed' or state = 'canceled') = (finished_at is not null)),
  check (state <> 'failed' or (reason is not null and error is not null))
) without rowid;
insert into new_job
  select team_id, id, workflow_id, slot, state, origin, priority, parked, attempt, failures, crashes, run_at, node_id,
         lease_until, cancel_requested_at, process_pid, process_started_at, created_at, started_at, finished_at, version,
         reason, trace, records, progress, error
  from job;
drop table job;
alter table new_job rename to job;
create index job_due on job (team_id, priority desc, run_at)
  where state in ('queued', 'retrying') and slot = 0 and parked = 0;
create index job_running on job (team_id, run_at) where state = 'running';
create index job_unsuccessful on job (team_id, id) where state in ('failed', 'canceled');

drop index delivery_order;
drop index delivery_due;
drop index delivery_history;
create index delivery_order on delivery (team_id, webhook_id, class, event_sequence, id)
  where state = 'waiting' and event_sequence > 0;
create index delivery_due on delivery (team_id, webhook_id, class, next_at, id)
  where state = 'waiting' and class > 0;
create index delivery_history on delivery (team_id, webhook_id, (state || ''), created_at, id);

drop index idempotency_age;
create index idempotency_age on idempotency (team_id, created_at);

-- Without columns that change with each attempt, so that a claim does not write this index.
create unique index job_slot on job (team_id, workflow_id, slot) where finished_at is null;

-- only postgres
drop index job_history;
drop index job_origin;

-- both
create index job_history on job (team_id, workflow_id, id) where finished_at is not null;
