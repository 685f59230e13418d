-- For pages of a team's webhooks and workflows, without removed or archived ones, which may be many more.
create index webhook_listed on webhook (team_id, id) where state <> 'deleted';
create index workflow_listed on workflow (team_id, id) where archived_at is null;
