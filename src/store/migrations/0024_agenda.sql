-- When something of a team is next due. A search for work reads these few columns instead of all rows of all teams:
-- waiting jobs, waiting deliveries, usage to count, old rows to delete (src/store/operations/agenda.ts). Null means that
-- nothing is. The time may be too early, never too late. Teams that have been active get a first look: at jobs and
-- deliveries if any wait, at old rows within a day, so that not all teams are looked at in one minute. Teams without
-- events may have audit lines and inspectors, which become old as well.

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
  prune_at = cast(unixepoch() as integer) * 1000 + abs(random()) % 86400000 -- only sqlite
  prune_at = (extract(epoch from clock_timestamp()) * 1000 + random() * 86400000)::bigint -- only postgres
;
update team set prune_at = null where
  not exists (select 1 from event where event.team_id = team.id)
  and not exists (select 1 from audit where audit.team_id = team.id)
  and not exists (select 1 from inspector where inspector.team_id = team.id);
create index team_jobs on team (jobs_at) where jobs_at is not null;
create index team_lanes on team (lanes_at) where lanes_at is not null;
create index team_usage on team (usage_at) where usage_at is not null;
create index team_prune on team (prune_at) where prune_at is not null;
