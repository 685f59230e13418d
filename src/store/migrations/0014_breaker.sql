-- The state of the webhook's circuit breaker as JSON (model/lane.ts); null while due deliveries are sent immediately.
alter table webhook add column breaker {old_text};
