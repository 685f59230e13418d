-- A retry is one replay per webhook. `narrowing` is JSON: which of the selected deliveries the replay sends.
alter table replay add column narrowing {text};
alter table replay add column retry_id {text};
create index replay_retry on replay (team_id, retry_id, webhook_id) where retry_id is not null;
