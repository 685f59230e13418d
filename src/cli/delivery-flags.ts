/** The flags of `flowhook webhooks deliveries|replay`. */
import { DELIVERY_STATES, type DeliveryState } from '../model/delivery.ts';
import { parseIsoTime } from '../std/iso-time.ts';
import { UsageError } from './exit.ts';
import { oneOf, wholeNumber } from './find.ts';
import type { Options } from './settings.ts';

export const DEFAULT_DELIVERIES = 20;
const MAX_DELIVERIES = 1_000;

/** Which deliveries a list shows. Times in epoch milliseconds. */
export interface DeliveryFilterFlags {
  limit: number;
  states?: DeliveryState[];
  since?: number;
  until?: number;
}

/** @throws UsageError */
export function filterFrom(options: Options): DeliveryFilterFlags {
  const states = statesFrom(options.state);
  const since = timeFrom('--since', options.since);
  const until = timeFrom('--until', options.until);
  return {
    limit: wholeNumber('--limit', options.limit ?? DEFAULT_DELIVERIES, 1, MAX_DELIVERIES),
    ...(states === undefined ? {} : { states }),
    ...(since === undefined ? {} : { since }),
    ...(until === undefined ? {} : { until }),
  };
}

/** What a replay sends anew: `dead` ones up to now unless told. @throws UsageError */
export function rangeFrom(
  options: Options,
  nowMs: number,
): { states: DeliveryState[]; since: number; until: number } {
  const since = timeFrom('--since', options.since) as number;
  const until = timeFrom('--until', options.until) ?? nowMs;
  if (since > until) throw new UsageError('--since must not be after --until, which is now unless told');
  return { states: statesFrom(options.state) ?? ['dead'], since, until };
}

/** @throws UsageError unless one delivery is named, and nothing else said */
export function refuseRange(id: string, options: Options): void {
  if (options.until !== undefined || options.state !== undefined) {
    throw new UsageError('--until and --state belong to --since: replay WEBHOOK --since TIME');
  }
  if (id.startsWith('wh_')) {
    throw new UsageError('Of a webhook, say since when: replay WEBHOOK --since 2026-11-20T10:00Z');
  }
}

function statesFrom(names: unknown): DeliveryState[] | undefined {
  if (names === undefined) return undefined;
  return String(names)
    .split(',')
    .map((name) => oneOf('--state', name.trim(), DELIVERY_STATES));
}

export function timeFrom(flag: string, value: unknown): number | undefined {
  if (value === undefined) return undefined;
  const ms = parseIsoTime(String(value));
  if (ms !== undefined) return ms;
  throw new UsageError(`${flag} must be a time with its zone, such as 2026-11-20T10:00Z, found "${value}"`);
}
