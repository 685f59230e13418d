/** Times as people say them. Programs read ISO 8601 with `--json`. */
import { durationWords } from '../std/amounts.ts';

/** `3 min ago` or `in 2 h`, with one unit. Times less than a second away are `1 s ago`. */
export function relativeWords(iso: string, nowMs: number): string {
  const ms = Date.parse(iso) - nowMs;
  const [amount = '', unit = ''] = durationWords(Math.max(1_000, Math.abs(ms))).split(' ');
  const rounded = `${Math.floor(Number(amount))} ${unit}`;
  return ms > 0 ? `in ${rounded}` : `${rounded} ago`;
}

/** `3 min ago`, for a time in the past. The clock of a server may be ahead of this one: such a time is `1 s ago`. */
export function agoWords(iso: string, nowMs: number): string {
  return relativeWords(iso, Math.max(nowMs, Date.parse(iso)));
}

/** `2026-11-22 10:00:05 UTC (3 min ago)`; null for null. */
export function dateWords<T extends string | null>(iso: T, nowMs: number): string | Extract<T, null> {
  if (iso === null) return null as Extract<T, null>;
  return `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC (${relativeWords(iso, nowMs)})`;
}

/** The time since then: `2 h 5 min`. */
export function elapsedWords(iso: string, nowMs: number): string {
  return durationWords(Math.max(0, nowMs - Date.parse(iso)));
}
