-- Receivers of ours for a day, and what they were sent.
create table inspector (
  team_id     text    not null,
  id          text    not null,
  status      integer not null,
  delay_ms    integer not null,
  received    integer not null default 0,
  created_at  integer not null,
  expires_at  integer not null,
  primary key (id)
) without rowid;
create index inspector_team on inspector (team_id, created_at, id);
create index inspector_age on inspector (expires_at);

create table inspected_request (
  team_id       text    not null,
  inspector_id  text    not null references inspector (id) on delete cascade,
  number        integer not null,
  received_at   integer not null,
  workflow_id   text,                          -- of the event in it, if there is one
  request       text    not null,              -- JSON, without the body
  body          text    not null,
  primary key (team_id, inspector_id, number)
);
create index inspected_request_of on inspected_request (inspector_id, number);
