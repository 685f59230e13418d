-- For every `in` with more than two values in a CHECK or the condition of an index, SQLite fills a temporary table for each
-- row. Four of them cost more than half of inserting a job (67,000 instructions, now 28,000). Comparisons joined by `or`
-- need no table.

-- only sqlite
create table new_job (
  team_id              text    not null,
  id                   text    not null,
  workflow_id          text    not null,
  slot                 integer not null check (slot = 0 or slot = 1),
  state                text    not null
                       check (state = 'queued' or state = 'running' or state = 'retrying'
                              or state = 'finished' or state = 'failed' or state = 'canceled'),
  origin               text    not null
                       check (origin = 'api' or origin = 'schedule' or origin = 'cli' or origin = 'push'),
  priority             integer not null default 0,
  parked               integer not null default 0,       -- 1: the workflow is paused or archived
  attempt              integer not null default 0,
  failures             integer not null default 0,
  crashes              integer not null default 0,
  run_at               integer not null,
  node_id              text,
  lease_until          integer,
  cancel_requested_at  integer,
  process_pid          integer,
  process_started_at   text,
  created_at           integer not null,
  started_at           integer,
  finished_at          integer,
  version              integer,
  reason               text,
  trace                text,
  records              text,
  progress             text,
  error                text,
  primary key (team_id, id),
  check ((state = 'running') = (node_id is not null and lease_until is not null)),
  check ((state = 'finished' or state = 'failed' or state = 'canceled') = (finished_at is not null)),
  check (state <> 'failed' or (reason is not null and error is not null))
);
insert into new_job
  select team_id, id, workflow_id, slot, state, origin, priority, parked, attempt, failures, crashes, run_at, node_id,
         lease_until, cancel_requested_at, process_pid, process_started_at, created_at, started_at, finished_at, version,
         reason, trace, records, progress, error
  from job;
drop table job;
alter table new_job rename to job;
-- Unfinished jobs have no `finished_at`: see the check.
create unique index job_slot on job (team_id, workflow_id, slot) where finished_at is null;
create index job_due on job (team_id, priority desc, run_at)
  where state in ('queued', 'retrying') and slot = 0 and parked = 0;
create index job_running on job (team_id, node_id) where state = 'running';
create index job_history on job (team_id, workflow_id, id);
create index job_unsuccessful on job (team_id, id) where state in ('failed', 'canceled');
create index job_origin on job (team_id, origin, id);

create table new_delivery (
  team_id         text    not null,
  id              text    not null,
  webhook_id      text    not null,
  event_sequence  integer not null,
  state           text    not null
                  check (state = 'waiting' or state = 'delivered' or state = 'dead' or state = 'canceled'),
  origin          text    not null default 'event'
                  check (origin = 'event' or origin = 'test' or origin = 'replay'),
  class           integer not null default 0 check (class between 0 and 2),  -- live, retry, replay
  attempt         integer not null default 0,
  next_at         integer,
  created_at      integer not null,
  replay_id       text,
  primary key (team_id, id),
  check ((state = 'waiting') = (next_at is not null))
) without rowid;
insert into new_delivery
  select team_id, id, webhook_id, event_sequence, state, origin, class, attempt, next_at, created_at, replay_id
  from delivery;
drop table delivery;
alter table new_delivery rename to delivery;
create index delivery_due on delivery (team_id, webhook_id, class, next_at, id) where state = 'waiting';
create index delivery_order on delivery (team_id, webhook_id, event_sequence, id) where state = 'waiting';
create index delivery_history on delivery (team_id, webhook_id, state, created_at, id);
create index delivery_event on delivery (team_id, event_sequence);
create unique index delivery_replay on delivery (team_id, replay_id, event_sequence) where replay_id is not null;
