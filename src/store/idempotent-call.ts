/** Calls other than queueing and pushing that may carry an idempotency key. */
import { Problem } from '../model/error.ts';

/** How long an idempotency key is remembered. */
export const REMEMBERED_MS = 24 * 3_600_000;

/** A key; with `sent`, a hash of the request, it is refused for a request with another hash. */
export type IdempotencyKey = string | { key: string; sent: string } | null;

export interface IdempotentCall {
  teamId: string;
  operation: 'keys.create' | 'webhooks.test' | 'deliveries.replay' | 'deliveries.startReplay';
  /** The id of what it is called on: the key's scope. */
  target: string;
  idempotencyKey?: IdempotencyKey;
}

/** The two parts of a key; undefined without one. */
export function partsOf(idempotencyKey: IdempotencyKey): { key: string; sent: string | null } | undefined {
  if (idempotencyKey === null) return undefined;
  return typeof idempotencyKey === 'string' ? { key: idempotencyKey, sent: null } : idempotencyKey;
}

/** @throws Problem `idempotency_key_reused` when the first call with a key sent something else; null: not known */
export function refuseOther(first: string | null, sent: string | null): void {
  if (first !== null && sent !== null && first !== sent) throw new Problem('idempotency_key_reused');
}
