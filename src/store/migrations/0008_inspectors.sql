-- Receivers of ours for a day, and what they were sent.
create table inspector (
  team_id     {text}     not null,
  id          {text}     not null,
  status      {integer}  not null,
  delay_ms    {integer}  not null,
  received    {bigint}   not null default 0,
  created_at  {time}     not null,
  expires_at  {time}     not null,
  primary key (id)
) without rowid;           -- only sqlite
) with (fillfactor = 50);  -- only postgres
create index inspector_team on inspector (team_id, created_at, id);
create index inspector_age on inspector (expires_at);

create table inspected_request (
  team_id       {text}      not null,
  inspector_id  {text}      not null references inspector (id) on delete cascade,
  number        {bigint}    not null,
  received_at   {time}      not null,
  workflow_id   {text},                       -- of the event in it, if there is one
  request       {old_text}  not null,         -- JSON, without the body
  body          {old_text}  not null,
  primary key (team_id, inspector_id, number)
);
create index inspected_request_of on inspected_request (inspector_id, number);
