-- Freshness: workflows that should have a successful run within a time (src/model/quality/freshness.ts,
-- src/store/operations/quality/freshness.ts).

-- both
alter table workflow add column fresh_ms {bigint};      -- null: the definition says nothing about freshness
alter table workflow add column fresh_due_at {time};    -- when the workflow becomes stale; null without `fresh_ms`
alter table workflow add column stale_since {time};
alter table team add column fresh_at {time};
create index team_fresh on team (fresh_at) where fresh_at is not null;
create index workflow_stale on workflow (team_id, id) where stale_since is not null;

-- On SQLite, the row of a workflow is long, so its index contains what the search reads. On PostgreSQL, each change of
-- an indexed column adds an entry to every index of the table, so that index lacks the time, which every run changes.
create index workflow_fresh on workflow (team_id, fresh_due_at, fresh_ms) where fresh_ms is not null and stale_since is null;  -- only sqlite
create index workflow_fresh on workflow (team_id, id) where fresh_ms is not null and stale_since is null;  -- only postgres
