-- Who changed what, from where. Lines of before, which told of erasures alone, have none of it.
alter table audit add column actor_kind text;
alter table audit add column actor_name text;
alter table audit add column target_kind text;
alter table audit add column target_id text;
alter table audit add column address text;
alter table audit add column request_id text;
alter table audit add column summary text;
-- They are called by the noun now, as all others.
update audit set action = 'records.erase' where action = 'erase';
-- Of all teams, newest first, and the oldest first when they go.
create index audit_line on audit (id);

-- When a key was used last, written a minute late; and since when anybody looks, of those that are older.
alter table api_key add column last_used_at bigint;
alter table api_key add column watched_from bigint;
update api_key set watched_from = (extract(epoch from now()) * 1000)::bigint;
