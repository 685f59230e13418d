/** Formats times for people. Programs read ISO 8601 times with `--json`. */
import { durationWords } from '../std/amounts.ts';

/** Formats a time relative to now, with one unit: `3 min ago` or `in 2 h`. The shortest distance is 1 s. */
export function relativeWords(iso: string, nowMs: number): string {
  const ms = Date.parse(iso) - nowMs;
  const [amount = '', unit = ''] = durationWords(Math.max(1_000, Math.abs(ms))).split(' ');
  const rounded = `${Math.floor(Number(amount))} ${unit}`;
  return ms > 0 ? `in ${rounded}` : `${rounded} ago`;
}

/**
 * Formats a time in the past: `3 min ago`. A server's clock may be ahead of the local clock, so a time in the future is
 * shown as `1 s ago`.
 */
export function agoWords(iso: string, nowMs: number): string {
  return relativeWords(iso, Math.max(nowMs, Date.parse(iso)));
}

/** Formats a time as `2026-11-22 10:00:05 UTC (3 min ago)`. Returns null for null. */
export function dateWords<T extends string | null>(iso: T, nowMs: number): string | Extract<T, null> {
  if (iso === null) return null as Extract<T, null>;
  return `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC (${relativeWords(iso, nowMs)})`;
}

/** Formats the time that has passed since `iso`: `2 h 5 min`. */
export function elapsedWords(iso: string, nowMs: number): string {
  return durationWords(Math.max(0, nowMs - Date.parse(iso)));
}
