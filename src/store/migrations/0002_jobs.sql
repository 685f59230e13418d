-- Schedules, priorities, fair claims, pausing, canceling, progress and logs of jobs.

-- only sqlite
alter table workflow add column next_run_at integer;      -- of its schedule; null without one
create index workflow_next_run on workflow (next_run_at)
  where next_run_at is not null and paused_at is null and archived_at is null;

alter table team add column claimed_at integer not null default 0;  -- when a job of it was last claimed

alter table job add column priority integer not null default 0;
alter table job add column parked integer not null default 0;       -- 1: its workflow is paused or archived
alter table job add column cancel_requested_at integer;
alter table job add column progress text;

update job set parked = 1
  where state in ('queued', 'running', 'retrying')
    and exists (select 1 from workflow
                where workflow.team_id = job.team_id and workflow.id = job.workflow_id
                  and (paused_at is not null or archived_at is not null));

-- Claims go from team to team, and within one by priority. What is parked is not in their way.
drop index job_due;
create index job_due on job (team_id, priority desc, run_at)
  where state in ('queued', 'retrying') and slot = 0 and parked = 0;
drop index job_running;
create index job_running on job (team_id, node_id) where state = 'running';
-- Ids grow with time: they are the order in which jobs are listed and pruned.
create index job_history on job (team_id, workflow_id, id);
create index job_unsuccessful on job (team_id, id) where state in ('failed', 'canceled');

-- Lines of an attempt's log, some at a time: [seq, at, level, text], one JSON array a line.
create table job_log (
  team_id     text    not null,
  job_id      text    not null,
  attempt     integer not null,
  part        integer not null check (part in (0, 1)),  -- 0: its beginning, which stays; 1: its end, which moves on
  seq         integer not null,               -- of its first line
  last_seq    integer not null,
  bytes       integer not null,               -- of the texts
  body        text    not null,
  primary key (team_id, job_id, attempt, part, seq)
) without rowid;

-- Definitions stored before these settings existed get their defaults.
update workflow set definition = json_set(definition,
  '$.schedule', null, '$.priority', 0,
  '$.limits.memoryBytes', 512000000, '$.limits.outputBytes', 2000000000);
update workflow set definition = json_set(definition, '$.source.streams', null, '$.source.config', null)
  where json_extract(definition, '$.source.type') = 'command';
