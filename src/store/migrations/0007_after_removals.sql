-- Webhooks that were removed, until nothing of them is left.
create index webhook_removed on webhook (deleted_at, team_id, id) where state = 'deleted';

-- How often erasures have rewritten events: what was sent before is not asked any more what came back.
alter table team add column rewrites {bigint} not null default 0;
