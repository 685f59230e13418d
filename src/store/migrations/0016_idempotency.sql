-- A hash of the request that was sent with an idempotency key: the key is refused for another request.
alter table idempotency add column sent {old_text};
