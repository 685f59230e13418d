-- Feeds of the changes of a workflow, at secret addresses (src/model/messages/feed.ts, src/store/operations/feeds/feeds.ts).
create table feed (
  team_id      {text}     not null,
  id           {text}     not null,
  workflow_id  {text}     not null,
  title        {text},
  filter       {text},
  entries      {text}     not null,    -- record, version
  window_ms    {bigint}   not null,
  most         {integer}  not null,    -- entries
  token        {text}     not null,    -- sealed
  token_hash   {text}     not null,
  revision     {integer}  not null,    -- of the settings
  created_at   {time}     not null,
  changed_at   {time}     not null,
  primary key (team_id, id)
) without rowid;  -- only sqlite
);                -- only postgres
create index feed_workflow on feed (team_id, workflow_id, id);
create unique index feed_token on feed (team_id, token_hash);

-- The addresses that feeds had before they were revoked or rotated.
create table ended_feed (
  team_id     {text}  not null,
  token_hash  {text}  not null,
  ended_at    {time}  not null,
  primary key (team_id, token_hash)
) without rowid;  -- only sqlite
);                -- only postgres
create index ended_feed_age on ended_feed (team_id, ended_at, token_hash);
