-- When something of a team is next due. A search for work reads these few columns instead of all rows of all teams:
-- waiting jobs, waiting deliveries, usage to count, old rows to delete (src/store/operations/agenda.ts). Null means that
-- nothing is. The time may be too early, never too late. Teams that have been active get a first look: at jobs and
-- deliveries if any wait, at old rows within a day, so that not all teams are looked at in one minute.

-- both
alter table team add column jobs_at {time};
alter table team add column lanes_at {time};
alter table team add column usage_at {time};
alter table team add column prune_at {time};
update team set
  jobs_at = (select 0 from job
             where job.team_id = team.id and state in ('queued', 'retrying') and slot = 0 and parked = 0 limit 1),
  lanes_at = (select 0 from delivery
              where delivery.team_id = team.id and state = 'waiting' and event_sequence > 0 limit 1),
  usage_at = (select 0 from event where event.team_id = team.id limit 1),
  prune_at = (select cast(unixepoch() as integer) * 1000 + abs(random()) % 86400000 -- only sqlite
  prune_at = (select (extract(epoch from clock_timestamp()) * 1000 + random() * 86400000)::bigint -- only postgres
              from event where event.team_id = team.id limit 1);
create index team_jobs on team (jobs_at) where jobs_at is not null;
create index team_lanes on team (lanes_at) where lanes_at is not null;
create index team_usage on team (usage_at) where usage_at is not null;
create index team_prune on team (prune_at) where prune_at is not null;
