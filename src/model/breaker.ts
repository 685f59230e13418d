/** The circuit breaker of a webhook as it is written down, so that everybody can read why an endpoint is held back. */
import { type LaneHealth, MAX_FAULTS } from './lane.ts';

/** Why an endpoint gets less than is due. Times in epoch milliseconds. */
export interface Breaker {
  /** `closed`: it rests because the endpoint asked for it with `Retry-After`. */
  state: LaneHealth['state'];
  /** Since when it has been held back. */
  since: number;
  /** Nothing is sent before. */
  until: number;
  /** The last so many attempts failed. */
  failures: number;
}

/** A shorter rest is over before anybody has read of it. */
const WORTH_WRITING_MS = 1_000;

/**
 * What to write down after an attempt: null while what is due goes out at once.
 *
 * @param known what was written down before
 */
export function breakerOf(health: LaneHealth, known: Breaker | null, nowMs: number): Breaker | null {
  const { state, restsUntil: until, failures } = health;
  if (state === 'closed' && until - nowMs < WORTH_WRITING_MS) return null;
  return { state, since: known?.since ?? nowMs, until, failures };
}

/** Whether one says so much the same as the other that it need not be written. */
export function isSameBreaker(one: Breaker | null, other: Breaker | null): boolean {
  if (one === null || other === null) return one === other;
  return one.state === other.state && Math.abs(one.until - other.until) < WORTH_WRITING_MS;
}

/** Why it is held back: a sentence without a full stop; null when it is not. */
export function breakerReason({ state, until, failures }: Breaker, nowMs: number): string | null {
  switch (state) {
    case 'closed':
      return until > nowMs ? 'The endpoint asked for a pause (Retry-After)' : null;
    case 'half_open':
      return 'The endpoint answers again, and gets few requests at a time until some in a row have succeeded';
    case 'open':
      return failures >= MAX_FAULTS
        ? `The endpoint has failed ${failures} times in a row`
        : 'At least half of the attempts within a minute have failed';
  }
}
