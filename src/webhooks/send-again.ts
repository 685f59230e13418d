/** What is said to somebody who asks to send deliveries again, over HTTP and at the shell. Sentences without a full stop. */

import { DELIVERY_STATES, type DeliveryState } from '../model/delivery.ts';
import { breakerReason } from '../model/lane.ts';
import type { Webhook } from '../model/webhook.ts';
import { countWords, grouped } from '../std/amounts.ts';
import type { ReplayPlan } from './replay-plan.ts';

/**
 * Why a webhook does not simply get what is sent again; null when it does.
 *
 * @param nowMs epoch milliseconds
 */
export function whatHoldsBack(
  { state, breaker }: Pick<Webhook, 'state' | 'breaker'>,
  nowMs: number,
): string | null {
  if (state === 'paused') return 'The webhook is paused: nothing is sent until it is resumed';
  const reason = breaker === null ? null : breakerReason(breaker, nowMs);
  if (reason === null || breaker?.state === 'half_open') return reason;
  return `${reason}: one request tries it now, and the others follow once it succeeds`;
}

/** What becomes of a test event. @param breaker why the webhook is held back, and when what waits goes out (ISO 8601) */
export function testWords(
  { state }: Pick<Webhook, 'state'>,
  { reason, nextAttemptAt }: { reason: string | null; nextAttemptAt: string | null },
): string {
  if (state === 'paused') return 'The webhook is paused: the test is sent when it is resumed';
  if (reason === null) return 'Test event on its way';
  // Asked for again with its idempotency key, the test may be over.
  if (nextAttemptAt === null) return `The test does not wait any more. ${reason}`;
  return `The test waits. ${reason}; the next attempt goes out at ${nextAttemptAt}`;
}

/** @param asked how many deliveries were named; @param retried how many of them still waited */
export function sentAgainWords({ asked, retried }: { asked: number; retried: number }): string {
  if (retried === 0) return asked === 1 ? 'The event is on its way once more' : 'On their way once more';
  if (asked === 1) return 'The event was still waiting; the same delivery is due now';
  return `On their way; ${grouped(retried)} of them still waited, and are due now`;
}

/** `It would send 6 events: 4 waiting, 2 dead`; of nothing, what there is instead. */
export function planWords({
  count,
  states,
  byState,
  isComplete,
}: Pick<ReplayPlan, 'count' | 'states' | 'byState' | 'isComplete'>): string {
  const least = isComplete ? '' : 'at least ';
  if (count > 0) {
    return `It would send ${least}${countWords(count, 'event')}: ${statesWords(states, byState)}`;
  }
  const others = DELIVERY_STATES.filter((state) => !states.includes(state) && byState[state] > 0);
  const nothing = `There is nothing to send: no delivery of this period is ${states.join(' or ')}`;
  return others.length === 0 ? nothing : `${nothing}. Others are: ${statesWords(others, byState)}`;
}

/** `4 waiting, 2 dead`. */
export function statesWords(
  states: readonly DeliveryState[],
  counts: Readonly<Record<DeliveryState, number>>,
): string {
  return states
    .filter((state) => counts[state] > 0)
    .map((state) => `${grouped(counts[state])} ${state}`)
    .join(', ');
}

/** Joins sentences without a full stop; null is none. */
export function sentences(...parts: (string | null)[]): string {
  return parts.filter((part) => part !== null).join('. ');
}
