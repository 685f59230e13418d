/**
 * Digests: what matches is gathered, and sent in one message at a certain time.
 *
 *     none open ── a match opens one ──▶ open: gathers matches ── its end ──▶ one event `webhook_digest`
 *         ▲                                                                            │
 *         └────────────────────────────────────────────────────────────────────────────┘
 *
 * Times are in epoch milliseconds. A digest is over at its end, so an event at exactly that time is in the next one.
 */
import { checkSchedule } from './schedule.ts';

/** When the digests of a webhook end: after a period in milliseconds, or each day at a time (`HH:MM`) of a zone. */
export type Digest = { everyMs: number } | { at: string; timeZone: string };

const MIN_EVERY_MS = 60_000;
const MAX_EVERY_MS = 7 * 86_400_000;
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

function cronOf(time: string): string | undefined {
  const [, hour, minute] = TIME.exec(time) ?? [];
  return hour === undefined ? undefined : `${Number(minute)} ${Number(hour)} * * *`;
}
