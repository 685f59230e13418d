-- The trace that something belongs to, as `traceparent`; null where nothing is traced.
alter table job add column trace {old_text};
alter table event add column trace {old_text};
