-- Rules of webhooks: what a webhook receives, and in which form (src/model/rule.ts, src/store/operations/rules/decisions.ts).
-- An event gets a pending decision, instead of a delivery, for each webhook with a rule.

-- both
alter table webhook add column name {text};
alter table webhook add column rule {text};                             -- JSON; null without a rule
alter table webhook add column rule_revision {integer};
alter table webhook add column rule_mistake {text};                     -- JSON: the last error of its rule at run time
alter table webhook add column rule_turn {bigint} not null default 0;   -- how many steps its rule has taken
-- Null unless they differ from the body and the id of the event.
alter table delivery add column body {text};
alter table delivery add column message_id {text};
alter table team add column decisions_at {time};
create index team_decisions on team (decisions_at) where decisions_at is not null;

-- A replay sends each message of an event once.
drop index delivery_replay;
create unique index delivery_replay on delivery (team_id, replay_id, event_sequence, coalesce(message_id, ''))
  where replay_id is not null;

-- Every rule that was ever in force. A decision names its revision, because a new rule does not apply to earlier events.
create table webhook_rule (
  team_id     {text}     not null,
  webhook_id  {text}     not null,
  revision    {integer}  not null,
  rule        {text}     not null,
  created_at  {time}     not null,
  primary key (team_id, webhook_id, revision)
) without rowid;  -- only sqlite
);                -- only postgres

create table decision (
  team_id         {text}     not null,
  event_sequence  {bigint}   not null,
  webhook_id      {text}     not null,
  revision        {integer}  not null,
  state           {text}     not null,    -- pending, sent, filtered
  progress        {text},                 -- JSON, while it is pending
  matched         {integer},
  examined        {integer},
  reason          {text},                 -- why nothing was sent
  delivery_id     {text},
  created_at      {time}     not null,
  primary key (team_id, event_sequence, webhook_id)
) without rowid;                                                                   -- only sqlite
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);  -- only postgres
create index decision_state on decision (team_id, state, webhook_id, event_sequence);

-- Records about which a webhook hears nothing until their cooldown ends.
create table quiet_record (
  team_id         {text}     not null,
  webhook_id      {text}     not null,
  workflow_id     {text}     not null,
  record_key      {text}     not null,    -- the id or, if it is long, a hash of it
  record_id       {text}     not null,
  until           {time}     not null,
  sent            {text},                 -- JSON of the record as it was sent; null if it was removed
  newest          {text},                 -- the same of the newest version that was seen
  event_sequence  {bigint}   not null,    -- of the newest event that the row covers
  revision        {integer}  not null,
  primary key (team_id, webhook_id, workflow_id, record_key)
) without rowid;                                                                   -- only sqlite
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);  -- only postgres
create index quiet_record_end on quiet_record (team_id, webhook_id, until, workflow_id, record_key);
