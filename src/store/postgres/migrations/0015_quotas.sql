-- A quota for keys. And the ids of teams are compared as in all other tables: a join of columns with different collations
-- cannot use their indexes.
alter table quota drop constraint quota_name_check;
alter table quota
  alter column team_id type text collate "C",
  add check (name in ('workflows', 'webhooks', 'keys', 'records', 'storedBytes', 'runningJobs'));
