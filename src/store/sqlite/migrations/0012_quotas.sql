-- What single teams may have, where it is not what the instance allows all. A table of its own, for claims look it up
-- and the rows of teams are written again and again.
create table quota (
  team_id  text    not null,
  name     text    not null check (name in ('workflows', 'webhooks', 'records', 'runningJobs')),
  most     integer,                              -- null: any number
  primary key (team_id, name)
) without rowid;
