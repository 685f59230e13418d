-- When something of a team is next due. Whoever looks for work reads these few columns instead of all rows of all teams:
-- waiting jobs, waiting deliveries, usage to count, old rows to delete (src/store/operations/agenda.ts). Null means that
-- nothing is. The time may be too early, never too late: 0 makes everybody look once.

-- both
alter table team add column jobs_at {time};
alter table team add column lanes_at {time};
alter table team add column usage_at {time};
alter table team add column prune_at {time};
update team set jobs_at = 0, lanes_at = 0, usage_at = 0, prune_at = 0;
create index team_jobs on team (jobs_at) where jobs_at is not null;
create index team_lanes on team (lanes_at) where lanes_at is not null;
create index team_usage on team (usage_at) where usage_at is not null;
create index team_prune on team (prune_at) where prune_at is not null;
