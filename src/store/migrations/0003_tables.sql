-- Version 3, where PostgreSQL begins: with all the tables that SQLite has after this.

-- only sqlite
-- Settings and health of webhooks, rotation of secrets, classes of deliveries, details of attempts, replays.

alter table webhook add column settings text not null
  default '{"ordered":false,"ratePerSecond":null,"timeoutMs":15000}';
alter table webhook add column headers text;                 -- sealed JSON
alter table webhook add column previous_secret text;         -- sealed; signs along until then
alter table webhook add column previous_until integer;
alter table webhook add column paused_at integer;
alter table webhook add column paused_reason text;
alter table webhook add column failing_since integer;
alter table webhook add column last_success_at integer;

alter table delivery add column origin text not null default 'event' check (origin in ('event', 'test', 'replay'));
alter table delivery add column class integer not null default 0 check (class in (0, 1, 2));  -- live, retry, replay
update delivery set class = 1 where attempt > 0;
drop index delivery_due;
create index delivery_due on delivery (team_id, webhook_id, class, next_at, id) where state = 'waiting';
-- Of webhooks that want their deliveries one after the other.
create index delivery_order on delivery (team_id, webhook_id, event_sequence, id) where state = 'waiting';
drop index delivery_webhook;
create index delivery_history on delivery (team_id, webhook_id, state, created_at, id);
create index delivery_event on delivery (team_id, event_sequence);

alter table attempt add column details text;
create index attempt_age on attempt (started_at);

create table replay (
  team_id     text    not null,
  id          text    not null,
  webhook_id  text    not null,
  states      text    not null,
  since       integer not null,
  until       integer not null,
  after_at    integer not null default -1,    -- when the delivery was made that it has come to
  after_id    text    not null default '',    -- its id
  made        integer not null default 0,
  state       text    not null check (state in ('running', 'done')),
  created_at  integer not null,
  primary key (team_id, id)
) without rowid;
create index replay_running on replay (team_id, webhook_id, created_at, id) where state = 'running';
create index replay_age on replay (created_at);

alter table delivery add column replay_id text;  -- of the replay that made it
create unique index delivery_replay on delivery (team_id, replay_id, event_sequence) where replay_id is not null;

-- only postgres
-- The tables of version 3. Times are epoch milliseconds, lists and objects JSON
-- text. team_id leads every primary key and is part of every unique index, so that the tables can be distributed by
-- team, except in team, api_key and instance, which are small. Nothing is named here that a database of the same
-- language may lack: no sequences, triggers, enumerations, partitions or functions of our own. Texts that are compared
-- or sorted by bytes, as SQLite does, are collated "C".

create table instance (
  name   text collate "C" primary key,
  value  text not null
);

-- Chores that one node at a time does.
create table chore (
  name         text    collate "C" primary key,
  node_id      text    not null,
  lease_until  bigint  not null
);

create table team (
  id             text    collate "C" primary key,
  slug           text    collate "C" not null unique,
  last_sequence  bigint  not null default 0,  -- of its events, where they were copied from SQLite; then they say it
  claimed_at     bigint  not null default 0,  -- SQLite's: here nodes remember by themselves whom they served when
  created_at     bigint  not null
);

create table api_key (
  id          text    collate "C" primary key,
  team_id     text    collate "C" not null references team (id),
  name        text    not null,
  hash        text    collate "C" not null unique,
  prefix      text    not null,
  scopes      text    not null,
  created_at  bigint  not null,
  expires_at  bigint,
  revoked_at  bigint
);

create table signing_key (
  team_id      text    collate "C" not null,
  id           text    collate "C" not null,
  public_key   text    not null,
  private_key  text    not null,                -- sealed
  created_at   bigint  not null,
  primary key (team_id, id)
);

create table workflow (
  team_id          text     collate "C" not null,
  id               text     collate "C" not null,
  definition_hash  text     not null,
  paused_at        bigint,
  archived_at      bigint,
  current_version  integer  not null default 0,
  oldest_version   integer  not null default 0,
  pruned_version   integer  not null default 0,  -- rows removed up to this version are deleted
  erasures         integer  not null default 0,
  next_seq         bigint   not null default 1,
  next_run_at      bigint,                        -- of its schedule; null without one
  staged_added     bigint   not null default 0,  -- what the run under way has written, counted as it is written
  staged_changed   bigint   not null default 0,
  staged_removed   bigint   not null default 0,
  staged_largest   integer  not null default 0,  -- bytes of the longest record that a run has written so far
  created_at       bigint   not null,
  updated_at       bigint   not null,
  definition       text     not null,
  state            text,                          -- what the last published run left for the next
  primary key (team_id, id),
  check (oldest_version <= current_version)
) with (fillfactor = 70);
create index workflow_next_run on workflow (next_run_at)
  where next_run_at is not null and paused_at is null and archived_at is null;

create table version (
  team_id       text     collate "C" not null,
  workflow_id   text     collate "C" not null,
  number        integer  not null,
  job_id        text     collate "C" not null,
  total         bigint   not null,
  added         bigint   not null,
  changed       bigint   not null,
  removed       bigint   not null,
  largest       integer  not null,                -- bytes of its longest record, or more
  fields        text     not null default '[]',   -- the names that its records have, or more
  published_at  bigint   not null,
  primary key (team_id, workflow_id, number)
);

create table job (
  team_id              text      collate "C" not null,
  id                   text      collate "C" not null,
  workflow_id          text      collate "C" not null,
  slot                 smallint  not null check (slot in (0, 1)),
  state                text      not null
                       check (state in ('queued', 'running', 'retrying', 'finished', 'failed', 'canceled')),
  origin               text      not null check (origin in ('api', 'schedule', 'cli', 'push')),
  priority             integer   not null default 0,
  parked               smallint  not null default 0,   -- 1: its workflow is paused or archived
  attempt              integer   not null default 0,
  failures             integer   not null default 0,
  crashes              integer   not null default 0,
  run_at               bigint    not null,
  node_id              text      collate "C",
  lease_until          bigint,
  process_pid          integer,
  process_started_at   text,
  cancel_requested_at  bigint,
  reason               text,
  error                text,
  version              integer,
  records              text,
  progress             text,
  created_at           bigint    not null,
  started_at           bigint,
  finished_at          bigint,
  primary key (team_id, id),
  check ((state = 'running') = (node_id is not null and lease_until is not null)),
  check ((state in ('finished', 'failed', 'canceled')) = (finished_at is not null)),
  check (state <> 'failed' or (reason is not null and error is not null))
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
-- For statements that say attempt >= 0, as it always is: see unfinished.ts.
create unique index job_slot on job (team_id, workflow_id, slot)
  where state in ('queued', 'running', 'retrying') and attempt >= 0;
create index job_due on job (team_id, priority desc, run_at)
  where state in ('queued', 'retrying') and slot = 0 and parked = 0;
create index job_running on job (team_id, run_at) where state = 'running';  -- run_at is when it was taken up
-- Ids grow with time: they are the order in which jobs are listed and pruned.
create index job_history on job (team_id, workflow_id, id);
create index job_unsuccessful on job (team_id, id) where state in ('failed', 'canceled');

-- Lines of an attempt's log, some at a time: [seq, at, level, text], one JSON array a line.
create table job_log (
  team_id   text      collate "C" not null,
  job_id    text      collate "C" not null,
  attempt   integer   not null,
  part      smallint  not null check (part in (0, 1)),  -- 0: its beginning, which stays; 1: its end, which moves on
  seq       bigint    not null,               -- of its first line
  last_seq  bigint    not null,
  bytes     integer   not null,               -- of the texts
  body      text      not null,
  primary key (team_id, job_id, attempt, part, seq)
);

create table idempotency (
  team_id     text    collate "C" not null,
  operation   text    collate "C" not null,
  target      text    collate "C" not null,     -- what the operation was called on
  key         text    collate "C" not null,
  result_id   text    not null,
  created_at  bigint  not null,
  primary key (team_id, operation, target, key)
);
create index idempotency_age on idempotency (team_id, created_at);

create table record (
  team_id      text     collate "C" not null,
  workflow_id  text     collate "C" not null,
  seq          bigint   not null,                 -- the order of first appearance
  added_in     integer  not null,
  removed_in   integer,
  id           text     collate "C" not null,
  body         text     not null,                 -- the record's JSON text, as it is sent
  primary key (team_id, workflow_id, seq, added_in),
  check (removed_in is null or removed_in > added_in)
) with (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
-- Statements choose among these, not the planner: see record-indexes.ts, which has the same expressions.
create unique index record_current on record
  (('current ' || team_id || ' ' || workflow_id),
   (case when octet_length(id) <= 256 then id else left(id, 256) || md5(id) end), team_id)
  where removed_in is null;
create index record_closed on record
  (('closed ' || team_id || ' ' || workflow_id),
   (case when octet_length(id) <= 256 then id else left(id, 256) || md5(id) end))
  where -removed_in < 0;
create index record_added on record (('added ' || team_id || ' ' || workflow_id), added_in, seq);
create index record_removed on record (('removed ' || team_id || ' ' || workflow_id), removed_in, seq)
  where removed_in > 0;
-- The planner would take a team that it has not seen for empty. Without statistics it takes every one for 1 of 200.
alter table record alter column team_id set statistics 0, alter column workflow_id set statistics 0;

create table event (
  team_id      text    collate "C" not null,
  sequence     bigint  not null,
  id           text    collate "C" not null,
  type         text    not null,
  workflow_id  text    collate "C",
  job_id       text    collate "C",
  body         text    not null,                  -- the exact bytes that are signed
  created_at   bigint  not null,
  primary key (team_id, sequence)
);
create unique index event_id on event (team_id, id);

create table webhook (
  team_id          text    collate "C" not null,
  id               text    collate "C" not null,
  workflow_id      text    collate "C",           -- null: every workflow of the team
  url              text    collate "C" not null,
  events           text    not null,
  event_set        text    collate "C" not null,
  fires_for        text    not null,              -- '|workflow_finished|', '|*|': see model/webhook.ts
  state            text    not null check (state in ('active', 'paused', 'deleted')),
  settings         text    not null,
  headers          text,                          -- sealed JSON
  secret           text    not null,              -- sealed
  previous_secret  text,                          -- sealed; signs along until then
  previous_until   bigint,
  paused_at        bigint,
  paused_reason    text,
  failing_since    bigint,
  last_success_at  bigint,
  created_at       bigint  not null,
  deleted_at       bigint,
  primary key (team_id, id),
  check ((state = 'deleted') = (deleted_at is not null))
) with (fillfactor = 70);
-- A URL and a set of events may be longer than an index row: of these their digests, which PostgreSQL computes.
create unique index webhook_same on webhook
  (team_id, coalesce(workflow_id, ''), md5(url), md5(event_set)) where state <> 'deleted';

-- Which node sends to a webhook. Written when that changes and when a lease is renewed, never per event.
create table lane (
  team_id      text    collate "C" not null,
  webhook_id   text    collate "C" not null,
  node_id      text    collate "C",
  epoch        bigint  not null,
  lease_until  bigint  not null,
  primary key (team_id, webhook_id)
) with (fillfactor = 50);

create table delivery (
  team_id         text      collate "C" not null,
  id              text      collate "C" not null,
  webhook_id      text      collate "C" not null,
  event_sequence  bigint    not null,
  state           text      not null check (state in ('waiting', 'delivered', 'dead', 'canceled')),
  attempt         integer   not null default 0,
  next_at         bigint,
  created_at      bigint    not null,
  origin          text      not null default 'event' check (origin in ('event', 'test', 'replay')),
  class           smallint  not null default 0 check (class in (0, 1, 2)),  -- live, retry, replay
  replay_id       text      collate "C",          -- of the replay that made it
  primary key (team_id, id),
  check ((state = 'waiting') = (next_at is not null))
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
-- What waits, in the order of its events: all that has never been tried, and all of webhooks that want their deliveries
-- one after the other. For statements that say event_sequence > 0, as it always is: of two indexes over what waits a
-- planner that believes in few rows takes the wrong one.
create index delivery_order on delivery (team_id, webhook_id, class, event_sequence, id)
  where state = 'waiting' and event_sequence > 0;
create index delivery_due on delivery (team_id, webhook_id, class, next_at, id)
  where state = 'waiting' and class > 0;
-- For statements that say (state || ''): it has also what waits, and would be taken for the two above.
create index delivery_history on delivery (team_id, webhook_id, (state || ''), created_at, id);
create index delivery_event on delivery (team_id, event_sequence);
create unique index delivery_replay on delivery (team_id, replay_id, event_sequence) where replay_id is not null;

create table attempt (
  team_id      text     collate "C" not null,
  delivery_id  text     collate "C" not null,
  number       integer  not null,
  started_at   bigint   not null,
  duration_ms  integer  not null,
  outcome      text     not null,
  status       integer,
  error        text,
  response     text,
  details      text,
  primary key (team_id, delivery_id, number)
);
create index attempt_age on attempt (started_at);

create table replay (
  team_id     text    collate "C" not null,
  id          text    collate "C" not null,
  webhook_id  text    collate "C" not null,
  states      text    not null,
  since       bigint  not null,
  until       bigint  not null,
  after_at    bigint  not null default -1,    -- when the delivery was made that it has come to
  after_id    text    not null default '',    -- its id
  made        bigint  not null default 0,
  state       text    not null check (state in ('running', 'done')),
  created_at  bigint  not null,
  primary key (team_id, id)
);
create index replay_running on replay (team_id, webhook_id, created_at, id) where state = 'running';
create index replay_age on replay (created_at);

-- Who must not come back: keyed hashes, and nothing that names anybody.
create table suppression (
  team_id      text    collate "C" not null,
  workflow_id  text    collate "C" not null,      -- '': every workflow of the team
  kind         text    not null check (kind in ('email', 'id')),
  hash         text    collate "C" not null,
  created_at   bigint  not null,
  primary key (team_id, workflow_id, kind, hash)
);

create table audit (
  team_id      text    collate "C" not null,
  id           text    collate "C" not null,
  action       text    not null,
  actor        text    not null,                  -- the id of a key, or 'cli'
  workflow_id  text    collate "C",
  subject      text    not null,                  -- a keyed hash
  details      text    not null,
  created_at   bigint  not null,
  primary key (team_id, id)
);
