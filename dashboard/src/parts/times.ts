/** How times are written: all of the page in one way, which one chooses and the browser keeps. */
import { useSyncExternalStore } from 'react';

/** `relative`: 3 min ago; `local`, `utc`: the time itself. */
export type TimeStyle = 'relative' | 'local' | 'utc';

const KEY = 'flowhook-times';
const listeners = new Set<() => void>();
let style = stored();

/** The way that is chosen. */
export function useTimeStyle(): TimeStyle {
  return useSyncExternalStore(subscribe, () => style);
}

/** Chooses, for every time on the page. */
export function setTimeStyle(chosen: TimeStyle): void {
  style = chosen;
  try {
    localStorage.setItem(KEY, chosen);
  } catch {
    // Storage is forbidden: the choice lasts as long as the page.
  }
  for (const listener of listeners) listener();
}

/** `2026-11-21 03:04:05`, in the zone of the reader or in UTC. */
export function absolute(time: string, zone: 'local' | 'utc'): string {
  const at = new Date(time);
  const shifted = zone === 'utc' ? at : new Date(at.getTime() - at.getTimezoneOffset() * 60_000);
  return `${shifted.toISOString().slice(0, 19).replace('T', ' ')}${zone === 'utc' ? ' UTC' : ''}`;
}

/** `12 s ago`, `in 3 min`, `5 d ago`. */
export function relative(time: string, nowMs: number): string {
  const ms = Date.parse(time) - nowMs;
  const [unit, size] = unitOf(ms);
  const count = Math.floor(Math.abs(ms) / size);
  if (count === 0) return ms > 0 ? 'in a moment' : 'just now';
  return ms > 0 ? `in ${count} ${unit}` : `${count} ${unit} ago`;
}

/** `for 3 min`: how long what began then has lasted. */
export function lasting(time: string, nowMs: number): string {
  const [unit, size] = unitOf(nowMs - Date.parse(time));
  const count = Math.floor(Math.max(0, nowMs - Date.parse(time)) / size);
  return count === 0 ? 'for a moment' : `for ${count} ${unit}`;
}

function unitOf(ms: number): [unit: string, ms: number] {
  return UNITS.find(([, each]) => Math.abs(ms) >= each) ?? ['s', 1_000];
}

const UNITS: [unit: string, ms: number][] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
];

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function stored(): TimeStyle {
  try {
    const value = localStorage.getItem(KEY);
    return value === 'local' || value === 'utc' ? value : 'relative';
  } catch {
    return 'relative';
  }
}
