-- The tables of version 1: SQLite alone has them, and those of version 2. Times are epoch milliseconds, lists and objects JSON text.
-- team_id leads every primary key and unique index, so that the tables can be distributed by team, except in
-- team, api_key and instance, which are small. (SQLite: record names its workflow by a small integer instead.)

-- only sqlite
create table instance (
  name   text primary key,
  value  text not null
);

create table team (
  id               text    primary key,
  slug             text    not null unique,
  last_sequence    integer not null default 0,  -- of its events
  created_at       integer not null
);

create table api_key (
  id          text    primary key,
  team_id     text    not null references team (id),
  name        text    not null,
  hash        text    not null unique,
  prefix      text    not null,
  scopes      text    not null,
  created_at  integer not null,
  expires_at  integer,
  revoked_at  integer
);

create table signing_key (
  team_id      text    not null,
  id           text    not null,
  public_key   text    not null,
  private_key  text    not null,               -- sealed
  created_at   integer not null,
  primary key (team_id, id)
) without rowid;

create table workflow (
  team_id          text    not null,
  id               text    not null,
  number           integer not null unique,     -- what record calls it
  definition_hash  text    not null,
  paused_at        integer,
  archived_at      integer,
  current_version  integer not null default 0,
  oldest_version   integer not null default 0,
  pruned_version   integer not null default 0,  -- rows removed up to this version are deleted
  erasures         integer not null default 0,
  next_seq         integer not null default 1,
  staged_added     integer not null default 0,  -- what the run under way has written, counted as it is written
  staged_changed   integer not null default 0,
  staged_removed   integer not null default 0,
  staged_largest   integer not null default 0,  -- bytes of the longest record that a run has written so far
  created_at       integer not null,
  updated_at       integer not null,
  definition       text    not null,             -- the two that may be long come last
  state            text,                         -- what the last published run left for the next
  primary key (team_id, id),
  check (oldest_version <= current_version)
);

create table version (
  team_id       text    not null,
  workflow_id   text    not null,
  number        integer not null,
  job_id        text    not null,
  total         integer not null,
  added         integer not null,
  changed       integer not null,
  removed       integer not null,
  largest       integer not null,               -- bytes of its longest record, or more
  fields        text    not null default '[]',  -- the names that its records have, or more
  published_at  integer not null,
  primary key (team_id, workflow_id, number)
) without rowid;

create table job (
  team_id             text    not null,
  id                  text    not null,
  workflow_id         text    not null,
  slot                integer not null check (slot in (0, 1)),
  state               text    not null
                      check (state in ('queued', 'running', 'retrying', 'finished', 'failed', 'canceled')),
  origin              text    not null check (origin in ('api', 'schedule', 'cli', 'push')),
  attempt             integer not null default 0,
  failures            integer not null default 0,
  crashes             integer not null default 0,
  run_at              integer not null,
  node_id             text,
  lease_until         integer,
  process_pid         integer,
  process_started_at  text,
  reason              text,
  error               text,
  version             integer,
  records             text,
  created_at          integer not null,
  started_at          integer,
  finished_at         integer,
  primary key (team_id, id),
  check ((state = 'running') = (node_id is not null and lease_until is not null)),
  check ((state in ('finished', 'failed', 'canceled')) = (finished_at is not null)),
  check (state <> 'failed' or (reason is not null and error is not null))
);
create unique index job_slot on job (team_id, workflow_id, slot) where state in ('queued', 'running', 'retrying');
create index job_due on job (run_at) where state in ('queued', 'retrying') and slot = 0;
create index job_running on job (node_id) where state = 'running';

create table idempotency (
  team_id     text    not null,
  operation   text    not null,
  target      text    not null,                 -- what the operation was called on
  key         text    not null,
  result_id   text    not null,
  created_at  integer not null,
  primary key (team_id, operation, target, key)
) without rowid;
create index idempotency_age on idempotency (created_at);

create table record (
  workflow    integer not null,                 -- workflow.number
  seq         integer not null,                 -- the order of first appearance
  added_in    integer not null,
  id          text    not null,
  removed_in  integer,                          -- before the body, which may be long
  body        text    not null,                 -- the record's JSON text, as it is sent
  primary key (workflow, seq, added_in),
  check (removed_in is null or removed_in > added_in)
) without rowid;
create unique index record_current on record (workflow, id) where removed_in is null;
create index record_added on record (workflow, added_in);
create index record_removed on record (workflow, removed_in) where removed_in is not null;
create index record_closed on record (workflow, id) where removed_in is not null;

create table event (
  team_id      text    not null,
  sequence     integer not null,
  id           text    not null,
  type         text    not null,
  workflow_id  text,
  job_id       text,
  body         text    not null,                -- the exact bytes that are signed
  created_at   integer not null,
  primary key (team_id, sequence)
) without rowid;
create unique index event_id on event (team_id, id);

create table webhook (
  team_id        text    not null,
  id             text    not null,
  workflow_id    text,                          -- null: every workflow of the team
  url            text    not null,
  events         text    not null,
  event_set      text    not null,
  fires_for      text    not null,              -- '|workflow_finished|', '|*|': see model/webhook.ts
  state          text    not null check (state in ('active', 'paused', 'deleted')),
  secret         text    not null,              -- sealed
  created_at     integer not null,
  deleted_at     integer,
  primary key (team_id, id),
  check ((state = 'deleted') = (deleted_at is not null))
);
create unique index webhook_same on webhook (team_id, coalesce(workflow_id, ''), url, event_set) where state <> 'deleted';

create table delivery (
  team_id         text    not null,
  id              text    not null,
  webhook_id      text    not null,
  event_sequence  integer not null,
  state           text    not null check (state in ('waiting', 'delivered', 'dead', 'canceled')),
  attempt         integer not null default 0,
  next_at         integer,
  created_at      integer not null,
  primary key (team_id, id),
  check ((state = 'waiting') = (next_at is not null))
) without rowid;
create index delivery_due on delivery (team_id, webhook_id, next_at, id) where state = 'waiting';
create index delivery_webhook on delivery (team_id, webhook_id, id);

create table attempt (
  team_id      text    not null,
  delivery_id  text    not null,
  number       integer not null,
  started_at   integer not null,
  duration_ms  integer not null,
  outcome      text    not null,
  status       integer,
  error        text,
  response     text,
  primary key (team_id, delivery_id, number)
) without rowid;

-- Who must not come back: keyed hashes, and nothing that names anybody.
create table suppression (
  team_id      text    not null,
  workflow_id  text    not null,                -- '': every workflow of the team
  kind         text    not null check (kind in ('email', 'id')),
  hash         text    not null,
  created_at   integer not null,
  primary key (team_id, workflow_id, kind, hash)
) without rowid;

create table audit (
  team_id      text    not null,
  id           text    not null,
  action       text    not null,
  actor        text    not null,                -- the id of a key, or 'cli'
  workflow_id  text,
  subject      text    not null,                -- a keyed hash
  details      text    not null,
  created_at   integer not null,
  primary key (team_id, id)
) without rowid;
