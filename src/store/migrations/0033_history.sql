-- How long a workflow keeps versions, and how many bytes older versions cost (src/store/operations/versions.ts).

-- both
alter table workflow add column keep_versions {integer};  -- null: the default
alter table workflow add column keep_ms {bigint};         -- null: the default
alter table workflow add column staged_replaced {bigint} not null default 0;  -- bytes that the running job has closed
-- Bytes of all records that this version and earlier ones have closed; null in versions of earlier programs.
alter table version add column replaced_bytes {bigint};
