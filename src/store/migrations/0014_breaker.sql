-- Why a webhook's endpoint is held back: the state of its circuit breaker as JSON (model/breaker.ts); null while what is
-- due goes out at once.
alter table webhook add column breaker {old_text};
