-- Digests: quiet records whose matches are gathered for one message (src/model/digest.ts).

-- both
alter table quiet_record add column matches {integer};  -- how often it has matched; null: the record is in a cooldown
create index quiet_record_digest on quiet_record (team_id, webhook_id) where matches is not null;
