-- Adds the team to the primary key of inspectors, as in all tables of a team: a distributed database needs it. The id is
-- first, because an inspector is found by its id alone.

-- only sqlite
create table new_inspector (
  team_id     text     not null,
  id          text     not null,
  status      integer  not null,
  delay_ms    integer  not null,
  received    integer  not null default 0,
  created_at  integer  not null,
  expires_at  integer  not null,
  primary key (id, team_id)
) without rowid;
insert into new_inspector select team_id, id, status, delay_ms, received, created_at, expires_at from inspector;
create table new_inspected_request (
  team_id       text     not null,
  inspector_id  text     not null,
  number        integer  not null,
  received_at   integer  not null,
  workflow_id   text,
  request       text     not null,
  body          text     not null,
  primary key (team_id, inspector_id, number),
  foreign key (inspector_id, team_id) references new_inspector (id, team_id) on delete cascade
);
insert into new_inspected_request
  select team_id, inspector_id, number, received_at, workflow_id, request, body from inspected_request;
drop table inspected_request;
drop table inspector;
alter table new_inspector rename to inspector;
alter table new_inspected_request rename to inspected_request;
create index inspector_team on inspector (team_id, created_at, id);
create index inspector_age on inspector (expires_at);
create index inspected_request_of on inspected_request (inspector_id, number);

-- only postgres
alter table inspected_request drop constraint inspected_request_inspector_id_fkey;
alter table inspector drop constraint inspector_pkey, add primary key (id, team_id);
alter table inspected_request
  add foreign key (inspector_id, team_id) references inspector (id, team_id) on delete cascade;

-- A distributed database divides teams among its nodes, while all nodes have the keys and sessions of all teams.
alter table api_key drop constraint api_key_team_id_fkey;
alter table session drop constraint session_team_id_fkey;
alter table sign_in_link drop constraint sign_in_link_team_id_fkey;
