/**
 * Digests: what matches is gathered, and sent in one message at a certain time.
 *
 *     none open ── a match opens one ──▶ open: gathers matches ── its end ──▶ one event `webhook_digest`
 *         ▲                                                                            │
 *         └────────────────────────────────────────────────────────────────────────────┘
 *
 * Times are in epoch milliseconds. A digest is over at its end, so an event at exactly that time is in the next one.
 */
import type { Change } from './quiet.ts';
import { checkSchedule, nextRunAt } from './schedule.ts';

/** When the digests of a webhook end: after a period in milliseconds, or each day at a time (`HH:MM`) of a zone. */
export type Digest = { everyMs: number } | { at: string; timeZone: string };

const MIN_EVERY_MS = 60_000;
const MAX_EVERY_MS = 7 * 86_400_000;
const DAY_MS = 86_400_000;
const TIME = /^([01]\d|2[0-3]):([0-5]\d)$/;

/** Describes what is wrong with a digest, as the predicate of a sentence; undefined if it is valid. */
export function digestMistake(digest: Digest): string | undefined {
  if ('everyMs' in digest) {
    const { everyMs } = digest;
    const isInRange = Number.isSafeInteger(everyMs) && everyMs >= MIN_EVERY_MS && everyMs <= MAX_EVERY_MS;
    return isInRange ? undefined : 'must be a duration from "1m" to "7d", such as "30m" or "1h"';
  }
  const cron = cronOf(digest.at);
  if (cron === undefined)
    return `must be a time from "00:00" to "23:59", such as "08:00", found "${digest.at}"`;
  return checkSchedule(cron, digest.timeZone);
}

/**
 * When a digest ends that is opened by an event at this time: always later, and at most 7 days and, for a time of day, 25
 * hours later. If clocks go forward over the time of day, it ends at the end of the gap; if they go back over it, the
 * first time.
 */
export function digestEnd(digest: Digest, at: number): number {
  if ('everyMs' in digest) return at + digest.everyMs;
  const cron = cronOf(digest.at);
  if (cron === undefined) return at + DAY_MS;
  return endOfDay(cron, digest.timeZone, at) ?? endOfDay(cron, 'UTC', at) ?? at + DAY_MS;
}

/** Undefined if this computer does not know the zone, although the one did that saved the rule. */
function endOfDay(cron: string, timezone: string, at: number): number | undefined {
  if (checkSchedule(cron, timezone) !== undefined) return undefined;
  return nextRunAt({ cron, timezone, missed: 'run' }, at) ?? undefined;
}

function cronOf(time: string): string | undefined {
  const [, hour, minute] = TIME.exec(time) ?? [];
  return hour === undefined ? undefined : `${Number(minute)} ${Number(hour)} * * *`;
}

/** A record in a digest. Texts are its JSON; null: it does not exist. */
export interface Gathered {
  /** The state before the first match. */
  sent: string | null;
  newest: string | null;
  /** How often it has matched. */
  matches: number;
}

/**
 * What a digest knows of a record after a difference: its state before the first match, and its newest one, also if the
 * difference does not match. Undefined if nothing of the record has matched yet.
 */
export function gather(
  known: Gathered | undefined,
  { before, after }: Change,
  isMatch: boolean,
): Gathered | undefined {
  if (known === undefined) return isMatch ? { sent: before, newest: after, matches: 1 } : undefined;
  return { ...known, newest: after, matches: known.matches + (isMatch ? 1 : 0) };
}
