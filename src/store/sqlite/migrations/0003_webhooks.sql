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
