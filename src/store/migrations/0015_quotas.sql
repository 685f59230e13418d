-- A quota for keys.

-- only sqlite
create table new_quota (
  team_id  text    not null,
  name     text    not null check (name in ('workflows', 'webhooks', 'keys', 'records', 'storedBytes', 'runningJobs')),
  most     integer,                              -- null: no limit
  primary key (team_id, name)
) without rowid;
insert into new_quota select team_id, name, most from quota;
drop table quota;
alter table new_quota rename to quota;

-- only postgres
-- Also gives `team_id` the collation of all other tables: a join of columns with different collations cannot use their
-- indexes.
alter table quota drop constraint quota_name_check;
alter table quota
  alter column team_id type text collate "C",
  add check (name in ('workflows', 'webhooks', 'keys', 'records', 'storedBytes', 'runningJobs'));
