/** Times for people, in their zone. */

import { remembered } from '../../std/remembered.ts';

const MAX_ZONES = 100;
const formats = new Map<string, Intl.DateTimeFormat>();

/** `24 Nov 2026, 09:30 CET`. A zone that this version of Node does not know is replaced by UTC. */
export function zonedTime(ms: number, timeZone: string): string {
  return formatOf(timeZone).format(ms);
}

/** Like `zonedTime`, for a time in ISO 8601. Other values are returned as text. */
export function zonedIso(value: unknown, timeZone: string): string {
  const ms = typeof value === 'string' ? Date.parse(value) : Number.NaN;
  return Number.isNaN(ms) ? String(value) : zonedTime(ms, timeZone);
}

function formatOf(timeZone: string): Intl.DateTimeFormat {
  return remembered(formats, timeZone, MAX_ZONES, () => {
    try {
      return made(timeZone);
    } catch (error) {
      if (error instanceof RangeError) return made('UTC');
      throw error;
    }
  });
}

function made(timeZone: string): Intl.DateTimeFormat {
  return new Intl.DateTimeFormat('en-GB', {
    timeZone,
    day: 'numeric',
    month: 'short',
    year: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    timeZoneName: 'short',
  });
}
