/** A call that may carry an idempotency key, beside the jobs that are found again by theirs. */

/** How long an idempotency key is remembered. */
export const REMEMBERED_MS = 24 * 3_600_000;

export interface IdempotentCall {
  teamId: string;
  operation: 'webhooks.test' | 'deliveries.replay' | 'deliveries.startReplay';
  /** What it is called on: a key holds for that alone. */
  target: string;
  idempotencyKey?: string | null;
}
