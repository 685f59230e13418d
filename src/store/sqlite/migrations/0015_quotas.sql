-- A quota for keys.
create table new_quota (
  team_id  text    not null,
  name     text    not null check (name in ('workflows', 'webhooks', 'keys', 'records', 'storedBytes', 'runningJobs')),
  most     integer,                              -- null: any number
  primary key (team_id, name)
) without rowid;
insert into new_quota select team_id, name, most from quota;
drop table quota;
alter table new_quota rename to quota;
