-- How much teams have done, by hours and days of UTC: written now and then, from what stands in other tables.
create table usage (
  team_id  {text}      not null,
  kind     {text}      not null check (kind in ('team', 'workflow', 'webhook')),
  subject  {text}      not null,                -- the id of the workflow or webhook; '' of the team
  period   {text}      not null check (period in ('hour', 'day')),
  start    {time}      not null,
  counts   {old_text}  not null,                -- JSON: see model/usage.ts
  primary key (team_id, kind, subject, period, start)
) without rowid;           -- only sqlite
) with (fillfactor = 70);  -- only postgres
create index usage_age on usage (period, start);

-- Up to which of a team's events they are counted.
create table usage_place (
  team_id   {text}    primary key,
  sequence  {bigint}  not null
) without rowid;           -- only sqlite
) with (fillfactor = 50);  -- only postgres
