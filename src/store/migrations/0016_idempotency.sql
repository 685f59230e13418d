-- What was sent with an idempotency key, as a hash: the key is refused for anything else.
alter table idempotency add column sent {old_text};
