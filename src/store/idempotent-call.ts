/** Calls other than queueing and pushing that may carry an idempotency key. */

/** How long an idempotency key is remembered. */
export const REMEMBERED_MS = 24 * 3_600_000;

export interface IdempotentCall {
  teamId: string;
  operation: 'webhooks.test' | 'deliveries.replay' | 'deliveries.startReplay';
  /** The id of what it is called on: the key's scope. */
  target: string;
  idempotencyKey?: string | null;
}
