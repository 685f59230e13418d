/** The flags of `flowhook webhooks`. */
import type { WebhookSettings } from 'flowhook-client';
import { DELIVERY_STATES, type DeliveryState, NOT_ARRIVED } from '../model/delivery.ts';
import { eventNamesMistake } from '../model/event.ts';
import { MAX_EVENTS, urlMistake } from '../model/webhook.ts';
import { changesFrom } from '../webhooks/change.ts';
import { DEFAULT_OVERLAP_HOURS, MAX_OVERLAP_HOURS } from '../webhooks/rotate.ts';
import { UsageError } from './exit.ts';
import { someOf, timeFrom, wholeNumber } from './flag-values.ts';
import type { Options } from './settings.ts';

/**
 * The names of `--events`; every event when the flag is missing.
 *
 * @throws UsageError for a name that never fires: a subscription to it would hear nothing
 */
export function eventNames(options: Options): string[] {
  const names = String(options.events ?? '*')
    .split(',')
    .map((name) => name.trim());
  if (names.length > MAX_EVENTS) throw new UsageError(`--events takes at most ${MAX_EVENTS} names`);
  const mistake = eventNamesMistake(names);
  if (mistake !== undefined) throw new UsageError(`--events: ${mistake}`);
  return names;
}

/** @throws UsageError unless a webhook can have this URL */
export function refuseWrongUrl(url: string): void {
  const mistake = urlMistake(url)?.replace('`webhookUrl`', `The URL "${url}"`);
  if (mistake === undefined) return;
  const whole = `http://${url}`;
  const advice = !url.includes('://') && urlMistake(whole) === undefined ? `. Did you mean ${whole}?` : '';
  throw new UsageError(mistake + advice);
}

/** What `set` changes; what is not named stays as it is. @throws UsageError; Problem `field_invalid` */
export function settingsFrom({ ordered, rate, timeout, header, headers }: Options): WebhookSettings {
  // Checked here also for a server: as JSON, a number that is none would be null, which means no limit.
  return changesFrom({
    ...(ordered === undefined ? {} : { ordered: ordered === true }),
    ...(rate === undefined ? {} : { ratePerSecond: rate === 'none' ? null : Number(rate) }),
    ...(timeout === undefined ? {} : { timeoutMs: Math.round(Number(timeout) * 1_000) }),
    ...(headers === false ? { headers: null } : header === undefined ? {} : { headers: headersFrom(header) }),
  });
}

/** For how long the old secret also signs. @throws UsageError */
export function overlapHoursFrom(options: Options): number {
  const hours = Number(options.overlapHours ?? DEFAULT_OVERLAP_HOURS);
  if (hours >= 0 && hours <= MAX_OVERLAP_HOURS) return hours;
  throw new UsageError(
    `--overlap-hours must be a number from 0 to ${MAX_OVERLAP_HOURS}, found "${options.overlapHours}"`,
  );
}

function headersFrom(lines: unknown): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const line of lines as string[]) {
    const [, name, value] = /^([^:]+):\s*(.*)$/.exec(line) ?? [];
    if (name === undefined) throw new UsageError(`--header must be name:value, found "${line}"`);
    headers[name] = value ?? '';
  }
  return headers;
}

export const DEFAULT_DELIVERIES = 20;
const MAX_DELIVERIES = 1_000;

/** Which deliveries are listed. Times in epoch milliseconds. */
export interface DeliveryFilterFlags {
  limit: number;
  states?: DeliveryState[];
  since?: number;
  until?: number;
}

/** @throws UsageError */
export function filterFrom(options: Options): DeliveryFilterFlags {
  const states = someOf('--state', options.state, DELIVERY_STATES);
  const since = timeFrom('--since', options.since);
  const until = timeFrom('--until', options.until);
  return {
    limit: wholeNumber('--limit', options.limit ?? DEFAULT_DELIVERIES, 1, MAX_DELIVERIES),
    ...(states === undefined ? {} : { states }),
    ...(since === undefined ? {} : { since }),
    ...(until === undefined ? {} : { until }),
  };
}

/** Which deliveries a replay sends again: by default all that have not arrived, up to now. @throws UsageError */
export function rangeFrom(
  options: Options,
  nowMs: number,
): { states: DeliveryState[]; since: number; until: number } {
  const since = timeFrom('--since', options.since) as number;
  const until = timeFrom('--until', options.until) ?? nowMs;
  if (since > until) throw new UsageError('--since must not be after --until, which is now unless told');
  return { states: someOf('--state', options.state, DELIVERY_STATES) ?? [...NOT_ARRIVED], since, until };
}

/** @throws UsageError unless a single delivery is named, without flags of a range */
export function refuseRange(id: string, options: Options): void {
  if (options.until !== undefined || options.state !== undefined || options.dryRun === true) {
    throw new UsageError('--until, --state and --dry-run belong to --since: replay WEBHOOK --since TIME');
  }
  if (id.startsWith('wh_')) {
    throw new UsageError('Of a webhook, say since when: replay WEBHOOK --since 2026-11-20T10:00Z');
  }
}
