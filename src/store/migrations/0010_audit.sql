-- Who changed what, from where. Lines of before, which told of erasures alone, have none of it.
alter table audit add column actor_kind {old_text};
alter table audit add column actor_name {old_text};
alter table audit add column target_kind {old_text};
alter table audit add column target_id {old_text};
alter table audit add column address {old_text};
alter table audit add column request_id {old_text};
alter table audit add column summary {old_text};
-- They are called by the noun now, as all others.
update audit set action = 'records.erase' where action = 'erase';
-- Of all teams, newest first, and the oldest first when they go.
create index audit_line on audit (id);

-- When a key was used last, written a minute late; and since when anybody looks, of those that are older.
alter table api_key add column last_used_at {time};
alter table api_key add column watched_from {time};
update api_key set watched_from = unixepoch() * 1000;                          -- only sqlite
update api_key set watched_from = (extract(epoch from now()) * 1000)::bigint;  -- only postgres
