-- Counting usage and deleting old rows visit one team at a time, so their indexes begin with the team.

-- both
drop index attempt_age;
create index attempt_started on attempt (team_id, started_at);
drop index usage_age;
create index usage_start on usage (team_id, period, start);
drop index webhook_removed;
create index webhook_removed on webhook (team_id, deleted_at, id) where state = 'deleted';
drop index replay_age;
drop index inspector_age;

-- Up to which start time a team's attempts are counted. Until now, it was one time for all teams.
alter table usage_place add column attempts_until {time} not null default 0;
update usage_place set attempts_until = coalesce((select value from instance where name = 'usage_counted_until'), '0')::bigint;  -- only postgres
update usage_place set attempts_until = coalesce((select value from instance where name = 'usage_counted_until'), '0') + 0;      -- only sqlite
